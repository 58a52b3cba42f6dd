//! Lines of at most 100 columns: rustfmt does not wrap comments and literals.

use super::Finding;
use super::tree::{File, Tree};

/// Finds overlong lines in all Rust files.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(long_lines).collect()
}

fn long_lines(file: &File) -> impl Iterator<Item = Finding> {
    file.text.lines().enumerate().filter_map(|(index, line)| {
        let columns = line.chars().count();
        (columns > COLUMNS_MAX && !line.contains("://")).then(|| {
            let what = format!("{columns} columns");
            let why = "100 is the limit; break the line";
            Finding::new(&file.path, index + 1, what, why)
        })
    })
}

const COLUMNS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_past_a_hundred_columns_is_found_but_for_addresses() {
        let wide = "x".repeat(101);
        let text = format!("{}\n{wide}\n// https://{wide}\n", "é".repeat(100));
        let found: Vec<_> = long_lines(&File::new("a.rs", &text)).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }
}
