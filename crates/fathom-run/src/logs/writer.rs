//! Batches in, files out.

use std::fs::File;
use std::io::{self, Write};

use fathom_workload::{Batch, EntryKind};

use super::format::Page;
use super::lines::{self, Gathering};
use super::plan::{JobLogs, LogPlan};

/// Where lines go.
#[derive(Debug)]
pub(super) enum Sink {
    File(File),
    Memory(Vec<u8>),
}

/// Writes what the jobs hand over.
#[derive(Debug)]
pub(super) struct Writer {
    plan: LogPlan,
    outputs: Vec<Output>,
    states: Vec<State>,
    page: Page,
}

#[derive(Debug)]
struct Output {
    sink: Sink,
    /// Nothing more is written behind this.
    failed: Option<io::Error>,
}

#[derive(Debug, Default)]
struct State {
    kept: u64,
    dropped: u64,
    gathering: Option<Gathering>,
}

/// What became of the logs.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) plan: LogPlan,
    /// Entries kept and dropped, by job.
    pub(super) entries: Vec<(u64, u64)>,
    /// By file.
    pub(super) failed: Vec<Option<io::Error>>,
    /// By file.
    pub(super) sinks: Vec<Sink>,
}

impl Writer {
    /// A writer into these sinks, one for each file of the plan.
    pub(super) fn new(plan: LogPlan, sinks: Vec<Sink>) -> Self {
        let outputs = sinks.into_iter().map(|sink| Output { sink, failed: None });
        let states = plan.jobs.iter().map(|job| State {
            gathering: job
                .as_ref()
                .and_then(|job| job.histograms.map(|_| Gathering::new())),
            ..State::default()
        });
        Self {
            outputs: outputs.collect(),
            states: states.collect(),
            page: Page::new(),
            plan,
        }
    }

    /// Writes one batch.
    pub(super) fn batch(&mut self, batch: &Batch) {
        let index = batch.job as usize;
        let state = &mut self.states[index];
        state.dropped += batch.end.map_or(0, |end| end.entries);
        state.kept += kept(batch);
        let Some(job) = &self.plan.jobs[index] else {
            return;
        };
        let page = &mut self.page;
        for &(series, place) in &job.series {
            let output = &mut self.outputs[place];
            lines::series(batch, series, job.columns, page, &mut |page| {
                output.write(page);
            });
            output.write(page);
        }
        if let (Some(place), Some(gathering)) = (job.histograms, &mut state.gathering) {
            let output = &mut self.outputs[place];
            gathering.histograms(batch, job.columns, page, &mut |page| output.write(page));
            output.write(page);
        }
    }

    /// No more batches.
    pub(super) fn finish(self) -> Written {
        let (failed, sinks) = self
            .outputs
            .into_iter()
            .map(|output| (output.failed, output.sink))
            .unzip();
        Written {
            entries: self
                .states
                .iter()
                .map(|state| (state.kept, state.dropped))
                .collect(),
            failed,
            sinks,
            plan: self.plan,
        }
    }
}

/// What was logged, without what only helps to carry it.
fn kept(batch: &Batch) -> u64 {
    let helpers = batch.entries.iter().filter(|entry| {
        matches!(
            entry.kind,
            EntryKind::High | EntryKind::HistogramBegin | EntryKind::HistogramBin
        )
    });
    (batch.entries.len() - helpers.count()) as u64
}

impl Output {
    /// Writes the page and clears it. After an error nothing more is written: the job goes on.
    fn write(&mut self, page: &mut Page) {
        if self.failed.is_none() && !page.written().is_empty() {
            let result = match &mut self.sink {
                Sink::File(file) => file.write_all(page.written()),
                Sink::Memory(bytes) => bytes.write_all(page.written()),
            };
            self.failed = result.err();
        }
        page.clear();
    }
}

impl Written {
    /// Each job with a log, and what was kept and dropped of it.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (&JobLogs, u64, u64)> {
        let jobs = self.plan.jobs.iter().zip(&self.entries);
        jobs.filter_map(|(job, &(kept, dropped))| job.as_ref().map(|job| (job, kept, dropped)))
    }
}
