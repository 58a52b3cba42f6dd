//! The fixed number of buffers with which an exchange is fastest.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::super::pairs::Bench;
use super::super::statistics::Spread;
use super::rows::{Options, bare_host};
use super::trial::{self, Ends, Exchange};

/// Settings found to be the best, by row.
pub(crate) type Choice = BTreeMap<&'static str, Ends>;

/// Returns the best of the fixed settings of a row's namespace, found once.
///
/// The settings compete in rounds, and the highest median wins. The runs that follow do not take
/// part in the choice: the best of several values that were chosen for being high is too high.
pub(crate) fn best_fixed(
    bench: &mut Bench,
    row: &'static str,
    exchange: Exchange,
    settings: &[Options],
) -> Result<Ends> {
    if let Some(&ends) = bench.best.get(row) {
        return Ok(ends);
    }
    let mut rates = vec![Vec::new(); settings.len()];
    for _ in 0..ROUNDS {
        for (options, rates) in settings.iter().zip(&mut rates) {
            rates.push(trial::run(bench, exchange, bare_host(options))?.iops);
        }
    }
    let medians = settings.iter().zip(&rates);
    let medians = medians.map(|(options, rates)| (options, Spread::of(rates).middle));
    let best = medians.max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (options, iops) = best.context("no settings")?;
    println!(
        "bench:   best fixed: {} ({iops:.0} IOPS)",
        options.join(" ")
    );
    let ends = bare_host(options);
    bench.best.insert(row, ends);
    Ok(ends)
}

/// Runs of each setting before the choice.
const ROUNDS: usize = 3;
