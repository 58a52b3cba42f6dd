//! `--debug` output about a plan, before its jobs start.

use fathom_job::{DebugOptions, Plan, debug_line, option_lines};

use crate::session::{RunEvent, Session};
use crate::translate::JobSetup;

/// Emits the parsed options, the files of each job and its random seeds.
pub fn tell_plan(
    plan: &Plan,
    setups: &[JobSetup],
    debug: &DebugOptions,
    session: &mut Session<'_>,
) {
    let lines = lines(plan, setups, debug, std::process::id());
    if !lines.is_empty() {
        (session.tell)(RunEvent::Debug(&lines));
    }
}

fn lines(plan: &Plan, setups: &[JobSetup], debug: &DebugOptions, process: u32) -> String {
    let mut lines = String::new();
    if debug.includes("parse") {
        lines.push_str(&option_lines(plan, process));
    }
    let mut tell = |kind: &str, text: &str| lines.push_str(&debug_line(kind, process, text));
    for setup in setups {
        let number = setup.place.number;
        if debug.includes_for("file", number) {
            for file in &setup.files {
                tell("file", &format!("add file {}", file.path));
            }
        }
        if debug.includes_for("random", number) {
            // All random numbers of a job derive from one seed.
            tell("random", "FIO_RAND_NR_OFFS=1");
            tell(
                "random",
                &format!("rand_seeds[0]={}", setup.worker.pattern.seed),
            );
        }
    }
    lines
}
