//! Voice of a rank: of all processes of a run, rank 0 alone writes to standard output; what the
//! others say goes to standard error, each line after the name of its host.

use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::standard_stream::StandardStream;

/// Lets this process speak as a rank other than 0, for the rest of its life.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "a run is alone"))]
pub(crate) fn speak_as(name: String) {
    // A second name would be of the same rank.
    let _same = NAME.set(name);
}

/// Drops all text from now on, as it has no reader any more. MPICH's launcher dies of text that it
/// cannot pass on, and ends all ranks before they have reported.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "a run is alone"))]
pub(crate) fn fall_silent() {
    // Relaxed: the flag carries no data.
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// Takes text of a rank other than 0, or of one that has fallen silent; returns false in any other
/// process.
pub(crate) fn takes(stream: StandardStream, text: &str) -> bool {
    if IS_SILENT.load(Ordering::Relaxed) {
        return true;
    }
    let Some(name) = NAME.get() else {
        return false;
    };
    if stream == StandardStream::Error {
        // A closed standard error leaves nowhere to report it.
        let _closed = io::stderr().lock().write_all(named(name, text).as_bytes());
    }
    true
}

/// Puts the name in front of each line, in one piece, so that lines of ranks do not mix.
fn named(name: &str, text: &str) -> String {
    let lines = text.lines().map(|line| format!("{name}: {line}\n"));
    lines.collect()
}

static NAME: OnceLock<String> = OnceLock::new();
static IS_SILENT: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_the_name() {
        assert_eq!(
            named("n1", "fathom: a\nhint: b\n"),
            "n1: fathom: a\nn1: hint: b\n"
        );
        assert_eq!(named("n1", "a"), "n1: a\n");
        assert!(!takes(StandardStream::Error, "this process is not a rank"));
    }
}
