//! Trend of a metric over a large history, as a user waits for it.

use anyhow::Result;

use super::super::figure::Figure;
use super::super::history::HistoryBench;
use super::{Measured, Row, Setting};

/// Whole processes of `fathom history trend` over one series with a few steps.
pub(super) const ROW: Row = Row {
    name: "trend",
    what: "trend with change points over 10,000 stored runs",
    measure,
};

fn measure(setting: &Setting) -> Result<Measured> {
    let bench = HistoryBench::new(setting.programs.fathom.clone())?;
    bench.fill(setting.runs)?;
    let took = bench.least(&["history", "trend", "read.iops"])?;
    if setting.runs < RUNS {
        let why = format!(
            "the figure is for {RUNS} runs; {} took {took:.1} ms",
            setting.runs
        );
        return Ok(Measured::Skipped(why));
    }
    let figure = Figure::at_most("a whole process", took, "ms", 100.0);
    Ok(Measured::Figures(vec![figure]))
}

const RUNS: u32 = 10_000;
