//! Builds with more features than the default, with fewer, and with one at a time.

use std::path::Path;

use anyhow::Result;

use super::cargo;
use crate::process;

/// Features of the program that no default build has.
const MORE: [&str; 3] = ["live", "http", "mpi"];

/// Returns the argument of cargo for all features that can be built here.
///
/// Tests run in one build with all of them: features of dependencies differ with those of the
/// program, so that a build for each would compile nearly everything again.
pub(crate) fn all() -> String {
    let names = MORE.into_iter().filter(|name| can_build(name));
    let names: Vec<String> = names.map(|name| format!("fathom-cli/{name}")).collect();
    format!("--features={}", names.join(","))
}

/// Returns whether a feature can be built here, and says why not.
fn can_build(name: &str) -> bool {
    if name != "mpi" {
        return true;
    }
    let missing = ["mpicc", "mpirun"]
        .into_iter()
        .find(|tool| process::find(tool).is_none());
    if let Some(tool) = missing {
        println!("skipped: no MPI ({tool})");
    }
    missing.is_none()
}

/// Checks the whole workspace with all features.
pub(super) fn clippy(root: &Path) -> Result<()> {
    clippy_of(root, &["--workspace", &all()])
}

/// Checks the default features, and each of the others by itself.
pub(super) fn single(root: &Path) -> Result<()> {
    clippy_of(root, &["--workspace"])?;
    for name in MORE.into_iter().filter(|name| can_build(name)) {
        clippy_of(root, &["--package", "fathom-cli", "--features", name])?;
    }
    Ok(())
}

/// Tests a build without default features, for those who want fewer crates, checks one that has a
/// history, but no Parquet, and tests what a default build says of the features that it lacks.
pub(super) fn fewer(root: &Path) -> Result<()> {
    let none = [
        "--package",
        "fathom-log",
        "--package",
        "fathom-virtual",
        "--package",
        "fathom-cli",
        "--no-default-features",
    ];
    let history = [
        "--package",
        "fathom-cli",
        "--no-default-features",
        "--features",
        "history",
    ];
    clippy_of(root, &none)?;
    clippy_of(root, &history)?;
    let of_logs = ["log_convert::", "stored_logs::", "compressed_logs::"];
    tests_of(root, &none, &["outputs", "in_virtual_time"], &of_logs)?;
    tests_of(
        root,
        &[],
        &["outputs", "tools"],
        &["live::", "http_missing::"],
    )
}

/// Checks all targets of the packages and features that `with` chooses.
fn clippy_of(root: &Path, with: &[&str]) -> Result<()> {
    let strict = ["--all-targets", "--", "-D", "warnings"];
    cargo(root, &[&["clippy"], with, &strict].concat(), &[])
}

/// Runs tests of the packages and features that `with` chooses: in the executables, those that have
/// one of `names` in their own.
fn tests_of(root: &Path, with: &[&str], executables: &[&str], names: &[&str]) -> Result<()> {
    let mut words = [&["test"], with].concat();
    words.extend(executables.iter().flat_map(|name| ["--test", *name]));
    words.push("--");
    words.extend(names);
    cargo(root, &words, &[])
}
