//! Statistics of repeated runs beside SciPy's, and identities that hold for any values.
//!
//! The wanted values are from SciPy 1.17.1 and NumPy 2.4.6; each test names the call. `exact` is
//! `PermutationMethod(n_resamples=np.inf)`, which tries every assignment: SciPy's own exact
//! distributions know no ties.

use fathom_stats::{RatioInterval, rank_sum, signed_rank, t_quantile};

#[track_caller]
fn close(got: f64, want: f64) {
    assert!(
        (got - want).abs() <= want.abs() * 1e-10,
        "{got}, not {want}"
    );
}

/// `wilcoxon(d, zero_method='pratt', method=exact).pvalue`
#[test]
fn signed_ranks() {
    let cases: [(&[f64], f64); 6] = [
        (&[1.5, -0.5, 2.25, 3.75, -1.25, 0.75, 4.5], 0.109375),
        (&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0.03125),
        (
            &[1.0, 1.0, -1.0, 2.0, 2.0, -3.0, 3.0, 3.0, 4.0, -4.0],
            0.416_015_625,
        ),
        (&[0.0, 0.0, 1.0, -2.0, 3.0, 4.0, 5.0, -1.0, 6.0], 0.15625),
        (
            &[
                0.0, 1.0, 1.0, -1.0, 0.0, 2.0, -2.0, 2.0, 3.0, 3.0, -5.0, 0.0,
            ],
            0.410_156_25,
        ),
        (
            &[
                0.031, -0.004, 0.027, 0.011, 0.019, -0.013, 0.008, 0.022, 0.035, -0.001, 0.016,
                0.024,
            ],
            0.012_207_031_25,
        ),
    ];
    for (differences, want) in cases {
        close(signed_rank(differences), want);
        let turned: Vec<f64> = differences.iter().map(|value| -value).collect();
        close(signed_rank(&turned), want);
    }
    close(signed_rank(&[0.0; 5]), 1.0);
    close(signed_rank(&[]), 1.0);
    // As many as there may be: all positive, 2 ÷ 2¹⁰⁰.
    close(signed_rank(&[1.0; 100]), 2.0_f64.powi(-99));
    close(signed_rank(&[1.0; 120]), 2.0_f64.powi(-99));
}

/// `mannwhitneyu(a, b, method=exact).pvalue`
#[test]
fn rank_sums() {
    let cases: [(&[f64], &[f64], f64); 4] = [
        (
            &[1.5, 2.5, 3.5, 7.5],
            &[2.0, 4.0, 6.0, 8.0, 9.0],
            0.285_714_285_714_285_7,
        ),
        (
            &[1.0, 2.0, 3.0, 4.0, 5.0],
            &[6.0, 7.0, 8.0, 9.0, 10.0],
            0.007_936_507_936_507_936,
        ),
        (
            &[1.0, 2.0, 2.0, 3.0, 5.0],
            &[2.0, 3.0, 3.0, 4.0, 4.0, 6.0],
            0.212_121_212_121_212_13,
        ),
        (
            &[0.97, 1.02, 1.05, 0.99, 1.01, 1.03, 0.98, 1.0],
            &[1.04, 1.06, 1.02, 1.08, 1.01, 1.07, 1.05],
            0.016_161_616_161_616_16,
        ),
    ];
    for (one, other, want) in cases {
        close(rank_sum(one, other), want);
        close(rank_sum(other, one), want);
    }
    close(rank_sum(&[], &[1.0]), 1.0);
    close(rank_sum(&[1.0; 64], &[1.0; 64]), 1.0);
    // The largest series: one of C(128, 64) splits on either side.
    let above = [2.0; 64];
    assert!(rank_sum(&above, &[1.0; 64]) < 1e-37);
}

/// `t.ppf(p, df)`
#[test]
fn quantiles_of_t() {
    for (p, freedom, want) in [
        (0.975, 1.0, 12.706_204_736_174_694),
        (0.975, 2.0, 4.302_652_729_749_462),
        (0.975, 4.0, 2.776_445_105_197_793_4),
        (0.95, 10.0, 1.812_461_122_811_675_6),
        (0.975, 29.0, 2.045_229_642_132_703),
        (0.995, 7.5, 3.421_422_688_124_044),
        (0.9, 0.5, 10.270_324_410_234_51),
        (0.025, 12.0, -2.178_812_829_667_229_3),
        (0.975, 239.0, 1.969_939_405_916_958_4),
        (0.9999, 3.0, 22.203_742_273_205),
    ] {
        close(t_quantile(p, freedom), want);
    }
    close(t_quantile(0.5, 3.0), 0.0);
    // Gammas of a large number cancel but for their last digits.
    let normal = t_quantile(0.975, 1e6);
    assert!((normal - 1.959_966_356_814_107).abs() < 1e-8, "{normal}");
}

/// `np.median` of the means of all pairs of logarithms, and the range of shifts `x` with
/// `wilcoxon(d - x, method='exact').pvalue > 0.05`
#[test]
fn ratios_of_pairs() {
    let over = [
        1031.0, 996.0, 1027.5, 1011.0, 1019.25, 987.0, 1008.0, 1022.0, 1035.0, 999.0, 1016.0,
        1024.0,
    ];
    let ratio = RatioInterval::of_pairs(&over.map(|over| (over, 1000.0))).expect("12 pairs");
    close(ratio.middle, 1.015_214_684_568_932_5);
    close(ratio.low, 1.004_347_549_407_076_6);
    close(ratio.high, 1.025_108_165_024_55);
}

/// `np.median` of the differences of logarithms of any two values, and the range of shifts `x` with
/// `mannwhitneyu(a - x, b, method='exact').pvalue > 0.05`
#[test]
fn ratios_of_series() {
    let over = [10.2, 11.1, 12.3, 13.7, 14.9, 10.8];
    let under = [9.1, 10.05, 11.3, 9.75, 12.6];
    let ratio = RatioInterval::of_series(&over, &under).expect("6 and 5 values");
    close(ratio.middle, 1.129_636_122_114_311_9);
    close(ratio.low, 0.902_654_867_256_637);
    close(ratio.high, 1.482_587_064_676_616_4);
}

/// Of data without a difference, the test and the interval err in the same cases: the interval
/// holds 1 exactly when p exceeds 0.05.
#[test]
fn tests_and_intervals_agree() {
    let mut state = 1_u64;
    let mut excluded = 0;
    for _ in 0..2000 {
        let pairs: [(f64, f64); 9] = std::array::from_fn(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let noise = f64::from((state >> 40) as u32) / f64::from(1 << 24);
            (0.5 + noise, 1.0 + noise.sqrt() / 9.0)
        });
        let differences = pairs.map(|(over, under)| (over / under).ln());
        let ratio = RatioInterval::of_pairs(&pairs).expect("9 pairs");
        let is_proved = signed_rank(&differences) <= 0.05;
        assert_eq!(ratio.shows_difference(), is_proved, "{pairs:?}");
        excluded += u32::from(is_proved);
    }
    assert!(excluded > 20, "{excluded}");
}
