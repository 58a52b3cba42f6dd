//! Reduction of a series to what its pixels can show.
//!
//! Of the points that fall into one column of pixels, the first and the last one are kept, so that
//! lines enter and leave the column where they did, and the smallest and the largest one: a line
//! through these four covers the same pixels as one through all, and a single spike among millions
//! of points stays. Means of points, and every n-th point, were rejected: they hide it.

use super::Point;

/// Returns the points that are seen, in their order; `column` returns the column of pixels in which
/// a horizontal value lies. A point that has no column stays, as does the first missing one in a
/// column, at which a line breaks.
///
/// Of ascending points, at most seven of each column are kept.
pub(super) fn reduced(points: &[Point], column: impl Fn(f64) -> Option<i64>) -> Vec<Point> {
    let columns: Vec<Option<i64>> = points.iter().map(|point| column(point.x)).collect();
    let mut kept = Vec::new();
    let mut start = 0;
    while start < points.len() {
        let rest = &columns[start..];
        let length = match rest[0] {
            None => 1,
            Some(_) => rest.iter().take_while(|one| **one == rest[0]).count(),
        };
        keep(&points[start..start + length], &mut kept);
        start += length;
    }
    kept
}

/// Keeps the points of one column.
fn keep(points: &[Point], kept: &mut Vec<Point>) {
    let with = |value: fn(&Point) -> Option<f64>| {
        let all = points.iter().enumerate();
        all.filter_map(move |(at, point)| Some((at, value(point)?)))
    };
    let value = |point: &Point| point.y.filter(|y| y.is_finite());
    let low = |point: &Point| Some(point.interval?.0);
    let high = |point: &Point| Some(point.interval?.1);
    let least = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    let ends = [
        Some(0),
        points.len().checked_sub(1),
        with(value).min_by(least).map(|(at, _)| at),
        with(value).max_by(least).map(|(at, _)| at),
        with(low).min_by(least).map(|(at, _)| at),
        with(high).max_by(least).map(|(at, _)| at),
        points.iter().position(|point| point.y.is_none()),
    ];
    let mut ends: Vec<usize> = ends.into_iter().flatten().collect();
    ends.sort_unstable();
    ends.dedup();
    kept.extend(ends.into_iter().map(|at| points[at]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the column of a value, 100 to a unit.
    fn column(x: f64) -> Option<i64> {
        #[expect(clippy::cast_possible_truncation, reason = "small")]
        x.is_finite().then_some((x * 100.0) as i64)
    }

    fn any_value() -> impl Strategy<Value = Option<f64>> {
        prop_oneof![
            10 => (-1e9..1e9_f64).prop_map(Some),
            2 => Just(None),
            1 => Just(Some(f64::NAN)),
            1 => Just(Some(f64::INFINITY)),
        ]
    }

    fn any_point() -> impl Strategy<Value = Point> {
        let x = prop_oneof![20 => 0.0..1.0_f64, 1 => Just(f64::NAN)];
        let interval = proptest::option::weighted(0.2, (-1e9..1e9_f64, -1e9..1e9_f64));
        (x, any_value(), interval).prop_map(|(x, y, interval)| Point { x, y, interval })
    }

    /// Returns first, last, smallest and largest value of points.
    fn ends(points: &[Point]) -> [Option<f64>; 4] {
        let values = || {
            points
                .iter()
                .filter_map(|point| point.y)
                .filter(|y| y.is_finite())
        };
        [
            values().next(),
            values().next_back(),
            values().reduce(f64::min),
            values().reduce(f64::max),
        ]
    }

    proptest! {
        #[test]
        fn ends_and_extremes_survive(
            mut points in proptest::collection::vec(any_point(), 0..2000),
            is_sorted in any::<bool>(),
        ) {
            if is_sorted {
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
            }
            let kept = reduced(&points, column);
            prop_assert_eq!(ends(&kept)[2..].to_vec(), ends(&points)[2..].to_vec());
            let bits = |point: Option<&Point>| {
                point.map(|point| (point.x.to_bits(), point.y.map(f64::to_bits)))
            };
            prop_assert_eq!(bits(kept.first()), bits(points.first()));
            prop_assert_eq!(bits(kept.last()), bits(points.last()));
            // Each column keeps its own extremes, not only the whole series.
            if is_sorted {
                for number in 0..100 {
                    let of = |points: &[Point]| {
                        let own = points.iter().filter(|point| column(point.x) == Some(number));
                        ends(&own.copied().collect::<Vec<_>>())[2..].to_vec()
                    };
                    prop_assert_eq!(of(&kept), of(&points));
                }
                let placeless = points.iter().filter(|point| column(point.x).is_none()).count();
                prop_assert!(kept.len() <= 7 * 100 + placeless);
            }
            // What is kept stands in the order of the series.
            let mut rest = points.iter();
            for point in &kept {
                prop_assert!(rest.any(|one| bits(Some(one)) == bits(Some(point))));
            }
        }
    }

    #[test]
    fn a_spike_and_a_gap_in_a_column_stay() {
        let mut points: Vec<Point> = (0..1000)
            .map(|at| Point::new(f64::from(at) / 1e6, Some(1.0)))
            .collect();
        points[500].y = Some(7.0);
        points[600].y = None;
        let kept: Vec<Option<f64>> = reduced(&points, column).iter().map(|one| one.y).collect();
        assert_eq!(kept, [Some(1.0), Some(7.0), None, Some(1.0)]);
    }
}
