//! Task of the ranks: what rank 0 tells the others before they read their plans.

use std::collections::HashMap;
use std::io;

use fathom_core::EngineInfo;
use fathom_job::{Dialect, Environment};
use serde::{Deserialize, Serialize};

use crate::environment::Process;

/// Task of the ranks, as JSON on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Program and version of rank 0.
    pub(crate) program: String,
    /// Folder of the records, on each host.
    pub(crate) folder: String,
    /// The user has named the folder, so that the records stay.
    pub(crate) keeps_folder: bool,
    /// Under `--client`: what the ranks from 1 on run.
    pub(crate) clients: Option<ClientTask>,
}

/// Task of the ranks under `--client`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientTask {
    /// The program speaks as fio.
    pub(crate) is_fio: bool,
    /// Command lines.
    pub(crate) lines: Vec<Vec<String>>,
    /// Rank from 1 on: the index of its command line.
    pub(crate) line_of: Vec<usize>,
    /// Job files, by their names in the command lines.
    pub(crate) files: HashMap<String, String>,
}

impl ClientTask {
    /// Returns the command line of a rank from 1 on.
    pub(crate) fn line(&self, rank: u32) -> Option<&[String]> {
        let at = usize::try_from(rank.checked_sub(1)?).ok()?;
        self.lines.get(*self.line_of.get(at)?).map(Vec::as_slice)
    }

    pub(crate) const fn dialect(&self) -> Dialect {
        match self.is_fio {
            true => Dialect::Fio,
            false => Dialect::Fathom,
        }
    }
}

/// Environment of a rank: this process, with the place that the MPI tells, and job files that rank 0
/// has sent.
pub(crate) struct RankEnvironment<'a> {
    process: Process,
    rank: u32,
    ranks: u32,
    files: Option<&'a HashMap<String, String>>,
}

impl<'a> RankEnvironment<'a> {
    /// Creates the environment of a rank among those that measure.
    pub(crate) fn new(rank: u32, ranks: u32, client: Option<&'a ClientTask>) -> Self {
        Self {
            process: Process::new(),
            rank,
            ranks,
            files: client.map(|client| &client.files),
        }
    }

    /// Returns the rank among those of this host: as a launcher tells, whichever it is.
    fn on_host(&self) -> Option<String> {
        let told = |name: &&str| self.process.variable(name);
        LOCAL_RANKS.iter().find_map(told)
    }
}

impl Environment for RankEnvironment<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.process.engines()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.files.and_then(|files| files.get(path)) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => self.process.read_file(path),
        }
    }

    fn is_same_file(&self, a: &str, b: &str) -> bool {
        self.process.is_same_file(a, b)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        match self.files.and_then(|files| files.get(STDIN)) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => self.process.read_stdin(),
        }
    }

    /// The variables that `--rank=auto` reads have the place that the MPI tells: that of a launcher
    /// may be missing, and counts rank 0 of `--client`, which measures nothing.
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "OMPI_COMM_WORLD_RANK" => Some(self.rank.to_string()),
            "OMPI_COMM_WORLD_SIZE" => Some(self.ranks.to_string()),
            "OMPI_COMM_WORLD_LOCAL_RANK" => self.on_host(),
            other => self.process.variable(other),
        }
    }

    fn cpus(&self) -> u32 {
        self.process.cpus()
    }

    fn page_size(&self) -> u64 {
        self.process.page_size()
    }

    fn memory_mib(&self) -> u64 {
        self.process.memory_mib()
    }

    fn host_name(&self) -> String {
        self.process.host_name()
    }
}

/// Variables of launchers with the rank on its host: Open MPI, MPICH and Intel MPI, Slurm.
const LOCAL_RANKS: [&str; 3] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
];
/// Name of standard input among the files of a task.
pub(crate) const STDIN: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_reads_what_it_was_sent() {
        let task = ClientTask {
            lines: vec![vec!["a.fio".into()], vec!["b.fio".into()]],
            line_of: vec![1, 0],
            files: HashMap::from([("b.fio".into(), "[b]".into()), (STDIN.into(), "[c]".into())]),
            ..ClientTask::default()
        };
        assert_eq!(task.line(0), None);
        assert_eq!(task.line(1), Some(&["b.fio".to_owned()][..]));
        assert_eq!(task.line(2), Some(&["a.fio".to_owned()][..]));
        assert_eq!(task.line(3), None);
        let environment = RankEnvironment::new(3, 16, Some(&task));
        assert_eq!(environment.read_file("b.fio").unwrap(), b"[b]");
        assert_eq!(environment.read_stdin().unwrap(), b"[c]");
        assert!(environment.read_file("/nowhere/c.fio").is_err());
        let told = environment.variable("OMPI_COMM_WORLD_RANK");
        assert_eq!(told.as_deref(), Some("3"));
        let told = environment.variable("OMPI_COMM_WORLD_SIZE");
        assert_eq!(told.as_deref(), Some("16"));
    }
}
