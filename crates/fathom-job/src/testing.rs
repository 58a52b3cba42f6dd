//! Environment of tests: an invented machine without files.

use std::collections::HashMap;
use std::io;

use fathom_core::EngineInfo;
use fathom_engine::Registry;

use crate::Environment;
use crate::rank_place::{KnownRanks, RankPlace};

/// Variables set by the test, 4 CPUs and 8 GiB of memory.
pub(crate) struct World {
    engines: Registry,
    variables: HashMap<String, String>,
    ranks: Option<(u32, Vec<RankPlace>)>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            engines: Registry::built_in(),
            variables: HashMap::new(),
            ranks: None,
        }
    }
}

impl World {
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn with_ranks(mut self, own: u32, all: &[RankPlace]) -> Self {
        self.ranks = Some((own, all.to_vec()));
        self
    }
}

impl Environment for World {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.engines.infos()
    }

    fn read_file(&self, _: &str) -> io::Result<Vec<u8>> {
        Err(io::Error::from_raw_os_error(2))
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.read_file("-")
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn cpus(&self) -> u32 {
        4
    }

    fn page_size(&self) -> u64 {
        4096
    }

    fn memory_mib(&self) -> u64 {
        8192
    }

    fn ranks(&self) -> Option<KnownRanks<'_>> {
        let (own, all) = self.ranks.as_ref()?;
        Some(KnownRanks { own: *own, all })
    }
}
