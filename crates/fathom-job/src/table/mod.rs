//! The option table: one row an option, from which parser, help, error texts and documentation
//! are drawn. The rows stand in the modules below, by subject.

mod block_sizes;
mod content;
mod engines;
mod errors;
mod file_choice;
mod files;
mod general;
mod guards;
pub(crate) mod known;
mod lifecycle;
mod log;
mod measure;
mod memory;
mod off;
mod pattern;
mod priority;
mod process;
mod profile;
mod queue;
mod random;
mod rate;
mod read;
mod row;
mod sequence;
mod sharing;
mod verify;
pub(crate) mod zones;

use std::collections::HashMap;
use std::sync::OnceLock;

pub(crate) use row::{ALL_OTHERS, Kind, Row};

/// All options, in the order they are documented.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().flat_map(|(_, rows)| rows.iter())
}

/// The options by subject.
pub(crate) fn groups() -> &'static [(&'static str, &'static [Row])] {
    GROUPS
}

/// The option of this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Row>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let names = |row: &'static Row| row.names().map(move |name| (name, row));
        rows().flat_map(names).collect()
    });
    index.get(name).copied()
}

const GROUPS: &[(&str, &[Row])] = &[
    ("Job", general::ROWS),
    ("Groups and lifecycle", lifecycle::ROWS),
    ("Ends and turns", guards::ROWS),
    ("Pattern", pattern::ROWS),
    ("Zones", zones::ROWS),
    ("Files", files::ROWS),
    ("Choice of file", file_choice::ROWS),
    ("Durability and sharing", sharing::ROWS),
    ("Queue and engine", queue::ROWS),
    ("Memory", memory::ROWS),
    ("Priority", priority::ROWS),
    ("The job's thread", process::ROWS),
    ("Random", random::ROWS),
    ("Blocks in a given order", sequence::ROWS),
    ("Pace", rate::ROWS),
    ("Content and verification", verify::ROWS),
    ("Compression and duplicates", content::ROWS),
    ("Measuring and reporting", measure::ROWS),
    ("Logs", log::ROWS),
    ("Engines' own", engines::ROWS),
    ("Of fio's profiles", profile::ROWS),
    ("Only off", off::ROWS),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Findings;

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<_> = rows().flat_map(Row::names).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_option_and_alias_is_fios() {
        for row in rows() {
            let known = known::find(row.name).unwrap_or_else(|| panic!("{}", row.name));
            for alias in row.aliases {
                assert!(known.names().any(|name| name == *alias), "{alias}");
            }
        }
    }

    #[test]
    fn every_example_is_accepted() {
        for row in rows() {
            let mut options = crate::Options::default();
            let (name, value) = match row.example.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (row.example, None),
            };
            assert!(row.names().any(|known| known == name), "{}", row.example);
            let got = row.apply(&mut options, value, &mut Findings::default());
            assert_eq!(got, Ok(()), "{}", row.example);
        }
    }
}
