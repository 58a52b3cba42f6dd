//! Rules on trims of several ranges.

use fathom_core::Direction;

use super::{JobCheck, OP_MAX, largest, problem};
use crate::plan::{Options, Verify};
use crate::problem::Problem;
use crate::workload::{FileService, ReadWrite, ZoneMode};

impl JobCheck<'_> {
    /// `num_range` needs an engine, and ops that are all trims.
    pub(super) fn trim_ranges(&mut self) {
        let options = &self.layer.options;
        if options.trims.ranges > 1
            && let Some((name, found)) = excluded(options)
        {
            self.error_at(&[name, "num_range"], found);
        }
    }
}

/// Returns the option that several ranges per trim exclude, and the problem.
fn excluded(options: &Options) -> Option<(&'static str, Problem)> {
    let ranges = options.trims.ranges;
    let found = |why: String, fix: &str| problem("no-trim-ranges", why).fix(fix);
    if !options.engine.trim_ranges {
        let why = format!(
            "the engine `{}` trims one range per op, not {ranges}",
            options.engine.name
        );
        let fix = "write `ioengine=io_uring_cmd`, or `num_range=1`";
        return Some(("ioengine", found(why, fix)));
    }
    if options.rw != ReadWrite::Trim {
        let why = format!("only jobs whose ops are all trims have {ranges} ranges per op");
        let fix = "write `rw=trim` or `rw=randtrim`, or `num_range=1`";
        return Some(("rw", found(why, fix)));
    }
    let bytes = largest(&options.block_sizes[Direction::Trim]).saturating_mul(ranges.into());
    if bytes > OP_MAX {
        let why = format!("an op of {ranges} ranges has {bytes} B, and none may have 4 GiB");
        return Some(("bs", found(why, "reduce the block size, or `num_range`")));
    }
    let replay = &options.replay;
    let several_files = options.nrfiles > 1 && options.file_service != FileService::Sequential;
    let rules = [
        (
            several_files,
            "file_service_type",
            "the ranges of an op are in one file, and the next one is in another",
        ),
        (
            options.offload,
            "io_submit_mode",
            "workers submit ops of one range",
        ),
        (
            options.zones.mode == ZoneMode::Zbd,
            "zonemode",
            "the trim of a zone resets it, and has one range",
        ),
        (
            options.verify != Verify::None,
            "verify",
            "what trims of several ranges discard is not verified",
        ),
        (
            options.serialize_overlap,
            "serialize_overlap",
            "trims of several ranges are not compared with others in flight",
        ),
        (
            options.device.block_errors,
            "block_error_percentiles",
            "an op of several ranges is more than one block",
        ),
        (
            !replay.logs.is_empty(),
            "read_iolog",
            "the ops of a log have one range",
        ),
        (
            replay.record.is_some(),
            "write_iolog",
            "the ops of a log have one range",
        ),
    ];
    let (_, name, why) = rules.into_iter().find(|(is_set, ..)| *is_set)?;
    let fix = match several_files {
        true => "write `file_service_type=sequential`, or `num_range=1`".to_owned(),
        false => format!("remove `{name}`, or write `num_range=1`"),
    };
    Some((name, found(why.into(), &fix)))
}
