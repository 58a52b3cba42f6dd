//! `--metrics-file`: figures of a run for node_exporter's textfile collector.

use std::cell::Cell;
use std::path::PathBuf;

use anyhow::{Context, Result};
use fathom_host::output_file::{self, OutputFile, Stop};
use fathom_job::Settings;
use fathom_record::Record;
use fathom_report::{MetricsFormat, RunMetrics};

use crate::output::{self, StandardStream};

/// File of a run's figures, replaced as a whole each time: the collector never sees a part of one.
///
/// Figures that cannot be written are not kept under another name: the collector would read them
/// beside the earlier ones, as a second run of the same names, for ever. The report has them all.
#[derive(Debug)]
pub(crate) struct MetricsFile {
    path: PathBuf,
    /// A failure was told.
    has_failed: Cell<bool>,
}

impl MetricsFile {
    /// Checks before the run that the file can be written; `None` if there is to be none.
    pub(crate) fn open(settings: &Settings) -> Result<Option<Self>> {
        let Some(path) = settings.metrics_file.as_deref().map(PathBuf::from) else {
            return Ok(None);
        };
        output_file::check(&path).with_context(|| format!("{OPTION}: {}", path.display()))?;
        Ok(Some(Self {
            path,
            has_failed: Cell::new(false),
        }))
    }

    /// Writes the figures while the run goes on (`--status-interval`). The first failure is
    /// reported, and the run continues: each later write tries again.
    pub(crate) fn show(&self, record: &Record) {
        let mut metrics = RunMetrics::of_record(record);
        metrics.is_running = true;
        // Not synced: that I/O would disturb the measurement.
        let Err(error) = self.write(&metrics, false, &Stop::never()) else {
            return;
        };
        if !self.has_failed.replace(true) {
            let path = self.path.display();
            let text = format!("fathom: note: {OPTION}: {path}: {error:#}; the run continues\n");
            output::print(StandardStream::Error, &text);
        }
    }

    /// Writes the figures of the run that ended.
    pub(crate) fn finish(&self, record: &Record, stop: &Stop) -> Result<()> {
        let metrics = RunMetrics::of_record(record);
        let written = self.write(&metrics, true, stop);
        written.with_context(|| format!("{OPTION}: {}", self.path.display()))
    }

    fn write(&self, metrics: &RunMetrics<'_>, is_last: bool, stop: &Stop) -> Result<()> {
        let text = metrics.page(MetricsFormat::Prometheus);
        let mut file = OutputFile::create(&self.path, stop)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        Ok(file.place(is_last)?)
    }
}

const OPTION: &str = "--metrics-file";
