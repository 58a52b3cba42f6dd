//! Rates, batch sizes and think time.

use fathom_core::{Direction, Nanos, PerDirection};
use fathom_job::Options;
use fathom_workload::{Batching, Pace, Rate, RateProcess, Think};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

/// Translates fio's `iodepth_*` options, with their defaults.
pub(crate) fn batching(options: &Options, depth: u32) -> Batching {
    let or_depth = |value: u32| {
        if value == 0 || value > depth {
            depth
        } else {
            value
        }
    };
    let complete_min = options.iodepth_batch_complete_min.min(depth);
    let submit = match options.submits_singly() {
        true => 1,
        false => or_depth(options.iodepth_batch),
    };
    Batching {
        submit,
        complete_min,
        complete_max: match options.iodepth_batch_complete_max {
            // Reaped one at a time, ops would also be reissued, and transferred, one at a time.
            _ if options.gathers() => depth,
            max if options.unites_batches() => max.clamp(submit.max(complete_min), depth),
            0 => complete_min.max(1),
            max => max.clamp(complete_min.max(1), depth),
        },
        low: or_depth(options.iodepth_low),
    }
}

/// Translates `rate` and `rate_iops`.
pub(crate) fn rates(options: &Options) -> Result<PerDirection<Option<Rate>>, RunProblem> {
    let process = match options.rate_process {
        fathom_job::RateProcess::Linear => RateProcess::Linear,
        fathom_job::RateProcess::Poisson => RateProcess::Poisson,
    };
    let paces = paces(&options.rate, &options.rate_iops, "rate", "rate_iops")?;
    Ok(paces.map(|pace| pace.map(|pace| Rate { pace, process })))
}

/// Translates `rate_min` and `rate_iops_min`.
pub(crate) fn rate_minimums(options: &Options) -> Result<PerDirection<Option<Pace>>, RunProblem> {
    let (bytes, ops) = (&options.rate_min, &options.rate_iops_min);
    paces(bytes, ops, "rate_min", "rate_iops_min")
}

/// Returns one pace per direction; a direction cannot have both a bandwidth and an op rate.
fn paces(
    bytes: &PerDirection<Option<u64>>,
    ops: &PerDirection<Option<u64>>,
    bytes_name: &str,
    ops_name: &str,
) -> Result<PerDirection<Option<Pace>>, RunProblem> {
    let given = |value: Option<u64>| value.filter(|&value| value > 0);
    let mut paces = PerDirection::default();
    for direction in Direction::ALL {
        paces[direction] = match (given(bytes[direction]), given(ops[direction])) {
            (Some(_), Some(_)) => {
                let message = format!("`{bytes_name}` and `{ops_name}` are mutually exclusive");
                return Err(RunProblem::new(ProblemKind::TwoRates, message)
                    .hint(format!("remove `{bytes_name}` or `{ops_name}`")));
            }
            (Some(bytes), None) => Some(Pace::Bytes(bytes)),
            (None, Some(ops)) => Some(Pace::Ops(ops)),
            (None, None) => None,
        };
    }
    Ok(paces)
}

/// Translates `thinktime` and related options; `cycles_hz` is the clock rate for `thinkcycles`.
pub(crate) fn think(options: &Options, cycles_hz: u64) -> Option<Think> {
    // As in fio, the engine's own pause replaces the job's.
    if let Some(pause) = options.engine.pause {
        let time = pause(&options.engine_values);
        return (!time.is_zero()).then_some(Think {
            time,
            spin: Nanos::ZERO,
            blocks: 1,
            count_issues: false,
            io_time: Nanos::ZERO,
            moves_schedule: options.rate_ignore_thinktime,
        });
    }
    let ns = u64::from(options.thinkcycles) * 1_000_000_000 / cycles_hz.max(1);
    let stall = Nanos::new(ns);
    (options.thinktime + stall > Nanos::ZERO).then(|| Think {
        time: options.thinktime + stall,
        spin: options.thinktime_spin.min(options.thinktime) + stall,
        blocks: match options.thinktime_blocks {
            Some(blocks) => blocks.max(1),
            None if options.thinktime_iotime.is_zero() => 1,
            // As in fio, the time alone counts where no number is given.
            None => u32::MAX,
        },
        count_issues: options.thinktime_blocks_issue,
        io_time: options.thinktime_iotime,
        moves_schedule: options.rate_ignore_thinktime,
    })
}
