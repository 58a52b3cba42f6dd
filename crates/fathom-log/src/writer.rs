//! The writer: batches of log entries in, files out.

use std::io;

use fathom_workload::Batch;

use super::histograms::HistogramAssembly;
use super::lines;
use super::output::{LogFormat, Output, Sink};
use super::plan::{JobLogs, LogFile, LogPlan};
use super::tap::TappedOps;

/// Writer of all logs, on one thread.
#[derive(Debug)]
pub(super) struct Writer {
    plan: LogPlan,
    outputs: Vec<Output>,
    states: Vec<JobState>,
    tap: Option<TappedOps>,
}

#[derive(Debug, Default)]
struct JobState {
    lines: LineCounts,
    assembly: Option<HistogramAssembly>,
}

/// Lines of one job, over all its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines written to the files.
    pub kept: u64,
    /// Lines lost: the buffers were full, or a file could not be written.
    pub dropped: u64,
}

/// Result of writing the logs.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) plan: LogPlan,
    /// By job.
    pub(super) lines: Vec<LineCounts>,
    /// By file.
    pub(super) failed: Vec<Option<io::Error>>,
    /// By file.
    pub(super) sinks: Vec<Option<Sink>>,
    pub(super) ops: Option<TappedOps>,
}

impl Writer {
    /// Creates a writer into these sinks, one per file of the plan.
    pub(super) fn new(plan: LogPlan, sinks: Vec<Sink>) -> Self {
        let page_bytes = page_bytes(&plan.files);
        let outputs = plan.files.iter().zip(sinks);
        let outputs = outputs.map(|(file, sink)| Output::new(sink, &file.form, page_bytes));
        let outputs = outputs.collect();
        let states = plan.jobs.iter().map(|job| JobState {
            assembly: job
                .as_ref()
                .and_then(|job| job.histograms.map(|_| HistogramAssembly::new())),
            ..JobState::default()
        });
        Self {
            outputs,
            states: states.collect(),
            tap: plan.tap.then(|| TappedOps::new(plan.jobs.len())),
            plan,
        }
    }

    /// Writes one batch.
    pub(super) fn batch(&mut self, batch: &Batch) {
        let index = batch.job as usize;
        let JobState { lines, assembly } = &mut self.states[index];
        lines.dropped += batch.end.map_or(0, |end| end.lines);
        let Some(job) = &self.plan.jobs[index] else {
            return;
        };
        if let Some(tap) = &mut self.tap {
            tap.keep(batch);
        }
        for &(series, place) in &job.series {
            let output = &mut self.outputs[place];
            lines.kept += lines::series(batch, series, job.columns, output);
            lines.move_to_dropped(output.take_lost());
        }
        if let (Some(place), Some(assembly)) = (job.histograms, assembly) {
            let output = &mut self.outputs[place];
            let counts_of_batch = assembly.histograms(batch, job.columns, output);
            lines.kept += counts_of_batch.kept;
            lines.dropped += counts_of_batch.dropped;
            lines.move_to_dropped(output.take_lost());
        }
    }

    /// Writes what is left and finishes all files.
    pub(super) fn finish(mut self) -> Written {
        for (place, output) in self.outputs.iter_mut().enumerate() {
            output.flush();
            let lost = output.take_lost();
            // In a file of several jobs, the lost lines most likely belong to the last job.
            let jobs = self.plan.jobs.iter().zip(&mut self.states).rev();
            let mut of_file = jobs.filter(|(job, _)| {
                let job = job.as_ref();
                job.is_some_and(|job| job.writes(place))
            });
            if let Some((_, state)) = of_file.next() {
                state.lines.move_to_dropped(lost);
            }
        }
        let ends = self.outputs.into_iter().map(Output::into_end);
        let (failed, sinks) = ends.unzip();
        Written {
            lines: self.states.iter().map(|state| state.lines).collect(),
            failed,
            sinks,
            ops: self.tap,
            plan: self.plan,
        }
    }
}

impl LineCounts {
    /// Moves `lost` lines, counted as written before, to the dropped ones.
    const fn move_to_dropped(&mut self, lost: u64) {
        self.kept = self.kept.saturating_sub(lost);
        self.dropped += lost;
    }
}

impl Written {
    /// Returns the line counts by setup; `None` for jobs without a log.
    pub(super) fn by_setup(&self) -> Vec<Option<LineCounts>> {
        let jobs = self.plan.jobs.iter().zip(&self.lines);
        jobs.map(|(job, &lines)| {
            job.as_ref()
                .is_some_and(|job| job.is_requested)
                .then_some(lines)
        })
        .collect()
    }

    /// Iterates over the jobs with a log and their line counts.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (&JobLogs, LineCounts)> {
        let jobs = self.plan.jobs.iter().zip(&self.lines);
        jobs.filter_map(|(job, &lines)| job.as_ref().map(|job| (job, lines)))
    }
}

/// Returns the size of each file's page, bytes.
pub(super) fn page_bytes(files: &[LogFile]) -> usize {
    let most = files.iter().map(|file| match file.form.format {
        LogFormat::Text => PAGE_BYTES_MAX,
        LogFormat::Records(format) => format.page_bytes_max,
    });
    page_bytes_of(files.len(), most.max().unwrap_or(PAGE_BYTES_MAX))
}

/// Returns the page size for this number of files, at most `most` bytes.
pub(super) fn page_bytes_of(files: usize, most: usize) -> usize {
    let all = if most > PAGE_BYTES_MAX {
        TABLE_PAGES_BYTES_MAX
    } else {
        PAGES_BYTES_MAX
    };
    (all / files.max(1)).clamp(PAGE_BYTES_MIN, most)
}

/// Memory for the pages of all files together, unless thousands of files need the minimum each.
const PAGES_BYTES_MAX: usize = 8 << 20;
/// The same if some logs are tables.
const TABLE_PAGES_BYTES_MAX: usize = 16 << 20;
/// Largest page of a text or compressed log, bytes: one `write` each, large enough that the system
/// call is a small part of the cost.
pub(super) const PAGE_BYTES_MAX: usize = 256 << 10;
/// Largest page of a table, bytes: 65,536 lines of 64 bytes. A page becomes a row group, and
/// readers of Parquet are fast only with large ones.
pub(super) const TABLE_PAGE_BYTES_MAX: usize = 4 << 20;
/// Smallest page, bytes: a few lines.
const PAGE_BYTES_MIN: usize = 2 << 10;
