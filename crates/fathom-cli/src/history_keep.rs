//! A run of `fathom run` in the history.

#[cfg(feature = "history")]
pub(crate) use kept::{HistoryKeeper, reader, with_its_hint, writer};
#[cfg(not(feature = "history"))]
pub(crate) use missing::HistoryKeeper;

#[cfg(feature = "history")]
mod kept {
    use std::path::{Path, PathBuf};

    use anyhow::{Result, anyhow};
    use fathom_host::output_file::{self, Stop};
    use fathom_lab::{FinishedRun, History, HistoryError, HistoryProblem, default_path};
    use fathom_record::Record;
    use fathom_sys::clock;

    use crate::failure::with_hint;
    use crate::output::{self, StandardStream};

    /// The history, open for the run that is about to begin.
    pub(crate) struct HistoryKeeper {
        history: History,
        /// Wall clock at which it was opened.
        opened_ms: u64,
    }

    impl HistoryKeeper {
        pub(crate) fn open() -> Result<Self> {
            let history = writer()?;
            Ok(Self {
                history,
                opened_ms: clock::wall_ms(),
            })
        }

        /// Adds the run. If that fails, or nobody would find it there, the record goes into a file
        /// beside the history.
        pub(crate) fn keep(
            mut self,
            record: &Record,
            tags: &[(String, String)],
            model: Option<&str>,
        ) -> Result<()> {
            let program = concat!(
                "fathom ",
                env!("CARGO_PKG_VERSION"),
                env!("FATHOM_COMMIT_SUFFIX")
            );
            let mut run = FinishedRun::of_record(record, program, model);
            run.tags = tags.to_vec();
            let begun_ms = self.begun_ms(record);
            let added = self.history.check_place().and_then(|()| {
                let run = self.history.add_run(&run, "run", begun_ms, None)?;
                // The file may have been moved while the run was added, too.
                self.history.check_place().map(|()| run)
            });
            let error = match added {
                Ok(Some(run)) => {
                    let line = format!("fathom: history: run {}\n", run.0);
                    output::print(StandardStream::Error, &line);
                    return Ok(());
                }
                Ok(None) => return Ok(()),
                Err(error) => error,
            };
            Err(match rescue(self.history.path(), record) {
                Some(file) => {
                    let file = file.display();
                    let hint = format!("import it later: `fathom history import {file}`");
                    with_hint(format!("{error}; the record is in {file}"), Some(hint))
                }
                None => with_its_hint(error),
            })
        }

        /// Returns the wall clock at the beginning of the run. The times in a modelled one are
        /// virtual, from 1970 on.
        fn begun_ms(&self, record: &Record) -> u64 {
            if record.modelled.is_some() {
                return self.opened_ms;
            }
            let starts = record.jobs.iter().map(|job| job.start_ms);
            let begun_ms = starts.filter(|&start| start > 0).min();
            begun_ms.unwrap_or(record.timestamp_ms)
        }
    }

    /// Opens the history for reading; an older one is migrated first.
    pub(crate) fn reader() -> Result<History> {
        let path = default_path(&|name| std::env::var_os(name)).map_err(with_its_hint)?;
        match History::open_read_only(&path) {
            Err(error) if matches!(error.problem(), HistoryProblem::Older(_)) => writer(),
            opened => opened.map(print_notes).map_err(with_its_hint),
        }
    }

    /// Opens the history for writing, and says what the user should know about it.
    pub(crate) fn writer() -> Result<History> {
        let path = default_path(&|name| std::env::var_os(name)).map_err(with_its_hint)?;
        History::open(&path).map(print_notes).map_err(with_its_hint)
    }

    fn print_notes(history: History) -> History {
        for note in history.notes() {
            output::print(StandardStream::Error, &format!("fathom: note: {note}\n"));
        }
        history
    }

    /// Writes a record beside the history, or into the current directory.
    fn rescue(history: &Path, record: &Record) -> Option<PathBuf> {
        let json = record.to_json().ok()?;
        // Not the time of the record: modelled runs have none, and would replace each other.
        let name = format!(
            "fathom-run-{}-{}.json",
            clock::wall_ms(),
            std::process::id()
        );
        let folders = [history.parent().unwrap_or(Path::new("")), Path::new("")];
        let mut files = folders.iter().map(|folder| folder.join(&name));
        files.find(|file| output_file::write(file, json.as_bytes(), &Stop::never()).is_ok())
    }

    /// Converts an error of the history.
    pub(crate) fn with_its_hint(error: HistoryError) -> anyhow::Error {
        match error.hint() {
            Some(hint) => with_hint(&error, Some(hint)),
            None => anyhow!(error),
        }
    }
}

#[cfg(not(feature = "history"))]
mod missing {
    use anyhow::Result;
    use fathom_record::Record;

    use crate::failure::with_hint;

    /// No history: this program was built without it.
    pub(crate) enum HistoryKeeper {}

    impl HistoryKeeper {
        pub(crate) fn open() -> Result<Self> {
            let why = "history: this program was built without it";
            let hint = "build it with the feature `history`, or unset FATHOM_HISTORY";
            Err(with_hint(why, Some(hint)))
        }

        pub(crate) fn keep(
            self,
            _record: &Record,
            _tags: &[(String, String)],
            _model: Option<&str>,
        ) -> Result<()> {
            match self {}
        }
    }
}
