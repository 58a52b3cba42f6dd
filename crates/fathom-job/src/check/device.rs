//! Rules on features of the device: atomic writes, preconditioning.

use fathom_core::Direction;

use super::{JobCheck, problem};
use crate::device::{DataPlacement, StreamChoice};
use crate::plan::{BlockSize, Options, RandomDistribution, RandomGenerator, Verify};
use crate::problem::{FioLevel, Problem};
use crate::workload::{ReadWrite, ZoneMode};

impl JobCheck<'_> {
    /// `atomic` needs an engine and writes that Linux stores whole.
    pub(super) fn atomic(&mut self) {
        let options = &self.layer.options;
        let writes = !matches!(options.rw, ReadWrite::Read | ReadWrite::Trim);
        if let Some((name, found)) = not_atomic(options).filter(|_| options.device.atomic && writes)
        {
            self.error_at(&[name, "atomic"], found);
        }
    }

    /// Only direct writes carry the number of a stream to the device.
    pub(super) fn streams(&mut self) {
        self.older_name_of_placement();
        let options = &self.layer.options;
        if !options.device.has_streams() {
            return;
        }
        if !options.engine.write_streams {
            let why = format!("the engine `{}` has no write streams", options.engine.name);
            let fix = "write `ioengine=io_uring` or `io_uring_cmd`";
            let found = problem("other-engine", why).fix(fix);
            return self.error_at(&["dataplacement", "fdp"], found);
        }
        let writes = !matches!(options.rw, ReadWrite::Read | ReadWrite::Trim);
        if !writes {
            return;
        }
        if options.has_devices() {
            if options.device.data_placement() == DataPlacement::StreamsDirective {
                let engine = options.engine.name;
                let why = format!("`{engine}` places data by FDP, not by the streams directive");
                let found = problem("no-streams", why).fix("write `dataplacement=fdp`");
                self.error_at(&["dataplacement"], found);
            }
            self.stream_scheme();
            return;
        }
        if options.device.stream_choice == StreamChoice::Scheme {
            let why = "`plid_select=scheme` names identifiers of an NVMe namespace";
            let found = problem("no-streams", why).fix("write `ioengine=io_uring_cmd`");
            self.error_at(&["plid_select"], found);
        }
        let options = &self.layer.options;
        if !options.direct {
            let found = problem("no-streams", "write streams bypass the page cache");
            let names = ["direct", "dataplacement", "fdp"];
            self.error_at(&names, found.fix("write `direct=1`"));
        }
    }

    /// A scheme is read from a file, and says by itself where each write goes.
    fn stream_scheme(&mut self) {
        let device = &self.layer.options.device;
        if device.stream_choice != StreamChoice::Scheme {
            return;
        }
        if device.scheme.as_ref().is_none_or(String::is_empty) {
            let why = "`plid_select=scheme` needs the file of the scheme";
            let found = problem("no-scheme", why).fix("add `dp_scheme=FILE`");
            self.error_at(&["plid_select"], found);
        } else if !device.placement.is_empty() {
            let why = "`plids` has no effect with `plid_select=scheme`, whose file names the \
                       identifiers, as in fio";
            let found = problem("no-effect", why).fio_level(FioLevel::Silent);
            self.warn_at(&["plids"], found.fix("remove `plids`"));
        }
    }

    /// `fdp=1` is an older name of `dataplacement=fdp`; another value beside it contradicts it.
    fn older_name_of_placement(&mut self) {
        let device = &self.layer.options.device;
        if device.fdp && device.data_placement() != DataPlacement::Fdp {
            let why = "`fdp=1` means `dataplacement=fdp`, and contradicts another `dataplacement`";
            let found = problem("contradiction", why).fix("remove `fdp`");
            self.error_at(&["fdp"], found);
        }
    }

    /// `trim_percentage` trims blocks that are written and verified.
    pub(super) fn trims(&mut self) {
        let options = &self.layer.options;
        let writes = matches!(options.rw, ReadWrite::Write | ReadWrite::Mixed);
        let verifies = options.verify != Verify::None && options.do_verify;
        if options.trims.percentage > 0 && !(writes && verifies) {
            let why = "`trim_percentage` trims blocks that the job writes and verifies";
            let problem = problem("no-blocks-to-trim", why)
                .read_as("trim_percentage=0")
                .fix("add `rw=write` and `verify=crc32c`, or remove `trim_percentage`");
            self.error_at(&["trim_percentage"], problem);
        }
    }

    /// `sprandom` excludes other orders of blocks.
    pub(super) fn preconditioning(&mut self) {
        let options = &self.layer.options;
        if !options.device.sprandom {
            return;
        }
        let map = "norandommap";
        let is_given = self.layer.find(map).or_else(|| self.globals.find(map));
        if let Some((name, found)) = not_preconditioning(options) {
            self.error_at(&[name, "sprandom"], found);
        } else if is_given.is_some() && !options.norandommap {
            let why = "`sprandom` writes some blocks again, which a random map excludes";
            let found = problem("not-preconditioning", why).fix("remove `norandommap=0`");
            self.error_at(&[map, "sprandom"], found);
        }
    }
}

/// Returns the option that `sprandom` excludes, and the problem.
fn not_preconditioning(options: &Options) -> Option<(&'static str, Problem)> {
    let size = match options.block_sizes[Direction::Write] {
        BlockSize::Fixed(size) => size,
        BlockSize::Range { .. } | BlockSize::Split(_) => 0,
    };
    let aligned = options.blockalign[Direction::Write].is_none_or(|align| align == size);
    let generator = options.random_generator;
    let uniform = options.random_distribution == RandomDistribution::Random
        && options.access_zones.is_none()
        && options.random_sequence.is_none();
    let excluded = [
        (
            options.rw != ReadWrite::Write || !options.random,
            "rw",
            "writes random blocks",
            "write `rw=randwrite`",
        ),
        (
            size == 0,
            "bs",
            "writes blocks of one size",
            "write it like `bs=16k`",
        ),
        (
            !aligned,
            "blockalign",
            "writes blocks side by side",
            "remove `blockalign`",
        ),
        (
            !matches!(generator, RandomGenerator::Default | RandomGenerator::Lfsr),
            "random_generator",
            "draws blocks by `random_generator=lfsr`, as in fio",
            "remove `random_generator`",
        ),
        (
            !uniform || options.percentage_random[Direction::Write] < 100,
            "random_distribution",
            "has a distribution of its own",
            "remove `random_distribution` and `percentage_random`",
        ),
        (
            options.rw_suffix.is_some() || options.zones.mode != ZoneMode::None,
            "rw",
            "has an order of its own",
            "remove the number after `rw=randwrite`, and `zonemode`",
        ),
    ];
    let (_, name, why, fix) = excluded.into_iter().find(|row| row.0)?;
    let found = problem("not-preconditioning", format!("`sprandom` {why}"));
    Some((name, found.fix(fix)))
}

/// Returns the option that excludes atomic writes, and the problem.
fn not_atomic(options: &Options) -> Option<(&'static str, Problem)> {
    let refused = |why: String| problem("not-atomic", why);
    if !options.engine.atomic_writes {
        let engine = options.engine.name;
        let found = refused(format!("the engine `{engine}` has no atomic writes"));
        return Some((
            "ioengine",
            found.fix("write `ioengine=io_uring`, `libaio` or `pvsync2`"),
        ));
    }
    if !options.direct {
        let found = refused("atomic writes bypass the page cache".into());
        return Some(("direct", found.fix("write `direct=1`")));
    }
    let size = match options.block_sizes[Direction::Write] {
        BlockSize::Fixed(size) => Some(size),
        BlockSize::Range { min, max } if min == max => Some(min),
        BlockSize::Range { .. } | BlockSize::Split(_) => None,
    };
    // Linux takes no others, and each must be aligned to its own size.
    let Some(size) = size.filter(|size| size.is_power_of_two()) else {
        let found = refused("atomic writes all have one size, a power of two".into());
        return Some(("bs", found.fix("write it like `bs=16k`")));
    };
    let align = options.blockalign[Direction::Write].filter(|&align| align > 0);
    if !align.unwrap_or(size).is_multiple_of(size) {
        let found = refused(format!(
            "atomic writes start at multiples of their {size} bytes"
        ));
        return Some(("blockalign", found.fix("remove `blockalign`")));
    }
    let gap = options.rw_suffix.map_or(0, |suffix| suffix.number);
    if !options.random && !gap.unsigned_abs().is_multiple_of(size) {
        let found = refused(format!(
            "atomic writes start at multiples of their {size} bytes, and the gap of {gap} bytes \
             after each write is none"
        ));
        return Some(("rw", found.fix("use a multiple of the block size")));
    }
    None
}
