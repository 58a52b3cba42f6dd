//! The option table: one [`Row`] per option, by subject in the modules below.
//!
//! The parser, `--cmdhelp`, error texts, docs/COMPATIBILITY.md and the fuzzer's input all come from
//! it, so that they cannot disagree. To add an option, add its row and its field in `Options`,
//! remove it from the refused ones if it was there, and regenerate the document; a test checks that
//! every option of fio has a row or a reason for refusal.
//!
//! Rows are constants with function pointers as setters. Rejected: a derive macro on `Options`,
//! because a third of the options have a syntax of their own, and a match on names, because help
//! and documents would be second copies.

mod block_sizes;
mod content;
mod device;
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
mod mix;
mod pattern;
mod priority;
mod process;
mod profile;
mod queue;
mod random;
mod rate;
mod read;
mod readback;
mod replay;
mod row;
mod sequence;
mod sharing;
mod trims;
mod verify;
mod verify_checks;
mod zones;

use std::collections::HashMap;
use std::sync::OnceLock;

pub(crate) use process::NO_CPU;
pub(crate) use row::{Row, ValueKind};

/// Returns all options in the order of the documentation.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().flat_map(|(_, rows)| rows.iter())
}

/// Returns the options by subject.
pub(crate) fn groups() -> &'static [(&'static str, &'static [Row])] {
    GROUPS
}

/// Returns the option with this name or alias.
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
    ("Limits and coordination", guards::ROWS),
    ("Pattern", pattern::ROWS),
    ("Zones", zones::ROWS),
    ("Files", files::ROWS),
    ("File selection", file_choice::ROWS),
    ("Durability and sharing", sharing::ROWS),
    ("Queue and engine", queue::ROWS),
    ("Device", device::ROWS),
    ("Trims of written blocks", trims::ROWS),
    ("Memory", memory::ROWS),
    ("Priority", priority::ROWS),
    ("Process and memory placement", process::ROWS),
    ("Randomness", random::ROWS),
    ("Explicit block sequence", sequence::ROWS),
    ("Rate and think time", rate::ROWS),
    ("Buffers and verification", verify::ROWS),
    ("Checks of verified data", verify_checks::ROWS),
    ("Readback", readback::ROWS),
    ("Compression and deduplication", content::ROWS),
    ("Measurement and reports", measure::ROWS),
    ("Logs", log::ROWS),
    ("Replay", replay::ROWS),
    ("fio profiles", profile::ROWS),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Findings;
    use crate::vocabulary::Vocabulary;

    #[test]
    fn names_are_unique() {
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
        let registry = fathom_engine::Registry::built_in();
        let vocabulary = Vocabulary::new(registry.infos());
        for row in rows() {
            let mut options = crate::Options::default();
            let (name, value) = match row.example.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (row.example, None),
            };
            assert!(row.names().any(|known| known == name), "{}", row.example);
            let got = row.apply(&mut options, value, vocabulary, &mut Findings::default());
            assert_eq!(got, Ok(()), "{}", row.example);
        }
    }
}
