//! Rules on jobs that verify what they would write (`verify_only`).
//!
//! Such a job draws its ops without issuing them, and reads what a run that writes has left. Where
//! the ops depend on more than its options, it would report blocks that were never written: that is
//! refused.

use fathom_core::Direction;

use super::{JobCheck, problem, smallest};
use crate::plan::Options;
use crate::problem::Problem;
use crate::workload::{ReadWrite, ZoneMode};

impl JobCheck<'_> {
    /// Turns a job with `verify_only` into one that reads what it would write.
    pub(super) fn verify_only(&mut self) {
        let options = &self.layer.options;
        if !options.verification.only {
            return;
        }
        if let Some((option, problem)) = unknown_writes(options) {
            return self.error_at(&[option, "verify_only"], problem);
        }
        let options = &mut self.layer.options;
        match options.rw {
            ReadWrite::Read => {}
            // Writes go where the state of the zones allows, so they cannot be drawn again.
            ReadWrite::Write if options.zones.mode == ZoneMode::Zbd => {
                options.rw = ReadWrite::Read;
                options.block_sizes.read = options.block_sizes.write.clone();
                options.blockalign.read = options.blockalign.write;
                options.percentage_random.read = options.percentage_random.write;
            }
            ReadWrite::Write | ReadWrite::Mixed | ReadWrite::TrimWrite => {
                options.verification.dry_run = Some(options.rw);
                options.rw = ReadWrite::Read;
            }
            ReadWrite::Trim => {
                let why = "`verify_only` of a job that only trims has nothing to verify";
                let problem = problem("verify-only-trims", why).fio("would trim");
                self.error_at(&["rw", "verify_only"], problem.fix("remove the job"));
            }
        }
    }
}

/// Returns the option for which a job cannot tell which blocks were written, with the reason.
fn unknown_writes(options: &Options) -> Option<(&'static str, Problem)> {
    let is_mix = options.rw == ReadWrite::Mixed;
    let rate = Direction::ALL.into_iter().find_map(|direction| {
        let bytes = options.rate[direction].map(|_| "rate");
        bytes.or_else(|| options.rate_iops[direction].map(|_| "rate_iops"))
    });
    let zoned = options.zones.mode == ZoneMode::Zbd;
    let (option, why, in_fio) = if options.trims.percentage > 0 {
        let in_fio = "3.33 would stop with a failed assertion";
        (
            "trim_percentage",
            "what is trimmed depends on the order of completions",
            in_fio,
        )
    } else if let Some(rate) = rate.filter(|_| is_mix) {
        (
            rate,
            "with a rate, the ops of a mix depend on times",
            WOULD_MISS,
        )
    } else if options.number_ios.is_some() && options.readback.backlog > 0 {
        let why = "reads of `verify_backlog` count towards `number_ios`, and their times vary";
        ("number_ios", why, WOULD_MISS)
    } else if zoned && matches!(options.rw, ReadWrite::Mixed | ReadWrite::TrimWrite) {
        (
            "zonemode",
            "the ops of a mix depend on the state of the zones",
            WOULD_MISS,
        )
    } else if options.time_based && overlaps_in_part(options) {
        let why = "later passes of `time_based` may overlap blocks in part";
        ("blockalign", why, WOULD_MISS)
    } else if options.files.append {
        (
            "file_append",
            "they begin at the former end of the file",
            WOULD_MISS,
        )
    } else if !options.randrepeat && options.randseed.is_none() && is_by_chance(options) {
        let why = "with `randrepeat=0` a run draws other ops than the last one";
        ("randrepeat", why, WOULD_MISS)
    } else {
        return None;
    };
    let why = format!("`verify_only` cannot tell which blocks were written: {why}");
    let problem = problem("verify-only-unknown", why).fio(in_fio);
    Some((option, problem.fix(BY_STATE)))
}

/// Returns whether writes may begin within blocks of earlier ones.
fn overlaps_in_part(options: &Options) -> bool {
    let block = smallest(&options.block_sizes.write);
    let align = options.blockalign.write.filter(|&align| align > 0);
    align.is_some_and(|align| !align.is_multiple_of(block))
}

/// Returns whether chance decides which blocks are written, and not only in which order.
fn is_by_chance(options: &Options) -> bool {
    let ends_early = options.io_size.is_some() || options.number_ios.is_some();
    let writes = options.rw != ReadWrite::Read;
    let is_part = options.random && (options.norandommap || ends_early);
    writes && (options.rw == ReadWrite::Mixed || is_part)
}

const WOULD_MISS: &str = "would report blocks that were not written";

const BY_STATE: &str =
    "write with `verify_state_save=1`, and verify with `rw=read` and `verify_state_load=1`";
