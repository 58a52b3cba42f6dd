//! Searches on a modelled queue whose answer is known.
//!
//! ```text
//! M/M/1: p99 of resp = ln 100 ÷ (µ − λ)
//!        p99 ≤ 3 ms holds up to λ = 10,000 − 4.605 ÷ 0.003 = 8,465
//! ```

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bench, Figure, each};
use crate::process;

/// Machine of the search, but for its seed.
const MACHINE: &str = "examples/machines/one-server.toml";

impl Bench {
    /// Counts searches that end near the load that theory has, and those of few probes.
    pub(super) fn searches(&self, count: u32) -> Result<[Figure; 2]> {
        let machine = std::fs::read_to_string(process::root()?.join(MACHINE))?;
        let search = |core: usize, at: usize| self.search(core, &machine, at + 1);
        let found = each(self.cores.len(), count as usize, search).into_iter();
        let found = found.collect::<Result<Vec<Found>>>()?;
        let least = found.iter().map(|one| one.load).fold(f64::MAX, f64::min);
        let most = found.iter().map(|one| one.load).fold(0.0, f64::max);
        let probes = found.iter().map(|one| one.probes).max().unwrap_or(0);
        println!("bench: search: {least} to {most} IOPS, {probes} probes at most");
        let of = |is_one: &dyn Fn(&Found) -> bool| {
            let counted = found.iter().filter(|one| is_one(one)).count();
            u32::try_from(counted)
        };
        Ok([
            Figure {
                name: "search, M/M/1: highest load within 2 %".into(),
                count: of(&|one| (one.load / truth() - 1.0).abs() <= 0.02)?,
                of: count,
                bounds: [95.0, 100.0],
            },
            Figure {
                name: "the same: at most 20 probes".into(),
                count: of(&|one| one.probes <= 20)?,
                of: count,
                bounds: [100.0, 100.0],
            },
        ])
    }

    /// Runs a search with seeds of its own.
    fn search(&self, core: usize, machine: &str, seed: usize) -> Result<Found> {
        let name = format!("search-{seed}");
        let machine = machine.replace("\nseed = 1\n", &format!("\nseed = {seed}\n"));
        let file = self.write(&name, &machine, &lab(&name, seed))?;
        let table = self.lab(core, &file, &[])?;
        let rows = table["rows"].as_array().context("no rows")?;
        let load = rows.first().map(|row| &row["highest_passed_iops"]);
        let load = load.and_then(Value::as_f64);
        Ok(Found {
            load: load.with_context(|| format!("{name}: no load passed: {table}"))?,
            probes: rows.len(),
        })
    }
}

/// End of a search.
struct Found {
    load: f64,
    probes: usize,
}

/// Returns the load at which p99 of resp is at its limit, IOPS.
fn truth() -> f64 {
    SERVED - 100.0_f64.ln() / LIMIT_S
}

/// Returns a lab file: a queue of 4,096 ops, so that no op waits for a slot.
fn lab(name: &str, seed: usize) -> String {
    format!(
        "[lab]\nname = \"{name}\"\nmachine = \"{name}-machine.toml\"\nseed = {seed}\n\
         [job]\nrw = \"randread\"\nbs = \"4k\"\nfilename = \"/dev/m\"\nioengine = \"libaio\"\n\
         iodepth = 4096\nnorandommap = true\nrate_process = \"poisson\"\ntime_based = true\n\
         runtime = 6\n\
         [search]\nvary = \"rate_iops\"\nkeep = [\"read.resp_p99 <= {}ms\"]\n\
         precision = \"1%\"\nprobe_most = \"24s\"\n",
        LIMIT_S * 1e3
    )
}

/// Ops per second that the server completes, as its file says.
const SERVED: f64 = 10_000.0;
/// Limit of p99, s.
const LIMIT_S: f64 = 0.003;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_searched_load_and_the_machine_are_those_of_the_example() {
        assert!((truth() - 8464.9).abs() < 0.1, "{}", truth());
        let machine = std::fs::read_to_string(process::root().expect("a root").join(MACHINE));
        let machine = machine.expect("the example");
        assert!(machine.contains("read = { exponential_us = 100 }"));
        assert!(machine.contains("\nseed = 1\n"));
        assert!(lab("s", 7).contains("resp_p99 <= 3ms"));
    }
}
