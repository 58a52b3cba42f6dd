//! The files of the embedded labs.

use std::io;

use fathom_core::EngineInfo;
use fathom_job::Environment;

/// Environment of an embedded lab: its files come from the program, all else from another one.
pub(super) struct Files<'a>(pub(super) &'a dyn Environment);

impl Environment for Files<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.0.engines()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        let text = text_of(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(text.into())
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.0.read_stdin()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.variable(name)
    }

    fn cpus(&self) -> u32 {
        self.0.cpus()
    }

    fn page_size(&self) -> u64 {
        self.0.page_size()
    }

    fn memory_mib(&self) -> u64 {
        self.0.memory_mib()
    }
}

/// Returns the text of an embedded file.
pub(super) fn text_of(path: &str) -> Option<&'static str> {
    let found = FILES.iter().find(|(name, _)| *name == path);
    found.map(|(_, text)| *text)
}

/// Lab files and the published figures beside them, by their paths in `examples/lab`.
pub(super) const FILES: [(&str, &str); 6] = [
    (
        "log-entries.toml",
        include_str!("../../labs/log-entries.toml"),
    ),
    (
        "reference/log-entries-percentiles.csv",
        include_str!("../../reference/log-entries-percentiles.csv"),
    ),
    (
        "aio-submit.toml",
        include_str!("../../labs/aio-submit.toml"),
    ),
    (
        "reference/aio-submit-latency.csv",
        include_str!("../../reference/aio-submit-latency.csv"),
    ),
    ("uring-irq.toml", include_str!("../../labs/uring-irq.toml")),
    (
        "reference/uring-irq-read.csv",
        include_str!("../../reference/uring-irq-read.csv"),
    ),
];
