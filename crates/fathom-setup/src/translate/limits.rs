//! Limits of a job: its depth, what ends it, when it begins, and the sizes of its buffers.

use fathom_core::{Direction, Nanos};
use fathom_job::{Options, Verify};

use super::{pattern, seeds};
use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

/// Returns the ramp time; practically infinite for `ramp_size`, which ends the ramp by bytes.
pub(super) fn ramp(options: &Options) -> Nanos {
    match options.ramp_size {
        0 => options.ramp_time,
        _ => Nanos::new(u64::MAX / 2),
    }
}

/// Returns the queue depth: 1 for synchronous engines, whatever `iodepth` says (the parser warns).
pub(super) fn depth(options: &Options) -> u32 {
    let asked = options.iodepth.max(1);
    if options.is_synchronous(asked) {
        1
    } else {
        asked
    }
}

/// Returns the size of a block whose life is followed: that of a trim, as in fio.
pub(super) fn block_lives(options: &Options) -> Result<Option<u32>, RunProblem> {
    let bytes = pattern::bounds(options, Direction::Trim).0;
    let bytes = options.device.block_errors.then(|| op_bytes(bytes));
    bytes.transpose()
}

/// Returns true if `time_based` is effective: it needs a `runtime`, and the parser warns if there
/// is none.
pub(super) fn time_based(options: &Options) -> bool {
    let bounded = options.runtime.is_some_and(|runtime| !runtime.is_zero());
    options.time_based && bounded
}

/// Returns true if no number of bytes ends the job.
pub(super) fn is_endless(options: &Options) -> bool {
    let is_other_work = !options.engine.performs_io() && options.number_ios.is_none();
    time_based(options) || is_other_work
}

/// Returns true if the job starts over until its time has passed.
pub(super) fn has_no_last_pass(options: &Options) -> bool {
    is_endless(options) && options.verification.dry_run.is_none()
}

/// Returns the number of passes; one for a dry run of an endless job.
pub(super) fn loops(options: &Options, asked: u32) -> u32 {
    match is_endless(options) && !has_no_last_pass(options) {
        true => 1,
        false => asked,
    }
}

/// Returns the limit of `number_ios` over all passes; as in fio, `time_based` overrides it. A
/// single pass of ops of one size ends by its bytes instead, which costs no check per op, unless
/// verification adds ops that count, a ramp has ops that do not, or `io_size` may take passes.
pub(super) fn ops_limit(options: &Options) -> Option<u64> {
    let ops = options.number_ios.filter(|_| !time_based(options))?;
    let adds_ops = options.readback.backlog > 0 || options.trims.percentage > 0;
    let adds_ops = adds_ops && options.verify != Verify::None;
    let ramps = !options.ramp_time.is_zero() || options.ramp_size > 0;
    let one_size = only_size(options).is_some();
    let one_pass = options.loops <= 1 && options.io_size.is_none();
    let by_bytes = one_pass && one_size && !adds_ops && !ramps;
    (!by_bytes).then(|| ops.saturating_mul(options.loops.max(1).into()))
}

/// Returns the bytes of a pass, reduced to those of `number_ios` ops if that ends it.
pub(super) fn bytes_per_pass(options: &Options, bytes: u64) -> u64 {
    let ops = options.number_ios.filter(|_| !time_based(options));
    match (ops, only_size(options), ops_limit(options)) {
        (Some(ops), Some(size), None) => bytes.min(ops.saturating_mul(size)),
        _ => bytes,
    }
}

/// Returns the op size, if all ops have the same.
fn only_size(options: &Options) -> Option<u64> {
    let mut sizes: Vec<_> = pattern::sized(options)
        .flat_map(|direction| <[u64; 2]>::from(pattern::bounds(options, direction)))
        .collect();
    sizes.dedup();
    match sizes[..] {
        [size] => Some(size),
        _ => None,
    }
}

pub(super) fn start_delay(options: &Options, seed: u64) -> Nanos {
    let (low, high) = options.startdelay;
    Nanos::new(seeds::within(
        seed,
        START_DELAY,
        low.get(),
        high.get().max(low.get()),
    ))
}

/// Returns the buffer size per slot: that of the largest op that transfers data.
pub(super) fn buffer_bytes(options: &Options) -> Result<u32, RunProblem> {
    let moved = [Direction::Read, Direction::Write];
    let moves = moved.iter().any(|&d| pattern::uses(options, d));
    let largest = pattern::sized(options)
        .filter(|&direction| moves && direction != Direction::Trim)
        .map(|direction| pattern::bounds(options, direction).1)
        .max();
    op_bytes(largest.unwrap_or(0))
}

fn op_bytes(bytes: u64) -> Result<u32, RunProblem> {
    u32::try_from(bytes).map_err(|_| {
        RunProblem::new(
            ProblemKind::BlockSizeTooLarge,
            "block size must be below 4 GiB",
        )
    })
}

/// Purpose of a random number, so that no two uses share one.
const START_DELAY: u64 = 1;
