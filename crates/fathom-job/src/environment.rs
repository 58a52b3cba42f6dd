//! Access of the parser to files and the machine.

use std::io;

use fathom_core::EngineInfo;

use crate::rank_place::KnownRanks;

/// Files, environment variables and machine facts that job files may refer to.
///
/// The parser itself does no I/O: everything from outside comes through this trait, so that tests
/// and the fuzzer run it on a table of texts. An implementation need not cache; the parser asks
/// once per use.
pub trait Environment {
    /// Returns the facts about the engines that a job can name, in the order in which help lists
    /// them. Their own options become options of the job language.
    fn engines(&self) -> &[&'static EngineInfo];

    /// Returns the content of a file. Implementations may stop reading one byte past
    /// [`crate::JOB_FILE_BYTES_MAX`].
    ///
    /// # Errors
    /// The error of opening or reading the file.
    fn read_file(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Returns whether two names lead to the same file. The default compares the names only.
    fn is_same_file(&self, a: &str, b: &str) -> bool {
        a.trim_start_matches("./") == b.trim_start_matches("./")
    }

    /// Returns the content of standard input, with the same limit as [`Self::read_file`].
    ///
    /// # Errors
    /// The error of reading it.
    fn read_stdin(&self) -> io::Result<Vec<u8>>;

    /// Returns the value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the number of CPUs.
    fn cpus(&self) -> u32;

    /// Returns the page size in bytes.
    fn page_size(&self) -> u64;

    /// Returns the machine's memory in MiB.
    fn memory_mib(&self) -> u64;

    /// Returns the name of this host.
    fn host_name(&self) -> String {
        "localhost".into()
    }

    /// Returns the ranks of the run, where the launcher reports them; `None` leaves the rank to
    /// `--rank`.
    fn ranks(&self) -> Option<KnownRanks<'_>> {
        None
    }
}
