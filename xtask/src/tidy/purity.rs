//! What is kept apart: `unsafe` in one crate, the world out of the pure ones.

use super::Finding;
use super::lexer::has_word;
use super::tree::{File, Tree};

/// `unsafe` outside `fathom-sys`; files, sockets, threads and processes in pure crates.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        findings.extend(unsafe_code(file));
        if PURE
            .iter()
            .any(|name| file.path.starts_with(&format!("crates/{name}/src/")))
        {
            findings.extend(worldly(file));
            findings.extend(unforbidden(file));
        }
    }
    findings
}

fn unsafe_code(file: &File) -> Vec<Finding> {
    if file.crate_name() == Some("fathom-sys") {
        return Vec::new();
    }
    let lines = file
        .code
        .lines()
        .enumerate()
        .filter(|(_, line)| has_word(line, "unsafe"));
    let why = "only fathom-sys may; give it a safe function there";
    lines
        .map(|(index, _)| Finding::new(&file.path, index + 1, "unsafe code", why))
        .collect()
}

/// What a pure crate's code, its tests left out, asks of the world.
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
    let is_root = file.path.ends_with("/src/lib.rs");
    (is_root && !file.code.contains("#![forbid(unsafe_code)]")).then(|| {
        let what = "no `#![forbid(unsafe_code)]`";
        Finding::new(&file.path, 1, what, "a pure crate rules it out at its root")
    })
}

/// Crates that do no I/O, read no clock and start nothing.
const PURE: [&str; 9] = [
    "fathom-core",
    "fathom-stats",
    "fathom-job",
    "fathom-workload",
    "fathom-block",
    "fathom-nvme",
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
    fn unsafe_code_stays_in_one_crate() {
        check_file(
            "crates/fathom-run/src/a.rs",
            "unsafe { f() }",
            &["unsafe code"],
        );
        check_file("crates/fathom-sys/src/a.rs", "unsafe { f() }", &[]);
        check_file(
            "crates/fathom-run/src/a.rs",
            "// unsafe\n#![deny(unsafe_code)]",
            &[],
        );
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
