//! The seeds in the repository, among them every input that once broke a rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::target::TARGETS;
use crate::watchdog::Watchdog;

#[test]
fn every_seed_keeps_to_the_rules() {
    let watchdog = Watchdog::start();
    for target in TARGETS {
        for entry in fs::read_dir(target.corpus()).expect(target.name) {
            let path = entry.expect(target.name).path();
            let input = fs::read(&path).expect(target.name);
            let tried = target.try_with(&input, &watchdog);
            assert!(tried.is_ok(), "{}: {tried:?}", path.display());
        }
    }
}

/// `cargo xtask fuzz` takes the names of the targets from these folders.
#[test]
fn every_target_has_a_folder_of_seeds_and_every_folder_a_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders: BTreeSet<_> = fs::read_dir(corpus)
        .expect("the corpus")
        .map(|entry| {
            entry
                .expect("a folder")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    let names = TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(folders, names);
}

#[test]
fn every_dictionary_has_words_that_libfuzzer_takes() {
    for target in TARGETS {
        let words = (target.words)();
        let usable = words.iter().filter(|word| !word.is_empty()).count();
        assert_eq!(usable > 0, !words.is_empty(), "{}", target.name);
    }
}
