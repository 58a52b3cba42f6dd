//! A conductor of many ranks, without links.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use fathom_core::{Nanos, Tick};
use fathom_hosts::{Checks, Conductor, Order, Output, Progress, Rank, Report, Stage, Wave};
use fathom_sys::thread;

use super::super::figure::Figure;
use super::super::report::{Measured, Row};

pub(super) const THOUSAND: Row = Row {
    name: "conducted-1000",
    what: "1,000 conducted ranks, processor time of rank 0, least of 20 runs",
    measure: |_| {
        let mut least = [f64::INFINITY; 2];
        for _ in 0..RUNS {
            let took = conducted(1_000)?;
            least = [least[0].min(took[0]), least[1].min(took[1])];
        }
        Ok(Measured::Figures(vec![
            Figure::at_most("start of a wave", least[0], "ms", 10.0),
            Figure::at_most("reports and sum of a second", least[1], "ms", 2.0),
        ]))
    },
};

/// Leads `ranks` ranks to the start of their first wave, and returns this thread's time in ms from
/// the last rank that is ready until all have their orders, and for a report of each with their
/// sum.
fn conducted(ranks: u32) -> Result<[f64; 2]> {
    let mut now = Tick::new(1_000_000_000);
    let mut conductor = Conductor::new(now, ranks, false)?;
    let checks = Checks::new(&[], Vec::new())?;
    let wave = Wave::new(0);
    let mut told = BTreeSet::new();
    let mut start_ms = 0.0;
    let stages = [Stage::Checked(checks), Stage::LaidOut, Stage::Ready(wave)];
    for (at, stage) in stages.iter().enumerate() {
        let begun = processor_ms();
        for rank in 0..ranks {
            now += Nanos::from_micros(1);
            conductor.handle_report(now, Rank::new(rank), report(stage, 0));
            while let Some(output) = conductor.poll_output() {
                if let Output::Send {
                    to,
                    order: Order::Start(_),
                } = output
                {
                    told.insert(to);
                }
            }
        }
        // With the reports that all are ready: more than the start itself.
        start_ms = processor_ms() - begun;
        let want = if at + 1 == stages.len() { ranks } else { 0 };
        if told.len() != want as usize {
            bail!("{} ranks were told to start, not {want}", told.len());
        }
    }
    let begun = processor_ms();
    let running = Stage::Running(wave);
    for rank in 0..ranks {
        conductor.handle_report(now, Rank::new(rank), report(&running, 1));
        while conductor.poll_output().is_some() {}
    }
    let sum = conductor.progress();
    let second_ms = processor_ms() - begun;
    let ended = Some(sum.jobs_ended).filter(|&ended| ended == ranks);
    ended.with_context(|| format!("{} of {ranks} ranks in the sum", sum.jobs_ended))?;
    Ok([start_ms, second_ms])
}

fn report(stage: &Stage, jobs_ended: u32) -> Report {
    Report {
        stage: stage.clone(),
        wants_stop: None,
        wants_end: None,
        progress: Progress {
            elapsed: Nanos::from_secs(1),
            jobs_ended,
            ..Progress::default()
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "times in ns, far below 2⁵²")]
fn processor_ms() -> f64 {
    thread::processor_time().get() as f64 / 1e6
}

const RUNS: usize = 20;
