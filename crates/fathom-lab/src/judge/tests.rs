use super::*;

const UP: JudgeRule = JudgeRule {
    improves: Improves::Upwards,
    tolerance: 0.02,
};
const DOWN: JudgeRule = JudgeRule {
    improves: Improves::Downwards,
    tolerance: 0.02,
};

/// Returns a value near 100 that differs between repeats, the same for both sides, and a little
/// between sides.
fn noisy(repeat: u32, side: usize) -> f64 {
    let drift = f64::from(repeat) * 3.0;
    let wiggle = [0.1, -0.2, 0.3, -0.1, 0.2, -0.3][(repeat as usize + 2 * side) % 6];
    100.0 + drift + wiggle
}

#[track_caller]
fn check(repeats: u32, change: f64, rule: JudgeRule, want: Verdict) {
    let mut values = Values::new(1, 2, 1);
    for repeat in 0..repeats {
        values.add((0, 0), 0, repeat, noisy(repeat, 0));
        values.add((0, 1), 0, repeat, noisy(repeat, 1) * change);
    }
    let judgements = judge(&values, 0, &[rule]);
    assert_eq!(judgements.len(), 1);
    assert_eq!(judgements[0].verdict, want, "{judgements:?}");
}

#[test]
fn changes_are_found_under_drift_that_is_larger() {
    check(8, 1.0, UP, Verdict::Same);
    check(8, 1.05, UP, Verdict::Better);
    check(8, 0.95, UP, Verdict::Worse);
    check(8, 1.05, DOWN, Verdict::Worse);
    // Proved, but too small to matter.
    check(8, 1.01, UP, Verdict::Same);
    // Five repeats cannot prove anything: 2 ÷ 2⁵ is above 0.05.
    check(5, 1.05, UP, Verdict::Unclear);
    check(0, 1.0, UP, Verdict::Unclear);
}

#[test]
fn all_comparisons_are_corrected_for_even_those_without_values() {
    // Six repeats prove one comparison, 2 ÷ 2⁶ = 0.031, but not one of two.
    for (cells, want) in [(1, Verdict::Better), (2, Verdict::Unclear)] {
        let mut values = Values::new(cells, 2, 1);
        for repeat in 0..6 {
            values.add((0, 0), 0, repeat, noisy(repeat, 0));
            values.add((0, 1), 0, repeat, noisy(repeat, 1) * 1.1);
        }
        let judgements = judge(&values, 0, &[UP]);
        assert_eq!(judgements.len(), cells);
        assert_eq!(judgements[0].verdict, want);
    }
}

#[test]
fn pairs_are_of_the_same_repeat() {
    let mut values = Values::new(2, 2, 1);
    for (repeat, value) in [(3, 30.0), (0, 1.0), (2, 20.0), (0, 9.0)] {
        values.add((1, 0), 0, repeat, value);
    }
    for (repeat, value) in [(0, 10.0), (1, 11.0), (3, 13.0)] {
        values.add((1, 1), 0, repeat, value);
    }
    assert_eq!(values.of(1, 0, 0), [(0, 9.0), (2, 20.0), (3, 30.0)]);
    assert_eq!(values.pairs(1, (1, 0), 0), [(10.0, 9.0), (13.0, 30.0)]);
    assert!(values.pairs(0, (1, 0), 0).is_empty());
}

#[test]
fn a_change_from_zero_has_a_verdict_and_no_ratio() {
    let judged = |repeats: u32, of: fn(u32) -> [f64; 2]| {
        let mut values = Values::new(1, 2, 1);
        for repeat in 0..repeats {
            let [before, after] = of(repeat);
            values.add((0, 0), 0, repeat, before);
            values.add((0, 1), 0, repeat, after);
        }
        let narrow = is_narrow(&values, 0, &[DOWN], 0);
        (judge(&values, 0, &[DOWN]).remove(0), narrow)
    };
    let (from_zero, narrow) = judged(8, |_| [0.0, 40.0]);
    assert_eq!((from_zero.ratio, from_zero.p), (None, 2.0 / 256.0));
    assert_eq!((from_zero.verdict, narrow), (Verdict::Worse, false));
    assert_eq!(judged(8, |_| [40.0, 0.0]).0.verdict, Verdict::Better);
    // As few as prove nothing elsewhere prove nothing here.
    assert_eq!(judged(5, |_| [0.0, 40.0]).0.verdict, Verdict::Unclear);
    let (once, _) = judged(8, |repeat| [0.0, f64::from(repeat / 7)]);
    assert_eq!((once.verdict, once.settled_by), (Verdict::Unclear, None));
    let (never, narrow) = judged(8, |_| [0.0, 0.0]);
    assert_eq!((never.verdict, narrow), (Verdict::Same, true));
    assert_eq!(never.ratio.map(|ratio| ratio.middle), Some(1.0));
}

#[test]
fn wide_cells_are_unclear_unstable_and_told_what_would_settle_them() {
    let mut values = Values::new(3, 2, 1);
    for cell in 0..3 {
        let spread = if cell == 2 { 20.0 } else { 1.0 };
        for repeat in 0..10 {
            let other = 100.0 + spread * (noisy(repeat, 1) - noisy(repeat, 0));
            values.add((cell, 0), 0, repeat, 100.0);
            values.add((cell, 1), 0, repeat, other);
        }
    }
    let judgements = judge(&values, 0, &[UP]);
    let told = |one: &Judgement| (one.verdict, one.is_unstable, one.settled_by.is_some());
    assert_eq!(told(&judgements[0]), (Verdict::Same, false, false));
    assert_eq!(told(&judgements[2]), (Verdict::Unclear, true, true));
    assert!(is_narrow(&values, 0, &[UP], 0));
    assert!(!is_narrow(&values, 0, &[UP], 2));
    assert!(!is_narrow(&Values::new(1, 2, 1), 0, &[UP], 0));
}
