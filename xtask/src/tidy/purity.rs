//! Walls within a crate: no `unsafe` outside fathom-sys, no I/O in pure crates.

use super::Finding;
use super::lexer::has_word;
use super::tree::{File, Tree};

/// Finds uses of files, sockets, threads and processes in pure crates, and crate roots that do not
/// forbid `unsafe`.
///
/// clippy cannot check the first: `disallowed-methods` has no row for a module, and the
/// `clippy.toml` of a crate replaces the workspace's. rustc denies `unsafe` itself, but only
/// `forbid` at the root keeps a module from allowing it.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        findings.extend(unforbidden(file));
        let is_pure = file.crate_name().is_some_and(|name| PURE.contains(&name));
        if is_pure && file.path.contains("/src/") {
            findings.extend(worldly(file));
        }
    }
    findings
}

/// Finds uses of the outside world in a pure crate's code, except in tests.
fn worldly(file: &File) -> Vec<Finding> {
    let program = file.code.split("#[cfg(test)]").next().unwrap_or_default();
    let mut findings = Vec::new();
    for (index, line) in program.lines().enumerate() {
        for name in WORLD {
            if has_word(line, name) {
                let why = "this crate is pure: it takes bytes, events and the time as arguments";
                findings.push(Finding::new(
                    &file.path,
                    index + 1,
                    format!("`{name}`"),
                    why,
                ));
            }
        }
    }
    findings
}

fn unforbidden(file: &File) -> Option<Finding> {
    let is_root = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    let may = file.crate_name() == Some("fathom-sys");
    (is_root && !may && !file.code.contains("#![forbid(unsafe_code)]")).then(|| {
        let what = "no `#![forbid(unsafe_code)]`";
        let why = "only fathom-sys may contain unsafe code; give it a safe function there";
        Finding::new(&file.path, 1, what, why)
    })
}

/// Crates that do no I/O, read no clock and start no thread or process.
const PURE: [&str; 12] = [
    "fathom-core",
    "fathom-checksum",
    "fathom-stats",
    "fathom-job",
    "fathom-workload",
    "fathom-block",
    "fathom-nvme",
    "fathom-nbd",
    "fathom-hosts",
    "fathom-record",
    "fathom-report",
    "fathom-sim",
];

const WORLD: [&str; 6] = [
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "std::env",
    "std::os::unix::fs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_file(path: &str, text: &str, want: &[&str]) {
        let tree = Tree {
            files: vec![File::new(path, text)],
            paths: Vec::new(),
        };
        let found: Vec<_> = check(&tree)
            .into_iter()
            .map(|finding| finding.what)
            .collect();
        assert_eq!(found, want, "{path}");
    }

    #[test]
    fn every_root_but_one_forbids_unsafe_code() {
        let missing = ["no `#![forbid(unsafe_code)]`"];
        check_file("crates/fathom-run/src/lib.rs", "mod a;", &missing);
        check_file("xtask/src/main.rs", "// #![forbid(unsafe_code)]", &missing);
        check_file(
            "crates/fathom-run/src/lib.rs",
            "#![forbid(unsafe_code)]",
            &[],
        );
        check_file("crates/fathom-sys/src/lib.rs", "", &[]);
        check_file("crates/fathom-run/src/a.rs", "", &[]);
    }

    #[test]
    fn a_pure_crate_does_not_ask_the_world() {
        check_file("crates/fathom-job/src/a.rs", "use std::fs;", &["`std::fs`"]);
        check_file(
            "crates/fathom-job/src/a.rs",
            "#[cfg(test)]\nmod t { use std::fs; }",
            &[],
        );
        check_file("crates/fathom-job/tests/a.rs", "use std::fs;", &[]);
        check_file("crates/fathom-run/src/a.rs", "use std::fs;", &[]);
        check_file(
            "crates/fathom-job/src/lib.rs",
            "",
            &["no `#![forbid(unsafe_code)]`"],
        );
    }
}
