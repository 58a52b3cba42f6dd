//! What is known of each engine before it is started.

use fathom_job::Options;

/// The engines that there are, with what the translation must know of them.
const ENGINES: &[(&str, Kind)] = &[
    ("io_uring", Kind::Asynchronous),
    ("libaio", Kind::Asynchronous),
    ("mmap", Kind::Synchronous),
    ("null", Kind::Null),
    ("psync", Kind::Synchronous),
    ("pvsync", Kind::Synchronous),
    ("pvsync2", Kind::Synchronous),
    ("sync", Kind::Synchronous),
    ("vsync", Kind::Gathering),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One op at a time.
    Synchronous,
    /// As many as `iodepth`.
    Asynchronous,
    /// Holds back as many as `iodepth`, to move adjacent ones with one call.
    Gathering,
    /// Does nothing; asynchronous from a depth of 2 on.
    Null,
}

/// The names of all engines.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|(name, _)| *name)
}

/// Whether there is an engine of this name.
pub fn is_known(name: &str) -> bool {
    kind(name).is_some()
}

/// Whether the job's engine does one op at a time at this depth.
pub fn is_synchronous(options: &Options, depth: u32) -> bool {
    match kind(&options.ioengine) {
        // Its workers do one each.
        _ if options.offload => false,
        Some(Kind::Synchronous) => true,
        Some(Kind::Gathering | Kind::Null) => depth == 1,
        Some(Kind::Asynchronous) | None => false,
    }
}

/// Whether the engine completes all that it held back at once.
pub fn gathers(options: &Options) -> bool {
    !options.offload && kind(&options.ioengine) == Some(Kind::Gathering)
}

/// Whether the engine leaves files alone.
pub fn is_diskless(name: &str) -> bool {
    kind(name) == Some(Kind::Null)
}

fn kind(name: &str) -> Option<Kind> {
    let known = ENGINES.iter().find(|(known, _)| *known == name);
    known.map(|(_, kind)| *kind)
}
