//! What the job language may ask of the world: files, the environment, the machine.

use std::io::{self, Read};

use fathom_job::Surroundings;
use fathom_sys::system;

/// The process's own.
pub(crate) struct Process;

impl Surroundings for Process {
    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        Ok(text)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn cpus(&self) -> u32 {
        system::cpus_online()
    }

    fn page_size(&self) -> u64 {
        system::page_size()
    }

    fn memory_mib(&self) -> u64 {
        system::memory_bytes() >> 20
    }
}
