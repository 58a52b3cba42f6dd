//! Sums of reports, ours and fio's.

#![allow(clippy::print_stderr, reason = "says why nothing was compared")]

use std::process::Command;

use serde_json::Value;

use super::{Folder, Run};

/// Returns ops and bytes of the first job by direction.
pub(crate) fn sums(report: &Value) -> [(u64, u64); 3] {
    let sum = |name| {
        let direction: &Value = &report["jobs"][0][name];
        let number = |key: &str| direction[key].as_u64().expect("a number");
        (number("total_ios"), number("io_bytes"))
    };
    ["read", "write", "trim"].map(sum)
}

/// Returns the report of Debian's fio with these options; `None` if it is not installed.
pub(crate) fn by_fio(folder: &Folder, words: &str) -> Option<Value> {
    let mut command = Command::new("timeout");
    command
        .args("20 /usr/bin/fio --output-format=json".split(' '))
        .args(words.split_whitespace())
        .current_dir(folder.path());
    let run = Run::of(command);
    if run.code == Some(127) {
        eprintln!("skipped: fio is not installed");
        return None;
    }
    let start = run.out.find("{\n").expect("a report");
    serde_json::from_str(&run.out[start..]).ok()
}
