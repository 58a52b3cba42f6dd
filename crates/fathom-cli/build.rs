//! Passes the commit and the features that are built to `fathom --version`.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=FATHOM_COMMIT");
    // Packagers build from an archive, without a repository, and set the variable.
    let commit = std::env::var("FATHOM_COMMIT")
        .ok()
        .or_else(commit_of_repository);
    let suffix = commit.map_or_else(String::new, |commit| format!(" (commit {commit})"));
    println!("cargo::rustc-env=FATHOM_COMMIT_SUFFIX={suffix}");
    println!("cargo::rustc-env=FATHOM_FEATURES={}", features());
}

/// Returns the names of the enabled features, separated by commas; `none` without any.
fn features() -> String {
    let enabled = |name: &&str| {
        let variable = format!("CARGO_FEATURE_{}", name.to_uppercase());
        std::env::var_os(variable).is_some()
    };
    let names: Vec<&str> = FEATURES.into_iter().filter(enabled).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

/// Returns the commit of the repository around the sources; `None` without one, or without git.
fn commit_of_repository() -> Option<String> {
    // Changes with every commit and checkout. Its name differs in work trees.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}

/// Features of the manifest that users choose.
const FEATURES: [&str; 5] = ["history", "http", "live", "mpi", "parquet"];
