//! Files of a clone: names, targets, sizes, and the job's range in each.

use fathom_core::{EngineOption, Storage};
use fathom_host::target_kind::TargetKind;
use fathom_job::{Job, Options, RandomGenerator, ReadWrite, Size, Verify, ZoneMode};

use super::sizes::{self, Existing, FileSize, PassEnd, ResolvedSizes, SizeFault, SizeRequest};
use super::{FileSetup, Planned, limits, pattern, seeds, zones};
use crate::error::RunProblem;
use crate::groups::JobPlace;
use crate::problem_kind::ProblemKind;

/// Returns the names of a clone's files. As in fio, a job without a `filename` uses the device or
/// pipe named by its section, if there is one.
fn names(job: &Job, clone: u32, planned: &Planned<'_>) -> Vec<String> {
    let options = &job.options;
    let lone = options.has_local_files() && options.filename.is_none() && options.nrfiles == 1;
    let is_device = |found| matches!(found, TargetKind::Block { .. } | TargetKind::Stream);
    if lone && planned.kind(&job.section).is_ok_and(is_device) {
        return vec![job.section.clone()];
    }
    fathom_job::file_names(job, clone)
}

/// Returns the clone's files with their targets, sizes and ranges.
pub(super) fn files(
    job: &Job,
    place: JobPlace,
    seed: u64,
    planned: &Planned<'_>,
) -> Result<(Vec<FileSetup>, ResolvedSizes), RunProblem> {
    let options = &job.options;
    refuse_filling(options).map_err(|problem| problem.at(job, "fill_device"))?;
    let file_option = options.engine.file_option();
    if let Some(problem) = file_option.and_then(|option| missing_name(options, option)) {
        return Err(problem.at(job, "ioengine"));
    }
    let file_option = file_option.map_or("filename", |option| option.name);
    let names = file_names(job, place, planned)?;
    let found = names.iter().map(|name| match options.engine.storage {
        Storage::None | Storage::Peer => Ok(TargetKind::Missing),
        Storage::Remote | Storage::Device => planned.remote(job, file_option, name),
        Storage::LocalFiles => planned
            .kind(name)
            .map_err(|problem| problem.at(job, "filename")),
    });
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let existing: Vec<Existing> = found.iter().map(|found| existing(*found)).collect();
    let zone = zones::unit(job, planned, &names, &found)?;
    let in_bytes = |size| zones::in_bytes(size, zone);
    let request = SizeRequest {
        size: size(options).map(in_bytes),
        io_size: options.io_size.map(in_bytes),
        loops: options.loops,
        time_based: limits::is_endless(options),
        pass_end: pass_end(options),
        reads_back: reads_back(options),
        filesize: options.filesize,
        offset: in_bytes(options.offset),
        offset_increment: in_bytes(options.offset_increment),
        clone: place.clone,
        smallest: pattern::smallest(options),
        begins_in_range: !options.random && pattern::has_one_size(options),
        offset_align: u64::from(options.files.offset_align),
        append: options.files.append,
        // A mapping must have its size before.
        fill: options.fills() && !options.engine.maps_files,
        op_per_file: options.engine.name_work().is_some(),
        files: &existing,
    };
    let mut drawn = 0;
    let mut draw = |low, high| {
        drawn += 1;
        seeds::within(seed, FILE_SIZES + drawn, low, high)
    };
    let sizes = sizes::sizes(&request, &mut draw)
        .map_err(|fault| size_problem(&fault, &names).at(job, size_option(&fault, options)))?;
    let files = names.into_iter().zip(found).zip(&sizes.files);
    let files = files.map(|((path, found), size)| file_setup(path, found, *size));
    let files: Vec<_> = files.collect();
    Ok((files, sizes))
}

/// Refuses a job without a value of the option by which its engine names a file.
pub(crate) fn missing_name(options: &Options, needed: &EngineOption) -> Option<RunProblem> {
    if options.engine_values.text(needed).is_some() {
        return None;
    }
    let (engine, name) = (options.engine.name, needed.name);
    let message = format!("engine `{engine}` needs `{name}`");
    let problem = RunProblem::new(ProblemKind::EngineCannot, message);
    Some(problem.hint(format!("add `{}`", needed.example)))
}

/// Returns the size of the job. Ops without bytes need no range: the smallest one does.
fn size(options: &Options) -> Option<Size> {
    if options.engine.performs_io() {
        return options.size;
    }
    let ops = options.number_ios.unwrap_or(1).max(1);
    Some(Size::Bytes(ops.saturating_mul(pattern::smallest(options))))
}

/// Returns the names of a clone's files, including those in the directory of `opendir`.
fn file_names(
    job: &Job,
    place: JobPlace,
    planned: &Planned<'_>,
) -> Result<Vec<String>, RunProblem> {
    let options = &job.options;
    let Some(folder) = &options.files.opendir else {
        return Ok(names(job, place.clone, planned));
    };
    let mut names = match options.filename {
        Some(_) => fathom_job::file_names(job, place.clone),
        None => Vec::new(),
    };
    let problem = |why: String| {
        let message = format!("{folder}: {why}");
        RunProblem::new(ProblemKind::DirectoryWithoutFiles, message).at(job, "opendir")
    };
    let inside = planned.probe.files_in(folder);
    names.extend(inside.map_err(|error| problem(error.to_string()))?);
    match names.is_empty() {
        true => Err(problem("directory has no files".into())),
        false => Ok(names),
    }
}

/// Returns the end of a job's passes. A gap no shorter than an op makes offsets wrap around
/// where directions or sizes are mixed, or data are read back.
fn pass_end(options: &Options) -> PassEnd {
    let gap = options.rw_suffix.map_or(0, |suffix| suffix.number);
    let gap = u64::try_from(gap).unwrap_or(0);
    let goes_round = gap >= pattern::smallest(options);
    let mixed = options.drawn_rw() == ReadWrite::Mixed;
    let alike = pattern::has_one_size(options) && !mixed && !reads_back(options);
    let repeats = pattern::may_repeat(options) && options.random_generator != RandomGenerator::Lfsr;
    match (options.zones.mode, options.random) {
        (ZoneMode::Strided | ZoneMode::Zbd, _) => PassEnd::Bytes,
        (ZoneMode::None, true) if repeats => PassEnd::Never,
        (ZoneMode::None, true) if pattern::may_outlast_range(options) => PassEnd::FullMap,
        (ZoneMode::None, false) if gap > 0 && alike => PassEnd::Gap(gap),
        (ZoneMode::None, false) if goes_round => PassEnd::Never,
        (ZoneMode::None, false) if mixed => PassEnd::FirstDirection,
        (ZoneMode::None, _) => PassEnd::Range,
    }
}

/// Returns true if the job writes and then reads everything back. Not for a mix: the amount it
/// writes is random, so the number of passes is unknown in advance.
fn reads_back(options: &Options) -> bool {
    let verifies = options.verify != Verify::None && options.do_verify;
    let seekable = options.engine.storage != Storage::Peer;
    let only_writes = options.drawn_rw() == ReadWrite::Write;
    verifies && seekable && only_writes && !limits::time_based(options)
}

fn existing(found: TargetKind) -> Existing {
    Existing {
        bytes: found.bytes(),
        fixed: matches!(found, TargetKind::Block { .. }),
    }
}

fn file_setup(path: String, found: TargetKind, size: FileSize) -> FileSetup {
    FileSetup {
        path,
        found,
        bytes: size.bytes,
        offset: size.offset,
        length: size.length,
        used: None,
    }
}

fn size_problem(fault: &SizeFault, names: &[String]) -> RunProblem {
    let name = |index: usize| names.get(index).map_or("", String::as_str);
    match *fault {
        SizeFault::NoSize(file) => {
            let message = format!("{fault}: {} does not exist or is empty", name(file));
            RunProblem::new(ProblemKind::NoSize, message)
                .hint("add `size=1g`, or name an existing file")
        }
        SizeFault::PercentOfNothing(file) => {
            let message = format!("`size` is {fault}: {}", name(file));
            RunProblem::new(ProblemKind::PercentOfNothing, message).hint("give `size` in bytes")
        }
        SizeFault::OffsetBehindEnd { file, .. } => RunProblem::new(
            ProblemKind::OffsetBehindEnd,
            format!("{}: {fault}", name(file)),
        ),
        SizeFault::TooLarge => RunProblem::new(ProblemKind::SizeTooLarge, fault.to_string()),
    }
}

/// Returns the option that causes a size fault.
fn size_option(fault: &SizeFault, options: &Options) -> &'static str {
    match fault {
        SizeFault::NoSize(_) => "filename",
        SizeFault::PercentOfNothing(_) | SizeFault::TooLarge => "size",
        SizeFault::OffsetBehindEnd { .. } if options.offset == Size::Bytes(0) => "offset_increment",
        SizeFault::OffsetBehindEnd { .. } => "offset",
    }
}

/// Rejects `fill_device` without a size unless the job writes sequentially.
fn refuse_filling(options: &Options) -> Result<(), RunProblem> {
    let endless = options.fill_device && options.size.is_none() && options.filesize.is_none();
    let writes = options.rw == ReadWrite::Write && !options.random;
    if endless && !writes {
        let message = "`fill_device` without a `size` needs sequential writes (`rw=write`)";
        return Err(RunProblem::new(ProblemKind::FillDevice, message)
            .hint("add a `size`, or use `rw=write`"));
    }
    Ok(())
}

/// First purpose number of random file sizes; each file adds 1.
const FILE_SIZES: u64 = 1 << 32;
