//! Every kind of target under every kind of access, in namespaces of their own: what must happen,
//! and that nothing but the target changes.
//!
//! ```text
//! test ──► unshare(1) ──► this program again: builds a machine, runs fathom, compares
//!   └ undoes what would outlive the namespaces, even if the second was killed
//! ```

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "a test says what it skips")]

mod cell;
mod machine;
mod outside;
mod snapshot;
mod table;
mod tools;

use std::path::PathBuf;

use machine::Machine;
use outside::Outside;

#[test]
fn root_in_a_mount_namespace() {
    Outside::new().run("matrix", &["--mount", "--net", "--propagation", "private"]);
}

#[test]
fn an_ordinary_user_in_a_user_namespace() {
    let namespaces = ["--user", "--map-root-user", "--mount", "--net"];
    Outside::new().run("matrix", &namespaces);
}

#[test]
fn a_device_that_is_mounted_while_a_run_goes_on() {
    Outside::new().run(
        "meanwhile",
        &["--mount", "--net", "--propagation", "private"],
    );
}

/// Body of the second program; does nothing when run as a test.
#[test]
#[ignore = "the other tests run it in namespaces"]
fn inside() {
    let Some(folder) = std::env::var_os(outside::FOLDER).map(PathBuf::from) else {
        println!("skipped: not called by another test");
        return;
    };
    let machine = Machine::build(&folder);
    match std::env::var(outside::SUBJECT).unwrap().as_str() {
        "matrix" => cell::run_all(&machine),
        "meanwhile" => cell::mounted_meanwhile(&machine),
        other => panic!("there is no subject `{other}`"),
    }
}
