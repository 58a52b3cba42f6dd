//! Rules about rates, pauses and runtimes.

use fathom_core::{Direction, Nanos};
use fathom_setup::translate::pattern::uses;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "ends-early",
        "a runtime longer than the size lasts",
        ends_early,
    ),
    Rule::new(
        "rate-beyond-thinktime",
        "a rate that think time makes unreachable",
        rate_beyond_thinktime,
    ),
    Rule::new(
        "rate-out-of-reach",
        "a rate that no device reaches at this size and depth",
        rate_out_of_reach,
    ),
    Rule::new("rate-unused", "a rate for an unused direction", rate_unused),
    Rule::new(
        "ramp-fills-run",
        "a ramp time as long as the measured time",
        ramp_fills_run,
    ),
    Rule::new(
        "thinktime-empties-queue",
        "pauses before the queue is full",
        thinktime_empties_queue,
    ),
    Rule::new("loops-unused", "loops with time_based", loops_unused),
];

fn ends_early(view: &JobView<'_>) -> Option<RuleMatch> {
    let (options, worker) = (view.options, &view.setup.worker);
    let runtime = worker.runtime?;
    // With an explicit amount of work, an early end is intended.
    let limited = options.io_size.is_some() || options.number_ios.is_some();
    if worker.time_based || limited || options.fill_device || !view.options.moves_data() {
        return None;
    }
    let bytes = worker.bytes_in_all;
    let bytes = bytes.unwrap_or_else(|| worker.bytes_per_pass.saturating_mul(worker.loops.into()));
    let rate = bytes_per_second(view);
    let lasts_ns = u128::from(bytes) * 1_000_000_000
        / u128::from(rate.unwrap_or(DEVICE_BYTES_PER_S_MAX).max(1));
    let ramp = options.ramp_time.get();
    if lasts_ns >= u128::from(runtime.get().saturating_add(ramp)) {
        return None;
    }
    let mib = bytes >> 20;
    let when = match rate {
        Some(_) => {
            let lasts = Nanos::new(u64::try_from(lasts_ns).unwrap_or(u64::MAX));
            format!("after about {lasts} at the requested rate")
        }
        None => "as soon as they are done".to_owned(),
    };
    RuleMatch::new(
        &["runtime", "size"],
        format!(
            "without `time_based` the job moves its {mib} MiB once and ends {when}: \
             `runtime={runtime}` is only an upper limit"
        ),
        "add `time_based`, or remove `runtime`",
    )
}

/// Returns the bytes per second that the rates request, with the largest ops; `None` if any
/// direction has no rate.
fn bytes_per_second(view: &JobView<'_>) -> Option<u64> {
    let (_, largest) = view.op_bytes();
    let options = view.options;
    let of = |direction| {
        let by_ops = options.rate_iops[direction].map(|ops| ops.saturating_mul(largest));
        let rate = options.rate[direction].or(by_ops);
        rate.filter(|&rate| rate > 0)
    };
    // A direction without a rate is unlimited, and so is the sum.
    let used = Direction::ALL
        .into_iter()
        .filter(|&direction| uses(options, direction));
    used.map(of)
        .try_fold(0_u64, |sum, rate| Some(sum.saturating_add(rate?)))
}

fn rate_beyond_thinktime(view: &JobView<'_>) -> Option<RuleMatch> {
    let think = view.setup.worker.think.as_ref()?;
    if think.io_time > Nanos::ZERO || think.time == Nanos::ZERO {
        return None;
    }
    let asked = view.asked_ops_per_second()?;
    let most = u64::from(think.blocks).saturating_mul(1_000_000_000) / think.time.get();
    if asked <= most {
        return None;
    }
    let (time, blocks) = (think.time, think.blocks);
    RuleMatch::new(
        &["rate_iops", "rate", "thinktime"],
        format!(
            "the rate is {asked} ops per second, but pauses of {time} after every {blocks} ops \
             allow at most {most}"
        ),
        "lower `thinktime` or the rate, or raise `thinktime_blocks`",
    )
}

fn rate_out_of_reach(view: &JobView<'_>) -> Option<RuleMatch> {
    let asked = view.asked_ops_per_second()?;
    let depth = u64::from(view.depth());
    let most = depth
        .saturating_mul(1_000_000_000 / OP_NS_MIN)
        .min(SUBMIT_OPS_PER_S_MAX);
    if !view.options.moves_data() || asked <= most {
        return None;
    }
    let (smallest, _) = view.op_bytes();
    RuleMatch::new(
        &["rate", "rate_iops", "bs"],
        format!(
            "the rate is {asked} ops of {smallest} B per second: at depth {depth} each op would \
             have to complete within {} ns",
            (1_000_000_000 * depth).checked_div(asked).unwrap_or(0)
        ),
        "lower the rate, or raise `bs` or `iodepth`",
    )
}

fn rate_unused(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let has = |direction: Direction| {
        let rates = [&options.rate, &options.rate_iops];
        rates
            .iter()
            .any(|rate| rate[direction].is_some_and(|rate| rate > 0))
    };
    let (used, unused): (Vec<_>, Vec<_>) = Direction::ALL
        .into_iter()
        .partition(|&direction| uses(options, direction));
    // A single value applies to all directions.
    let missed = !used.iter().any(|&direction| has(direction));
    if !missed || !unused.iter().any(|&direction| has(direction)) {
        return None;
    }
    RuleMatch::new(
        &["rate", "rate_iops"],
        "the rate applies to directions that the job does not have: it runs without a limit",
        "write the rates as read,write,trim, or a single one for all",
    )
}

fn ramp_fills_run(view: &JobView<'_>) -> Option<RuleMatch> {
    let (ramp, runtime) = (view.options.ramp_time, view.runtime()?);
    if ramp == Nanos::ZERO || ramp < runtime {
        return None;
    }
    RuleMatch::new(
        &["ramp_time"],
        format!(
            "the ramp time of {ramp} is not shorter than the measured time ({runtime}): most ops \
             are not counted"
        ),
        "lower `ramp_time` or raise `runtime`, which counts from the end of the ramp",
    )
}

fn thinktime_empties_queue(view: &JobView<'_>) -> Option<RuleMatch> {
    let think = view.setup.worker.think.as_ref()?;
    let depth = view.depth();
    if think.io_time > Nanos::ZERO || depth == 1 || think.blocks >= depth {
        return None;
    }
    let blocks = think.blocks;
    RuleMatch::new(
        &["thinktime_blocks", "thinktime"],
        format!(
            "the job drains its queue and pauses after every {blocks} ops: it never reaches \
             `iodepth={depth}`"
        ),
        format!("set `thinktime_blocks={}` or more", depth.saturating_mul(4)),
    )
}

fn loops_unused(view: &JobView<'_>) -> Option<RuleMatch> {
    let worker = &view.setup.worker;
    if !worker.time_based || view.options.loops <= 1 {
        return None;
    }
    RuleMatch::new(
        &["loops"],
        format!(
            "with `time_based` the job runs until `runtime` has passed: `loops={}` has no effect",
            view.options.loops
        ),
        "remove `loops` or `time_based`",
    )
}

/// Bandwidth no device is assumed to exceed, bytes/s: eight lanes of PCIe 4. A job that could end
/// early only above it is assumed to last.
const DEVICE_BYTES_PER_S_MAX: u64 = 14 << 30;
/// Lower bound of an op's latency on a device with a queue, ns.
const OP_NS_MIN: u64 = 2_000;
/// Upper bound of the rate at which one thread submits, ops/s.
const SUBMIT_OPS_PER_S_MAX: u64 = 20_000_000;
