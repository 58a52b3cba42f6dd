//! Content of written data, syncs, verification, and the statistics to record.

use fathom_core::{Direction, Nanos, OptionEffect, Storage};
use fathom_job::{DedupeMode, Job, LogOptions, Options, TrimOptions, Verify};
use fathom_workload::{
    BufferConfig, BufferFill, Compressible, Dedupe, HeaderUnfit, Measure, Mix, PatternConfig,
    RangeSync, Repeated, SyncRules, TrimRule, Verifier, VerifyBacklog, VerifyConfig, VerifyMethod,
};

use super::pattern::{self, uses};
use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

/// Returns the content of write buffers, for a job that works on `bytes` of its files. `verify`
/// generates its own content for each op.
///
/// Observed with fio 3.33 over all combinations of these options: compressible and duplicate data
/// take precedence over a pattern, and a pattern over zeros. `buffer_compress_percentage` and
/// `dedupe_percentage`, even if 0, disable scrambling. `dedupe_percentage` always implies
/// `refill_buffers` (set by the parser); `buffer_compress_percentage` does from 1 to 99 %, unless
/// `refill_buffers` is given.
pub fn buffers(options: &Options, seed: u64, bytes: u64) -> BufferConfig {
    let pattern = options.buffer_pattern.as_ref().filter(|p| !p.is_empty());
    let percent = options.content.compress_percentage;
    let compress = compress(options);
    let dedupe = dedupe(options, seed, bytes);
    let fill = match pattern {
        Some(pattern) if compress.is_some() || dedupe.is_none() => {
            BufferFill::Pattern(pattern.clone())
        }
        _ if compress.is_some() || dedupe.is_some() => BufferFill::Random,
        _ if options.zero_buffers || percent == Some(100) => BufferFill::Zero,
        _ => BufferFill::Random,
    };
    // A read overwrites the pattern in the buffer.
    let spoiled = pattern.is_some() && uses(options, Direction::Read);
    let implied = compress.is_some() && !options.refill_given;
    let refill = options.refill_buffers || options.verify != Verify::None || spoiled || implied;
    // Zeros stay zeros unless the job enables scrambling.
    let scramble = options.scramble_buffers.unwrap_or(fill != BufferFill::Zero);
    let is_shaped = percent.is_some() || options.content.dedupe_percentage.is_some();
    BufferConfig {
        scramble: scramble && !refill && !is_shaped,
        fill,
        refill,
        compress,
        dedupe,
    }
}

/// Returns the share of `buffer_compress_percentage`; `None` for 0 % (random content) and 100 %
/// (zeros or the pattern).
fn compress(options: &Options) -> Option<Compressible> {
    let percent = options.content.compress_percentage?;
    (1..100).contains(&percent).then_some(Compressible {
        percent,
        chunk: options.content.compress_chunk,
    })
}

/// Translates `dedupe_percentage` and related options.
fn dedupe(options: &Options, seed: u64, bytes: u64) -> Option<Dedupe> {
    let content = &options.content;
    let of = match content.dedupe_mode {
        DedupeMode::Repeat => Repeated::Last,
        DedupeMode::WorkingSet => {
            let buffers = bytes / pattern::bounds(options, Direction::Write).0.max(1);
            let percent = u64::from(content.dedupe_working_set_percentage);
            let count = u128::from(buffers) * u128::from(percent) / 100;
            Repeated::Set {
                // `dedupe_global`: jobs share one working set.
                seed: match content.dedupe_global {
                    true => options.randseed.unwrap_or(0),
                    false => seed,
                },
                count: u64::try_from(count).unwrap_or(u64::MAX).max(1),
            }
        }
    };
    let percent = content.dedupe_percentage.filter(|&percent| percent > 0)?;
    Some(Dedupe { percent, of })
}

/// Returns the syncs during the job and at its end.
pub fn sync_rules(options: &Options) -> SyncRules {
    SyncRules {
        range: options.files.sync_range.map(|range| RangeSync {
            every: range.every,
            flags: range.flags,
        }),
        full_every: options.fsync,
        data_every: options.fdatasync,
        at_end: options.end_fsync,
        on_close: options.fsync_on_close,
        each_write: options.sync > 0,
    }
}

/// Translates the `verify` options, for a job whose ops follow this pattern.
pub fn verify_in(
    pattern: &PatternConfig,
    job: &Job,
    number: u32,
) -> Result<Option<VerifyConfig>, RunProblem> {
    let at_option = |problem: RunProblem| problem.at(job, "verify");
    let verify = verify(&job.options, number).map_err(at_option)?;
    // An engine that moves no data has nothing to verify.
    if let Some(verify) = verify.as_ref().filter(|_| job.options.moves_data()) {
        check_verify(verify, pattern).map_err(at_option)?;
    }
    Ok(verify)
}

/// Translates the `verify` options for the job with this thread number.
pub fn verify(options: &Options, number: u32) -> Result<Option<VerifyConfig>, RunProblem> {
    let method = match options.verify {
        Verify::None => return Ok(None),
        Verify::Checksum(checksum) => VerifyMethod::Checksum(checksum),
        Verify::PatternHeader => VerifyMethod::PatternHeader,
        Verify::Pattern => VerifyMethod::Pattern,
        Verify::Null => VerifyMethod::Null,
    };
    if options.bs_is_seq_rand {
        let message = "`verify` with `bs_is_seq_rand` exists in fio, but not yet in Fathom";
        return Err(RunProblem::new(ProblemKind::VerifyByOrder, message).hint("remove one of them"));
    }
    let pattern = options.verify_pattern.clone().filter(|p| !p.is_empty());
    if method.compares_pattern() && pattern.is_none() {
        return Err(RunProblem::new(
            ProblemKind::NoVerifyPattern,
            "this `verify` needs a pattern",
        )
        .hint("add `verify_pattern=0xdeadbeef`"));
    }
    let own = &options.verification;
    Ok(Some(VerifyConfig {
        method,
        pattern,
        pattern_offsets: options.verify_pattern_offsets.clone(),
        pattern_interval: own.pattern_interval,
        layout: own.layout,
        interval: own.interval,
        header_offset: own.header_offset,
        checks_sequence: own.checks_sequence,
        checks_seed: own.checks_seed,
        is_fatal: own.is_fatal,
        dumps: own.dumps,
        has_state: false,
        // What went to a peer cannot be read back; the peer verifies it.
        on_device: compares_on_device(options)?,
        read_back: options.do_verify && options.engine.storage != Storage::Peer,
        zeros_after_trim: options.trims.verify_zero,
        backlog: backlog(options),
        trims: trims(options.trims),
        // The block header stores 16 bits.
        thread: u16::try_from(number & 0xffff).unwrap_or(u16::MAX),
    }))
}

/// Returns whether the device compares what is read back.
fn compares_on_device(options: &Options) -> Result<bool, RunProblem> {
    let is_asked = options.has_effect(OptionEffect::ComparedReadback);
    if is_asked && options.verify != Verify::Pattern {
        let message = "a device can only compare blocks that consist of a known pattern";
        let problem = RunProblem::new(ProblemKind::NoVerifyPattern, message);
        return Err(problem.hint("use `verify=pattern`, or remove `verify_mode`"));
    }
    Ok(is_asked)
}

/// Translates `trim_percentage` and its family.
fn trims(asked: TrimOptions) -> Option<TrimRule> {
    let writes = Some(asked.backlog).filter(|&writes| writes > 0);
    let batch = match asked.batch {
        0 => writes.unwrap_or(u64::MAX),
        batch => batch.into(),
    };
    (asked.percentage > 0).then_some(TrimRule {
        percent: asked.percentage,
        writes,
        batch,
    })
}

/// Translates `verify_backlog`: batches read back all of the backlog unless told otherwise.
fn backlog(options: &Options) -> Option<VerifyBacklog> {
    let own = &options.readback;
    let reads = match own.backlog_batch {
        0 => own.backlog,
        reads => reads,
    };
    (own.backlog > 0).then_some(VerifyBacklog {
        writes: own.backlog,
        reads,
    })
}

/// Checks that the blocks that a job's ops have in common hold a verification header.
///
/// The worker needs it too, but would refuse only after files are laid out.
fn check_verify(verify: &VerifyConfig, pattern: &PatternConfig) -> Result<(), RunProblem> {
    let sizes = match pattern.mix {
        Mix::Read | Mix::Trim | Mix::ReadWrite { read: 100 } => &pattern.sizes.read,
        Mix::Write | Mix::TrimWrite | Mix::ReadWrite { .. } => &pattern.sizes.write,
    };
    let verifier = Verifier::new(verify, sizes, pattern.seed);
    verifier.map(|_fits| ()).map_err(|error| {
        let hint = match error {
            HeaderUnfit::TooSmall { .. } => {
                "use one block size, or sizes with a large common divisor"
            }
            HeaderUnfit::Offset { .. } => "change `verify_offset`, or leave it out",
        };
        RunProblem::new(ProblemKind::VerifyBlocksTooSmall, error.to_string()).hint(hint)
    })
}

/// Returns the statistics to record. The clat histogram is kept even if its percentiles are not
/// shown, since the report derives its distribution lines from it.
pub fn measure(options: &Options) -> Measure {
    let on = |disabled: bool| !(disabled || options.gtod_reduce);
    let (slat, clat, lat) = (
        on(options.disable_slat),
        on(options.disable_clat),
        on(options.disable_lat),
    );
    Measure {
        slat,
        clat,
        lat,
        // As in fio, whatever `disable_bw` says: that affects only the bandwidth log.
        bandwidth: true,
        slat_histogram: slat && options.slat_percentiles,
        clat_histogram: clat,
        lat_histogram: lat && options.lat_percentiles,
        bandwidth_sample: bandwidth_window(&options.logs),
        iops_sample: iops_window(&options.logs),
    }
}

/// Returns the length of a bandwidth sample, and of a window of the bandwidth log.
pub fn bandwidth_window(logs: &LogOptions) -> Nanos {
    window(logs.bandwidth_ms, logs.bandwidth.as_ref(), logs.average_ms)
}

/// Returns the length of an IOPS sample, and of a window of the IOPS log.
pub fn iops_window(logs: &LogOptions) -> Nanos {
    window(logs.iops_ms, logs.iops.as_ref(), logs.average_ms)
}

/// Returns the sample length as in fio: the series' own option, else the window of its log, else
/// 500 ms.
fn window(own_ms: Option<u32>, log: Option<&String>, average_ms: u32) -> Nanos {
    let of_log = (log.is_some() && average_ms > 0).then_some(average_ms);
    own_ms
        .or(of_log)
        .map_or(SAMPLE, |ms| Nanos::from_millis(u64::from(ms)))
}

/// fio's default for `bwavgtime` and `iopsavgtime`.
const SAMPLE: Nanos = Nanos::from_millis(500);
