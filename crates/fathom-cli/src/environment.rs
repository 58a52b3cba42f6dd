//! Access of the job language to the process: files, environment variables, the machine.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use fathom_core::EngineInfo;
use fathom_engine::Registry;
use fathom_host::output_file::is_same_file;
use fathom_job::{Environment, JOB_FILE_BYTES_MAX, KnownRanks, RankPlace};
use fathom_sys::system;

use crate::engines;

/// Files, variables and machine of this process, and the engines of this program.
pub(crate) struct Process {
    engines: Registry,
    /// Processors and memory in MiB, asked for once: a lab in virtual time reads a job for each of
    /// its runs, and the C library reads files of sysfs and procfs each time.
    cpus: OnceLock<u32>,
    memory_mib: OnceLock<u64>,
    /// Names of the files that were read.
    read: Mutex<BTreeSet<String>>,
    /// Own rank, and the places of all, where a launcher reports them.
    ranks: Option<(u32, Vec<RankPlace>)>,
}

impl Process {
    pub(crate) fn new() -> Self {
        Self {
            engines: engines::registry(),
            cpus: OnceLock::new(),
            memory_mib: OnceLock::new(),
            read: Mutex::default(),
            ranks: None,
        }
    }

    /// Creates the environment of a rank among others, in order of rank.
    pub(crate) fn among(own: u32, all: Vec<RankPlace>) -> Self {
        Self {
            ranks: Some((own, all)),
            ..Self::new()
        }
    }

    /// Returns the names of the files that were read.
    pub(crate) fn files_read(&self) -> BTreeSet<String> {
        self.read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Environment for Process {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.engines.infos()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        self.read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned());
        read(file)
    }

    fn is_same_file(&self, a: &str, b: &str) -> bool {
        let plain = |path: &str| path.trim_start_matches("./").to_owned();
        plain(a) == plain(b) || is_same_file(Path::new(a), Path::new(b))
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        read(io::stdin().lock())
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn cpus(&self) -> u32 {
        *self.cpus.get_or_init(system::cpus_online)
    }

    fn page_size(&self) -> u64 {
        system::page_size()
    }

    fn memory_mib(&self) -> u64 {
        *self.memory_mib.get_or_init(|| system::memory_bytes() >> 20)
    }

    fn host_name(&self) -> String {
        system::kernel().host
    }

    fn ranks(&self) -> Option<KnownRanks<'_>> {
        let (own, all) = self.ranks.as_ref()?;
        Some(KnownRanks { own: *own, all })
    }
}

/// Reads one byte more than a job file may have, enough to refuse it: `/dev/zero` never ends.
fn read(source: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    source.take(JOB_FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    Ok(text)
}
