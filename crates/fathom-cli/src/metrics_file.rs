//! `--metrics-file`: figures of a run for node_exporter's textfile collector.

use std::path::PathBuf;

use anyhow::{Context, Result};
use fathom_host::output_file::{self, OutputFile, Stop};
use fathom_job::Settings;
use fathom_record::Record;
use fathom_report::{MetricsFormat, RunMetrics};

/// File of a run's figures, replaced as a whole each time: the collector never sees a part of one.
#[derive(Clone, Debug)]
pub(crate) struct MetricsFile {
    path: PathBuf,
}

impl MetricsFile {
    /// Checks before the run that the file can be written; `None` if there is to be none.
    pub(crate) fn open(settings: &Settings) -> Result<Option<Self>> {
        let Some(path) = settings.metrics_file.as_deref().map(PathBuf::from) else {
            return Ok(None);
        };
        output_file::check(&path).with_context(|| format!("{OPTION}: {}", path.display()))?;
        Ok(Some(Self { path }))
    }

    /// Writes the figures while the run goes on (`--status-interval`). A failure is not reported:
    /// the last write tries again.
    pub(crate) fn show(&self, record: &Record) {
        let mut metrics = RunMetrics::of_record(record);
        metrics.is_running = true;
        // Not synced: that I/O would disturb the measurement.
        let _later = self.write(&metrics, false, &Stop::never());
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
