//! Zones of a job with `zonemode=zbd`: the device's own, or emulated on a device without any.

use std::sync::Arc;

use fathom_core::Direction;
use fathom_host::target_kind::TargetKind;
use fathom_job::{Job, Options, ReadWrite, Size, Verify, ZoneMode};
use fathom_workload::{ResetRule, ZoneAccess, ZoneSet, Zones};

use super::notes::Warnings;
use super::sizes::ResolvedSizes;
use super::zone_sets::problem;
use super::{FileSetup, JobSetup, Planned, pattern};
use crate::error::RunProblem;
use crate::plan_warning::PlanWarningKind;

/// Returns the bytes of a zone, in which sizes may be given; `None` for a job without zones.
pub(super) fn unit(
    job: &Job,
    planned: &Planned<'_>,
    names: &[String],
    found: &[TargetKind],
) -> Result<Option<u64>, RunProblem> {
    if job.options.zones.mode != ZoneMode::Zbd {
        return Ok(None);
    }
    let mut unit = None;
    for (path, found) in names.iter().zip(found) {
        let set = planned.zones.of(job, planned, path, *found)?;
        unit = unit.or(Some(set.zone_bytes()));
    }
    Ok(unit)
}

/// Returns a size in bytes that may be given in zones of `unit` bytes.
pub(super) fn in_bytes(size: Size, unit: Option<u64>) -> Size {
    match (size, unit) {
        (Size::Zones(count), Some(unit)) => Size::Bytes(u64::from(count).saturating_mul(unit)),
        (size, _) => size,
    }
}

/// Limits the range of each file to whole zones, as fio does, and says so.
pub(super) fn limit_to_whole_zones(
    job: &Job,
    planned: &Planned<'_>,
    files: &mut [FileSetup],
    sizes: &mut ResolvedSizes,
    warnings: &mut Warnings<'_>,
) -> Result<(), RunProblem> {
    // A replay keeps its offsets.
    if job.options.zones.mode != ZoneMode::Zbd || job.options.replay.found.is_some() {
        return Ok(());
    }
    let before: u64 = files.iter().map(|file| file.length).sum();
    for file in files.iter_mut() {
        let set = planned.zones.of(job, planned, &file.path, file.found)?;
        let range = set.whole_zones(file.offset, file.offset.saturating_add(file.length));
        if range.is_empty() {
            let message = format!(
                "io_size must be at least one zone: {} has no whole zone of {} bytes from {} to {}",
                file.path,
                set.zone_bytes(),
                file.offset,
                file.offset.saturating_add(file.length)
            );
            return Err(problem(message)
                .hint("increase `size`, or give it in zones, as in `size=4z`")
                .at(job, "size"));
        }
        (file.offset, file.length) = (range.start, range.end - range.start);
    }
    let after: u64 = files.iter().map(|file| file.length).sum();
    if after < before {
        if sizes.bytes_per_pass == before {
            sizes.bytes_per_pass = after;
        }
        let message = format!(
            "the range begins or ends within a zone: {} bytes at its ends are left out",
            before - after
        );
        let hint = "give `offset` and `size` in zones, as in `size=4z`";
        warnings.add(PlanWarningKind::ZonesCut, message, hint);
    }
    Ok(())
}

/// Returns the job's access to the zones of its files; `None` without `zonemode=zbd`.
pub(super) fn access(
    job: &Job,
    number: u32,
    files: &[FileSetup],
    planned: &Planned<'_>,
) -> Result<Option<ZoneAccess>, RunProblem> {
    let options = &job.options;
    let zones = options.zones;
    if zones.mode != ZoneMode::Zbd {
        return Ok(None);
    }
    refuse(job)?;
    let sets = files
        .iter()
        .map(|file| planned.zones.of(job, planned, &file.path, file.found));
    let sets: Vec<_> = sets.collect::<Result<_, _>>()?;
    for (set, file) in sets.iter().zip(files) {
        check_order(job, set)?;
        check_trims(job, set, file)?;
        check_capacity(job, set, file)?;
        check_skip(job, set, file)?;
        check_areas(job, set, file)?;
        check_appends(job, set, file)?;
    }
    // Zones that are open without an area count, too.
    let areas = sets.iter().filter(|_| zones.areas);
    let areas = areas.filter_map(|set| set.area()?.zones);
    let device_max = match zones.ignores_device_limit {
        true => None,
        false => (sets.iter().filter_map(|set| set.open_max()))
            .chain(areas)
            .min(),
    };
    let limit = |max: u32| (max > 0).then_some(max);
    let open_max = limit(zones.open_max);
    let keeps_data = keeps_data(options);
    let frequency = limit(zones.reset_frequency_ppm).filter(|_| !keeps_data);
    let reset = frequency.map(|frequency| ResetRule {
        threshold_ppm: zones.reset_threshold_ppm,
        every: 1_000_000_u32.div_ceil(frequency),
    });
    Ok(Some(ZoneAccess {
        sets,
        job: number,
        open_max: open_max.into_iter().chain(device_max).min(),
        job_open_max: limit(zones.job_open_max),
        reads_beyond: zones.reads_beyond,
        writes_remainder: zones.writes_remainder,
        keeps_data,
        reset,
        areas: zones.areas && options.replay.found.is_none(),
        appends: options.appends_to_zones() && options.replay.found.is_none(),
    }))
}

/// Returns whether a job keeps what it has written to zones, to read it back.
fn keeps_data(options: &Options) -> bool {
    options.verify != Verify::None && pattern::uses(options, Direction::Write)
}

/// Warns of options of zones that have no effect on a job.
pub(super) fn note_without_effect(options: &Options, warnings: &mut Warnings<'_>) {
    if options.zones.mode != ZoneMode::Zbd {
        return;
    }
    if options.zones.job_open_max > 0 && !pattern::uses(options, Direction::Write) {
        let message = "`job_max_open_zones` is valid only for write jobs: this one opens no zones";
        let kind = PlanWarningKind::OpenZonesWithoutWrites;
        warnings.add(kind, message.to_owned(), "remove it");
    }
    if options.zones.reset_frequency_ppm > 0 && keeps_data(options) {
        let message = "`zone_reset_frequency` has no effect: a zone is not reset before `verify` \
                       has read it back";
        let kind = PlanWarningKind::ResetsWithVerify;
        warnings.add(kind, message.to_owned(), "remove `verify`, or this option");
    }
}

/// Rejects what `zonemode=zbd` cannot do.
fn refuse(job: &Job) -> Result<(), RunProblem> {
    let options = &job.options;
    let refuse = |option: &'static str, message: &str, hint: &str| {
        Err(problem(message.to_owned()).hint(hint).at(job, option))
    };
    if options.trims.percentage > 0 {
        let message = "`trim_percentage` trims parts of zones, which can only be reset whole";
        return refuse(
            "trim_percentage",
            message,
            "remove it, or use `rw=trimwrite`",
        );
    }
    let tolerates =
        options.continue_on_error.write || !options.lifecycle.ignore_error[1].is_empty();
    if options.zones.recovers && !tolerates {
        let message = "`recover_zbd_write_error` has no effect on a job that ends with the error";
        return refuse(
            "recover_zbd_write_error",
            message,
            "add `continue_on_error=write`",
        );
    }
    Ok(())
}

/// Rejects writes through the page cache, which keeps no order. Emulated zones need none.
fn check_order(job: &Job, set: &ZoneSet) -> Result<(), RunProblem> {
    let options = &job.options;
    if set.is_emulated() || !pattern::uses(options, Direction::Write) {
        return Ok(());
    }
    if !options.engine.bypasses_cache {
        let message = format!(
            "writes to zones must bypass the page cache, which engine `{}` writes through",
            options.engine.name
        );
        return Err(problem(message)
            .hint("use `ioengine=psync` or `ioengine=io_uring`")
            .at(job, "ioengine"));
    }
    if !options.direct && options.has_local_files() {
        let message = "Using direct I/O is mandatory for writing to ZBD drives: the page cache \
                       keeps no order";
        return Err(problem(message.to_owned())
            .hint("add `direct=1`")
            .at(job, "direct"));
    }
    Ok(())
}

/// Rejects trims of other than whole zones, as fio does.
fn check_trims(job: &Job, set: &ZoneSet, file: &FileSetup) -> Result<(), RunProblem> {
    let options = &job.options;
    let zone = set.zone_bytes();
    let is_whole = pattern::bounds(options, Direction::Trim) == (zone, zone);
    if is_whole || options.replay.found.is_some() || !pattern::uses(options, Direction::Trim) {
        return Ok(());
    }
    let message = format!(
        "a trim resets a whole zone, and those of {} have {zone} bytes",
        file.path
    );
    let hint = match options.rw {
        ReadWrite::TrimWrite => format!("use `bs={zone}`: a pair has one size"),
        _ => format!("use `bs={zone}`"),
    };
    Err(problem(message).hint(hint).at(job, "bs"))
}

/// Rejects writes that fit into no zone.
fn check_capacity(job: &Job, set: &ZoneSet, file: &FileSetup) -> Result<(), RunProblem> {
    let options = &job.options;
    let end = file.offset.saturating_add(file.length);
    let (smallest, capacity) = (
        pattern::bounds(options, Direction::Write).0,
        set.capacity_max(file.offset, end),
    );
    let fits = smallest <= capacity || options.zones.writes_remainder;
    if fits || options.replay.found.is_some() || !pattern::uses(options, Direction::Write) {
        return Ok(());
    }
    let message = format!(
        "buflen exceeds zone size: writes have {smallest} bytes, and no zone of {} from {} to \
         {end} has a capacity of more than {capacity}",
        file.path, file.offset
    );
    Err(problem(message).hint("lower it").at(job, "bs"))
}

/// Rejects `zrwa` where zones have no random write areas, or no write fits into one.
fn check_areas(job: &Job, set: &ZoneSet, file: &FileSetup) -> Result<(), RunProblem> {
    let options = &job.options;
    if !options.zones.areas {
        return Ok(());
    }
    let Some(area) = set.area() else {
        let message = format!("{} has no random write areas to open zones with", file.path);
        let hint = match options.engine.manages_zones {
            true => "remove `zrwa`",
            false => "use `ioengine=io_uring_cmd` on a device with them (ZRWA), or remove `zrwa`",
        };
        return Err(problem(message).hint(hint).at(job, "zrwa"));
    };
    let largest = pattern::bounds(options, Direction::Write).1;
    if largest > area.bytes && pattern::uses(options, Direction::Write) {
        let message = format!(
            "writes of {largest} bytes exceed the random write areas of {}, which have {}",
            file.path, area.bytes
        );
        return Err(problem(message).hint("lower it").at(job, "bs"));
    }
    Ok(())
}

/// Rejects appends to zones that take none, and those that `verify` would look for in the wrong
/// place.
fn check_appends(job: &Job, set: &ZoneSet, file: &FileSetup) -> Result<(), RunProblem> {
    let options = &job.options;
    if !options.appends_to_zones() {
        return Ok(());
    }
    let (message, hint) = if set.is_emulated() {
        let message = format!("{} has no zones of its own to append to", file.path);
        (message, "remove `write_mode=zone_append`")
    } else if options.zones.areas {
        let message = "a device does not append to zones with random write areas".to_owned();
        (message, "remove `zrwa`, or `write_mode=zone_append`")
    } else if keeps_data(options) && options.iodepth > 1 {
        let message = "with several appends in flight, the place of each is not known, and \
                       `verify` cannot find it"
            .to_owned();
        (message, "use `iodepth=1`, or remove `verify`")
    } else {
        return Ok(());
    };
    Err(problem(message).hint(hint).at(job, "write_mode"))
}

/// Rejects gaps that do not end at a zone, as fio does.
fn check_skip(job: &Job, set: &ZoneSet, file: &FileSetup) -> Result<(), RunProblem> {
    let (skip, zone) = (skip(&job.options, set.zone_bytes()), set.zone_bytes());
    if skip.is_multiple_of(zone) {
        return Ok(());
    }
    let message = format!(
        "zoneskip {skip} is not a multiple of the device zone size: zones of {} have {zone} bytes",
        file.path
    );
    Err(problem(message)
        .hint("give it in zones, as in `zoneskip=1z`")
        .at(job, "zoneskip"))
}

/// Returns the order in which a sequential job with a gap visits zones; `None` for other jobs.
pub(super) fn order(
    job: &Job,
    files: &[FileSetup],
    planned: &Planned<'_>,
) -> Result<Option<Zones>, RunProblem> {
    let options = &job.options;
    let (false, Some(first)) = (options.random, files.first()) else {
        return Ok(None);
    };
    if options.zones.mode != ZoneMode::Zbd || options.zones.skip == Size::Bytes(0) {
        return Ok(None);
    }
    let length = |file: &FileSetup| {
        let set = planned.zones.of(job, planned, &file.path, file.found);
        set.map(|set| set.zone_bytes())
    };
    let zone = length(first)?;
    for file in files {
        if length(file)? != zone {
            let message = format!(
                "`zoneskip` needs zones of one size: {} and {} differ",
                first.path, file.path
            );
            return Err(problem(message)
                .hint("use a job for each")
                .at(job, "zoneskip"));
        }
    }
    Ok(Some(Zones {
        size: zone,
        range: zone,
        skip: skip(options, zone),
    }))
}

/// Returns the gap between the zones of a sequential job, bytes.
pub(super) fn skip(options: &Options, zone_bytes: u64) -> u64 {
    match in_bytes(options.zones.skip, Some(zone_bytes)) {
        Size::Bytes(bytes) => bytes,
        // The parser rejects percentages.
        Size::Zones(_) | Size::Percent(_) => 0,
    }
}

/// Returns the problems of jobs that read back what they write to zones in which another job
/// writes, too: its writes move theirs, and its resets discard them.
pub(super) fn shared_by_verify(setups: &[JobSetup]) -> Vec<RunProblem> {
    let writers = |setup: &&JobSetup| {
        setup.worker.zoned.is_some() && pattern::uses(&setup.job.options, Direction::Write)
    };
    let writers: Vec<_> = setups.iter().filter(writers).collect();
    let verifies = |setup: &JobSetup| {
        let zoned = setup.worker.zoned.as_ref();
        zoned.is_some_and(|access| access.keeps_data)
    };
    let mut problems = Vec::new();
    for setup in writers.iter().filter(|setup| verifies(setup)) {
        let meets = |other: &&&JobSetup| {
            other.place.number != setup.place.number && ranges_meet(setup, other)
        };
        if let Some(other) = writers.iter().find(meets) {
            let message = format!(
                "`verify` needs zones of its own, but job `{}` writes to the same ones",
                other.name
            );
            let shared = problem(message)
                .hint("give each job its own zones, as by `offset_increment=4z`")
                .at(&setup.job, "verify");
            problems.push(shared);
            // One is enough: clones would repeat it.
            break;
        }
    }
    problems
}

/// Returns whether two jobs have zones in common.
fn ranges_meet(one: &JobSetup, other: &JobSetup) -> bool {
    let (Some(a), Some(b)) = (&one.worker.zoned, &other.worker.zoned) else {
        return false;
    };
    let ranges = |setup: &JobSetup| -> Vec<_> {
        let files = setup.files.iter();
        files
            .map(|file| (file.offset, file.offset + file.length))
            .collect()
    };
    let (ours, theirs) = (ranges(one), ranges(other));
    let mut pairs = a.sets.iter().zip(&ours);
    pairs.any(|(set, (from, to))| {
        let mut others = b.sets.iter().zip(&theirs);
        others.any(|(other, (start, end))| Arc::ptr_eq(set, other) && from < end && start < to)
    })
}
