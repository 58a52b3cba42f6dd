//! Numbers of a figure as tables.

use std::fmt::Write as _;

use super::cells;
use super::figure::Picture;
use crate::plot::{Intervals, Panel, Plot, Point, Series};

/// Table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Returns the tables of a picture, one for each panel.
pub(super) fn tables(picture: &Picture) -> Vec<Table> {
    match picture {
        Picture::Plot(plot) => of_plot(plot),
        Picture::HeatMap(map) => vec![cells::table(map)],
        Picture::Intervals(intervals) => vec![of_intervals(intervals)],
    }
}

fn of_intervals(intervals: &Intervals) -> Table {
    let ends = |ends: Option<(f64, f64)>| {
        let ends = ends.map(|(low, high)| format!("{} to {}", plain(low), plain(high)));
        ends.unwrap_or_default()
    };
    let rows = intervals.rows.iter().map(|row| {
        let value = row.value.map(plain).unwrap_or_default();
        vec![
            row.name.clone(),
            value,
            ends(row.interval),
            ends(row.band),
            row.note.clone(),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    let mut heads = ["row", &intervals.label, "from and to", "shaded", "words"]
        .map(str::to_owned)
        .to_vec();
    // Columns that say nothing are left out.
    for at in (1..heads.len()).rev() {
        if rows.iter().all(|row| row[at].is_empty()) {
            heads.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }
    Table {
        caption: format!("Numbers of “{}”", intervals.title),
        heads,
        rows,
    }
}

fn of_plot(plot: &Plot) -> Vec<Table> {
    let several = plot.panels.len() > 1;
    let panels = plot.panels.iter().map(|panel| {
        let quantity = if several {
            format!(", {}", panel.up.label)
        } else {
            String::new()
        };
        Table {
            caption: format!("Numbers of “{}”{quantity}", plot.title),
            ..of_panel(panel)
        }
    });
    panels.filter(|table| !table.rows.is_empty()).collect()
}

/// Returns a row for each place of the horizontal axis at which a series has a value; of more than
/// [`ROWS_MAX`] places, a row for each of as many equal parts of them, with smallest and largest.
fn of_panel(panel: &Panel) -> Table {
    let mut places: Vec<f64> = points(&panel.series).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let named = panel.series.iter().map(|one| match one.name.as_str() {
        "" => panel.up.label.clone(),
        name => name.to_owned(),
    });
    let heads = std::iter::once(panel.across.label.clone()).chain(named);
    let each = places.len().div_ceil(ROWS_MAX).max(1);
    let mut columns: Vec<_> = panel.series.iter().map(Column::new).collect();
    let rows = places.chunks(each).map(|part| {
        let (first, last) = (part[0], part[part.len() - 1]);
        let place = if part.len() > 1 {
            format!("{} to {}", plain(first), plain(last))
        } else {
            plain(first)
        };
        let cells = columns.iter_mut().map(|column| column.cell(last));
        std::iter::once(place).chain(cells).collect()
    });
    Table {
        rows: rows.collect(),
        heads: heads.collect(),
        ..Table::default()
    }
}

/// Points of a series in ascending order, as far as they are not in a row yet.
struct Column<'a> {
    points: Vec<&'a Point>,
    next: usize,
}

impl<'a> Column<'a> {
    fn new(series: &'a Series) -> Self {
        let mut points: Vec<&Point> = points(std::slice::from_ref(series)).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Self { points, next: 0 }
    }

    /// Returns the values up to and including a place: one, or the smallest and the largest.
    fn cell(&mut self, last: f64) -> String {
        let rest = &self.points[self.next..];
        let length = rest.partition_point(|point| point.x.total_cmp(&last).is_le());
        let part = &rest[..length];
        self.next += length;
        let values = || part.iter().filter_map(|point| point.y);
        let Some((least, most)) = values().reduce(f64::min).zip(values().reduce(f64::max)) else {
            return String::new();
        };
        let mut text = match least < most {
            true => format!("{} to {}", plain(least), plain(most)),
            false => plain(least),
        };
        if let [only] = part
            && let Some((low, high)) = only.interval
        {
            // Writing to a string cannot fail.
            let _written = write!(text, " ({} to {})", plain(low), plain(high));
        }
        text
    }
}

/// Returns the points with a value; a place that is not a number has none.
fn points(series: &[Series]) -> impl Iterator<Item = &Point> {
    let points = series.iter().flat_map(|one| &one.points);
    points.filter(|point| point.y.is_some_and(f64::is_finite) && point.x.is_finite())
}

/// Formats a value with at least six significant digits, and all digits of a whole number.
pub(super) fn plain(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        return format!("{value:.0}");
    }
    if !(1e-6..1e15).contains(&size) {
        return format!("{value:e}");
    }
    let decimals = (0..12).find(|decimals| size * 10_f64.powi(*decimals) >= 1e5);
    let decimals = usize::try_from(decimals.unwrap_or(12)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    text.to_owned()
}

/// Most rows of a table: more than a timeline has windows.
const ROWS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Scale};

    fn series(name: &str, points: &[(f64, Option<f64>)]) -> Series {
        let points = points.iter().map(|(x, y)| Point::new(*x, *y));
        Series::measured(name, 0, points)
    }

    fn rows(series: Vec<Series>) -> Vec<Vec<String>> {
        let panel = Panel {
            across: Axis::new("depth", Scale::Auto),
            up: Axis::new("IOPS", Scale::Auto),
            series,
        };
        of_panel(&panel).rows
    }

    #[test]
    fn series_share_the_rows_of_their_places() {
        let one = series("a", &[(1.0, Some(10.5)), (2.0, None), (4.0, Some(7.0))]);
        let mut other = series("b", &[(4.0, Some(1.0)), (2.0, Some(f64::NAN))]);
        other.points[0].interval = Some((0.5, 2.0));
        let want = [["1", "10.5", ""], ["4", "7", "1 (0.5 to 2)"]];
        assert_eq!(rows(vec![one, other]), want);
        assert!(rows(vec![]).is_empty());
    }

    #[test]
    fn a_spike_among_many_values_is_in_the_table() {
        let mut many: Vec<_> = (0..100_000).map(|at| (f64::from(at), Some(1.0))).collect();
        many[76_543].1 = Some(9e9);
        let rows = rows(vec![series("", &many)]);
        assert!(rows.len() <= ROWS_MAX);
        let spike = rows.iter().filter(|row| row[1] == "1 to 9000000000");
        assert_eq!(spike.count(), 1, "{rows:?}");
    }

    #[test]
    fn values_keep_their_digits() {
        let texts = [
            0.0,
            -2.5,
            1_234_567.0,
            123_456.789,
            0.012_345_67,
            1e-9,
            1e300,
        ]
        .map(plain);
        let want = [
            "0",
            "-2.5",
            "1234567",
            "123457",
            "0.0123457",
            "1e-9",
            "1e300",
        ];
        assert_eq!(texts, want);
    }
}
