//! Marks of rows that rest on too few ops.

use crate::table::Cell;

/// Returns the cell of a direction, for people with a mark if it has too few ops.
pub(super) fn direction_cell(direction: &str, ops: Option<u64>) -> Cell {
    let is_few = ops.is_some_and(|ops| ops < OPS);
    let (word, name) = match (direction, is_few) {
        ("read", false) => ("read", "read"),
        ("read", true) => ("read", "read *"),
        (_, false) => ("write", "write"),
        (_, true) => ("write", "write *"),
    };
    Cell::Named {
        word,
        name: name.into(),
    }
}

/// Returns the note that explains the marks, if a row of these has one; `direction` is their
/// column.
pub(super) fn note(rows: &[Vec<Cell>], direction: usize) -> Option<String> {
    let is_marked = |row: &Vec<Cell>| row[direction].text().ends_with('*');
    rows.iter().any(is_marked).then(|| {
        format!(
            "* less than {OPS} ops: fewer than ten lie beyond p99, which is left out, and a stall \
             moves the mean; --seconds measures longer"
        )
    })
}

/// Ops of which ten lie beyond p99.
const OPS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_few_ops_are_marked_for_people_only() {
        let cell = |direction| match direction {
            "read" => direction_cell(direction, Some(999)),
            _ => direction_cell(direction, Some(1000)),
        };
        let named = |word, name: &str| Cell::Named {
            word,
            name: name.into(),
        };
        assert_eq!(cell("read"), named("read", "read *"));
        assert_eq!(cell("write"), named("write", "write"));
        assert_eq!(direction_cell("write", None), named("write", "write"));
        assert_eq!(direction_cell("write", Some(0)), named("write", "write *"));
        assert!(note(&[vec![cell("write")], vec![cell("read")]], 0).is_some());
        assert_eq!(note(&[vec![cell("write")]], 0), None);
    }
}
