//! Cells of a heat map as a table.

use super::numbers::{Table, plain};
use crate::plot::{HeatAxis, HeatCells, HeatMap};

/// Returns all values if there are few, else what each part of the horizontal axis has in common.
pub(super) fn table(map: &HeatMap) -> Table {
    let (columns, rows) = (map.across.count(), map.up.count());
    let table = if columns <= COLUMNS_MAX && rows <= ROWS_MAX {
        whole(map)
    } else {
        by_column(map)
    };
    Table {
        caption: format!("Numbers of “{}”: {}", map.title, map.quantity),
        ..table
    }
}

/// Returns the table that has the map's own rows and columns.
fn whole(map: &HeatMap) -> Table {
    let (columns, rows) = (map.across.count(), map.up.count());
    let mut cells = vec![vec![String::new(); columns]; rows];
    for (column, row, value) in map.values() {
        cells[row][column] = plain(value);
    }
    let named = (0..rows).rev().map(|row| {
        let mut cells = std::mem::take(&mut cells[row]);
        cells.insert(0, name(&map.up, row, row));
        cells
    });
    let rows = named.collect();
    let corner = match (map.up.label.as_str(), map.across.label.as_str()) {
        (up, "") => up.to_owned(),
        (up, across) => format!("{up} \\ {across}"),
    };
    let heads = (0..columns).map(|column| name(&map.across, column, column));
    Table {
        heads: std::iter::once(corner).chain(heads).collect(),
        rows,
        ..Table::default()
    }
}

/// Returns a row for each column of the map, or for neighbours of them if there are many.
fn by_column(map: &HeatMap) -> Table {
    let columns = map.across.count();
    let each = columns.div_ceil(ROWS_MAX).max(1);
    let mut parts = vec![Part::default(); columns.div_ceil(each)];
    for (column, row, value) in map.values().filter(|(.., value)| *value != 0.0) {
        parts[column / each].add(row, value);
    }
    let rows = parts.iter().enumerate().map(|(at, part)| {
        let last = ((at + 1) * each).min(columns) - 1;
        let mut cells = vec![name(&map.across, at * each, last)];
        cells.extend(part.cells(&map.up));
        cells
    });
    let up = &map.up.label;
    let heads = [
        format!("lowest {up}"),
        format!("highest {up}"),
        format!("{up}, of the largest cell"),
        "largest cell".to_owned(),
    ];
    Table {
        rows: rows.collect(),
        heads: std::iter::once(map.across.label.clone())
            .chain(heads)
            .collect(),
        ..Table::default()
    }
}

/// Neighbouring columns.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Lowest and highest row with a value.
    rows: Option<(usize, usize)>,
    /// Row and value of the largest.
    most: Option<(usize, f64)>,
}

impl Part {
    fn add(&mut self, row: usize, value: f64) {
        let (low, high) = self.rows.unwrap_or((row, row));
        self.rows = Some((low.min(row), high.max(row)));
        if self.most.is_none_or(|(_, most)| value > most) {
            self.most = Some((row, value));
        }
    }

    fn cells(&self, up: &HeatAxis) -> Vec<String> {
        let (Some((low, high)), Some((row, most))) = (self.rows, self.most) else {
            return vec![String::new(); 4];
        };
        vec![
            name(up, low, low),
            name(up, high, high),
            name(up, row, row),
            plain(most),
        ]
    }
}

/// Names the cells of an axis from one to another.
fn name(axis: &HeatAxis, first: usize, last: usize) -> String {
    let (from, to) = match &axis.cells {
        HeatCells::Ranges(ends, _) => {
            let end = |at: usize| ends.get(at).map_or_else(String::new, |end| plain(*end));
            (end(first), end(last + 1))
        }
        HeatCells::Names(names) => {
            let name = |at: usize| names.get(at).cloned().unwrap_or_default();
            (name(first), name(last))
        }
    };
    match from == to {
        true => from,
        false => format!("{from} to {to}"),
    }
}

/// Most columns of a map that are columns of its table.
const COLUMNS_MAX: usize = 16;
/// Most rows of a table.
const ROWS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Scale;

    #[test]
    fn small_maps_are_tables() {
        let map = HeatMap {
            across: HeatAxis::names("depth", ["1", "2"]),
            up: HeatAxis::names("size", ["4k", "8k"]),
            cells: vec![vec![Some(1.5), None], vec![Some(2.0), Some(1e6), Some(7.0)]],
            ..HeatMap::default()
        };
        let table = table(&map);
        assert_eq!(table.heads, ["size \\ depth", "1", "2"]);
        assert_eq!(table.rows, [["8k", "", "1000000"], ["4k", "1.5", "2"]]);
    }

    #[test]
    fn large_maps_have_the_ends_of_their_columns() {
        let ends = |count: u32| (0..=count).map(f64::from).collect();
        let mut cells = vec![vec![Some(1.0); 3]; 200];
        cells[77] = vec![None, Some(9.0), None, Some(1.0), Some(f64::NAN)];
        cells[100] = vec![Some(0.0)];
        let map = HeatMap {
            across: HeatAxis::ranges("time, s", ends(200), Scale::Linear),
            up: HeatAxis::ranges("latency, µs", ends(100), Scale::Linear),
            cells,
            ..HeatMap::default()
        };
        let table = table(&map);
        assert_eq!(table.rows.len(), 50);
        assert_eq!(table.rows[0], ["0 to 4", "0 to 1", "2 to 3", "0 to 1", "1"]);
        let spike = ["76 to 80", "0 to 1", "3 to 4", "1 to 2", "9"];
        assert_eq!(table.rows[19], spike);
        assert!(table.rows.iter().all(|row| row.len() == table.heads.len()));
    }
}
