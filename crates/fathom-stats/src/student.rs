//! Student's t distribution, the same on every host: logarithms and gammas are those of `libm`.

/// Returns the value that Student's t with `freedom` degrees of freedom exceeds with probability 1
/// − `p`, for 0 < `p` < 1 and `freedom` > 0, to about twelve digits.
#[must_use]
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    let tail = p.min(1.0 - p);
    if tail >= 0.5 {
        return 0.0;
    }
    // The tail falls as t grows: double until it is small enough, then halve the interval.
    let (mut least, mut most) = (0.0, 1.0);
    while upper_tail(most, freedom) > tail && most < T_MAX {
        (least, most) = (most, most * 2.0);
    }
    loop {
        let middle = f64::midpoint(least, most);
        if middle <= least || middle >= most {
            return if p < 0.5 { -middle } else { middle };
        }
        if upper_tail(middle, freedom) > tail {
            least = middle;
        } else {
            most = middle;
        }
    }
}

/// Returns the probability that t exceeds a value that is not negative.
fn upper_tail(t: f64, freedom: f64) -> f64 {
    let x = freedom / t.mul_add(t, freedom);
    incomplete_beta(freedom / 2.0, 0.5, x) / 2.0
}

/// Returns the regularised incomplete beta function, for 0 ≤ `x` ≤ 1.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let log_front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
        + a * libm::log(x)
        + b * libm::log1p(-x);
    let front = libm::exp(log_front);
    // The fraction converges quickly on this side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// Returns the continued fraction of the incomplete beta function, after Lentz.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for step in 1..STEPS_MAX {
        let m = f64::from(step);
        let (a_even, a_odd) = (2.0_f64.mul_add(m, a), a + m);
        for term in [
            m * (b - m) * x / ((a_even - 1.0) * a_even),
            -a_odd * (a_odd + b) * x / (a_even * (a_even + 1.0)),
        ] {
            d = 1.0 / not_zero(term.mul_add(d, 1.0));
            c = not_zero(1.0 + term / c);
            product *= d * c;
        }
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    product
}

/// Larger than any quantile that is of use; bounds the search with little freedom.
const T_MAX: f64 = 1e18;
/// Stands for zero in a denominator.
const TINY: f64 = 1e-300;
/// More steps than a million degrees of freedom take.
const STEPS_MAX: u32 = 10_000;
