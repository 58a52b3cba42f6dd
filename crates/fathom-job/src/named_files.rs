//! Files that a run reads or writes besides the data of its jobs.

use crate::plan::Settings;

/// A file that the user named for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedFile<'a> {
    /// Option that names it; empty for job files.
    pub option: &'static str,
    /// Noun for messages: `machine file`.
    pub what: &'static str,
    /// Path.
    pub path: &'a str,
}

impl Settings {
    /// Returns the files that a run is made from: job files, and the machine file.
    #[must_use]
    pub fn inputs(&self) -> Vec<NamedFile<'_>> {
        let job_files = self.job_files.iter();
        let job_files = job_files.map(|path| NamedFile {
            option: "",
            what: "job file",
            path,
        });
        let machine = named("--machine", "machine file", self.machine.as_deref());
        job_files.chain(machine).collect()
    }

    /// Returns the files that a run itself writes. With a rank, the record is in a folder.
    #[must_use]
    pub fn outputs(&self) -> Vec<NamedFile<'_>> {
        let outputs = [
            ("--output", "report (`--output`)", &self.output),
            (
                "--save-distribution",
                "machine file of `--save-distribution`",
                &self.save_distribution,
            ),
            ("--record", "record (`--record`)", &self.record),
            (
                "--metrics-file",
                "file of `--metrics-file`",
                &self.metrics_file,
            ),
        ];
        let outputs = outputs.into_iter();
        outputs
            .filter_map(|(option, what, path)| named(option, what, path.as_deref()))
            .collect()
    }
}

fn named<'a>(
    option: &'static str,
    what: &'static str,
    path: Option<&'a str>,
) -> Option<NamedFile<'a>> {
    path.map(|path| NamedFile { option, what, path })
}
