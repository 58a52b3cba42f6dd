//! Task of the ranks: what rank 0 sends to the others before they read their plans.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use fathom_core::EngineInfo;
use fathom_job::{Dialect, Environment, KnownRanks, Rank, RankPlace};
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
    /// Hosts of the ranks that measure, in order of rank.
    pub(crate) hosts: Vec<RankHost>,
    /// Under `--client`: what the ranks from 1 on run.
    pub(crate) clients: Option<ClientTask>,
}

impl Task {
    /// Returns the places of the ranks that measure.
    pub(crate) fn places(&self) -> Vec<RankPlace> {
        places(&self.hosts)
    }
}

/// Host of a rank that measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankHost {
    /// Its own name.
    pub(crate) name: String,
    /// Name and port that the user has given with `--client`.
    pub(crate) client: Option<(String, u16)>,
}

/// Returns the places of the ranks on these hosts. Ranks on hosts of one name share a host.
pub(crate) fn places(hosts: &[RankHost]) -> Vec<RankPlace> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let ranks = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
    let each = (0..ranks).zip(hosts).map(|(rank, host)| {
        let number = seen.entry(&host.name).or_default();
        let on_host = *number;
        *number += 1;
        RankPlace {
            rank: Rank { rank, ranks },
            on_host,
            host: host.name.clone(),
            client: host.client.as_ref().map(|(name, _)| name.clone()),
            port: host.client.as_ref().map(|(_, port)| *port),
        }
    });
    each.collect()
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

/// Environment of a rank: this process, with the places of all, and texts that take the place of
/// files. What is read elsewhere is kept, so that rank 0 of `--client` can send it.
pub(crate) struct RankEnvironment<'a> {
    process: Process,
    /// Texts by path; [`STDIN`] is standard input, which can be read once.
    files: &'a HashMap<String, String>,
    read: RefCell<HashMap<String, String>>,
}

impl<'a> RankEnvironment<'a> {
    /// Creates the environment of a rank among those that measure.
    pub(crate) fn new(
        own: u32,
        places: Vec<RankPlace>,
        files: &'a HashMap<String, String>,
    ) -> Self {
        Self {
            process: Process::among(own, places),
            files,
            read: RefCell::default(),
        }
    }

    /// Returns the texts that were read beside the given ones.
    pub(crate) fn into_read(self) -> HashMap<String, String> {
        self.read.into_inner()
    }

    /// Returns the text that takes the place of a file, or reads and keeps it.
    fn text(&self, path: &str, read: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
        if let Some(text) = self.files.get(path) {
            return Ok(text.clone().into_bytes());
        }
        let text = read()?;
        let kept = String::from_utf8_lossy(&text).into_owned();
        self.read.borrow_mut().insert(path.to_owned(), kept);
        Ok(text)
    }
}

impl Environment for RankEnvironment<'_> {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.process.engines()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        self.text(path, || self.process.read_file(path))
    }

    fn is_same_file(&self, a: &str, b: &str) -> bool {
        self.process.is_same_file(a, b)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        self.text(STDIN, || self.process.read_stdin())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.process.variable(name)
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

    fn ranks(&self) -> Option<KnownRanks<'_>> {
        self.process.ranks()
    }
}

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
        let environment = RankEnvironment::new(0, Vec::new(), &task.files);
        assert_eq!(environment.read_file("b.fio").unwrap(), b"[b]");
        assert_eq!(environment.read_stdin().unwrap(), b"[c]");
        assert!(environment.read_file("/nowhere/c.fio").is_err());
    }

    #[test]
    fn ranks_on_hosts_of_one_name_are_counted_there() {
        let host = |name: &str, client: Option<(&str, u16)>| RankHost {
            name: name.into(),
            client: client.map(|(name, port)| (name.to_owned(), port)),
        };
        let hosts = [
            host("n1", None),
            host("n2", Some(("10.0.0.2", 9000))),
            host("n1", None),
        ];
        let found = places(&hosts);
        let want = [(0, 0, "n1"), (1, 0, "n2"), (2, 1, "n1")];
        let got = found
            .iter()
            .map(|place| (place.rank.rank, place.on_host, &*place.host));
        assert_eq!(got.collect::<Vec<_>>(), want);
        assert!(found.iter().all(|place| place.rank.ranks == 3));
        assert_eq!(found[1].client.as_deref(), Some("10.0.0.2"));
        assert_eq!((found[0].port, found[1].port), (None, Some(9000)));
    }
}
