//! Checks of builds with more features than the default, with fewer, and with one at a time.

use std::path::Path;

use anyhow::Result;

use super::cargo;
use crate::features::{MORE, all, can_build};

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
