//! Zones of the devices of a run: the devices' own, or emulated ones.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use fathom_core::{Storage, ZoneReport};
use fathom_host::target_kind::TargetKind;
use fathom_job::Job;
use fathom_workload::ZoneSet;

use super::Planned;
use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

/// Zones of the devices of a run, each looked up once.
#[derive(Debug, Default)]
pub(super) struct ZoneSets {
    by_path: RefCell<HashMap<String, Arc<ZoneSet>>>,
    /// Sets of devices by their identity: a device may have several names.
    by_device: RefCell<HashMap<u64, Arc<ZoneSet>>>,
}

impl ZoneSets {
    /// Returns the zones of the device at `path`.
    pub(super) fn of(
        &self,
        job: &Job,
        planned: &Planned<'_>,
        path: &str,
        found: TargetKind,
    ) -> Result<Arc<ZoneSet>, RunProblem> {
        let zones = job.options.zones;
        let engine = job.options.engine;
        if engine.storage != Storage::LocalFiles && !engine.manages_zones {
            return Err(no_devices(job));
        }
        let TargetKind::Block {
            bytes,
            logical_block,
        } = found
        else {
            return Err(no_device(job, path, found));
        };
        let known = self.by_path.borrow().get(path).cloned();
        let set = match known {
            Some(set) => set,
            None => {
                let set = match report(job, planned, path)? {
                    Some(report) => self.of_device(&report),
                    None => emulated(job, path, bytes, logical_block)?,
                };
                (self.by_path.borrow_mut()).insert(path.to_owned(), Arc::clone(&set));
                set
            }
        };
        if zones.size > 0 && zones.size != set.zone_bytes() {
            let message = format!(
                "job parameter zonesize {} does not match disk zone size {} of {path}",
                zones.size,
                set.zone_bytes()
            );
            return Err(problem(message).hint("remove it").at(job, "zonesize"));
        }
        Ok(set)
    }

    fn of_device(&self, report: &ZoneReport) -> Arc<ZoneSet> {
        let new = || Arc::new(ZoneSet::new(report));
        if report.device == 0 {
            return new();
        }
        let mut known = self.by_device.borrow_mut();
        let set = known.entry(report.device).or_insert_with(new);
        set.complete(report);
        Arc::clone(set)
    }
}

/// Asks for the zones of a device; `None` if it has none.
fn report(job: &Job, planned: &Planned<'_>, path: &str) -> Result<Option<ZoneReport>, RunProblem> {
    let (engine, values) = (job.options.engine, &job.options.engine_values);
    let unreadable = |error: &dyn Display, hint: &str| {
        let message = format!("cannot read the zones of {path}: {error}");
        let problem = RunProblem::new(ProblemKind::FileUnreadable, message).at(job, "filename");
        match hint.is_empty() {
            true => problem,
            false => problem.hint(hint),
        }
    };
    match engine.manages_zones {
        true => (planned.probe.engine_zones(engine, values, path))
            .map_err(|error| unreadable(&error, &error.hint)),
        false => (planned.probe.zones(path)).map_err(|error| unreadable(&error, "")),
    }
}

/// Returns the problem of an engine that opens no devices.
fn no_devices(job: &Job) -> RunProblem {
    let name = job.options.engine.name;
    let message = format!("`zonemode=zbd` needs a zoned block device: `{name}` opens none");
    let hint = "use `ioengine=psync`, `libaio`, `io_uring` or `io_uring_cmd`, or remove `zonemode`";
    problem(message).hint(hint).at(job, "zonemode")
}

/// Returns the problem of a target that is not a block device.
fn no_device(job: &Job, path: &str, found: TargetKind) -> RunProblem {
    let (what, hint) = match found {
        TargetKind::Missing => ("does not exist", "name a device, such as /dev/nvme0n1"),
        TargetKind::Stream => ("is not one", "name a device, such as /dev/nvme0n1"),
        _ => ("is not one", "use `zonemode=strided`, or remove it"),
    };
    let message = format!("`zonemode=zbd` needs a zoned block device: {path} {what}");
    problem(message).hint(hint).at(job, "zonemode")
}

/// Returns emulated zones for a device without any.
fn emulated(
    job: &Job,
    path: &str,
    bytes: u64,
    logical_block: u32,
) -> Result<Arc<ZoneSet>, RunProblem> {
    let zones = job.options.zones;
    let refuse = |option: &str, message: String, hint: &str| {
        Err(problem(message).hint(hint).at(job, option))
    };
    if zones.size == 0 {
        let message = format!(
            "Specifying the zone size is mandatory for regular file/block device with \
             --zonemode=zbd: {path} has no zones"
        );
        return refuse("zonesize", message, "add one, as in `zonesize=64m`");
    }
    if zones.size < ZONE_BYTES_MIN {
        let message =
            format!("zone size must be at least {ZONE_BYTES_MIN} bytes for --zonemode=zbd");
        return refuse("zonesize", message, "increase it, as in `zonesize=64m`");
    }
    let given = [("zonesize", zones.size), ("zonecapacity", zones.capacity)];
    let block = u64::from(logical_block);
    if let Some((option, _)) = given
        .into_iter()
        .find(|(_, size)| block > 0 && !size.is_multiple_of(block))
    {
        let message = format!(
            "`{option}` is not a multiple of the {block} B logical block of \
                               {path}"
        );
        return refuse(option, message, &format!("make it a multiple of {block}"));
    }
    if bytes < zones.size {
        let message = format!("{path} has {bytes} bytes: less than one zone");
        return refuse("zonesize", message, "lower `zonesize`");
    }
    if bytes / zones.size > ZONES_MAX {
        let count = bytes / zones.size;
        let message = format!("{path} would have {count} zones, more than {ZONES_MAX}");
        return refuse("zonesize", message, "increase `zonesize`");
    }
    if zones.capacity > zones.size {
        let message = "`zonecapacity` exceeds `zonesize`".to_owned();
        return refuse("zonecapacity", message, "lower it");
    }
    let capacity = match zones.capacity {
        0 => zones.size,
        capacity => capacity,
    };
    Ok(Arc::new(ZoneSet::emulated(bytes, zones.size, capacity)))
}

pub(super) fn problem(message: String) -> RunProblem {
    RunProblem::new(ProblemKind::NoZones, message)
}

/// Smallest size of an emulated zone.
const ZONE_BYTES_MIN: u64 = 512;

/// Largest number of emulated zones. A zone takes some hundred bytes; a disk of 30 TB with zones of
/// 256 MiB has 112,000.
const ZONES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::io;

    use fathom_core::{
        Direction, EngineError, EngineInfo, EngineStep, EngineValues, RemoteFile, WriteArea, Zone,
        ZoneCondition, ZoneKind,
    };
    use fathom_host::target_kind::FileSystemProbe;

    use super::super::{Translation, translate};
    use super::*;
    use crate::check::zone_names::written_two_ways;
    use crate::testing::plan;

    const MIB: u64 = 1 << 20;

    /// A namespace of 16 MiB: a block device, and a character device that engines look up.
    struct Namespace {
        zones: Result<Option<ZoneReport>, ()>,
    }

    impl FileSystemProbe for Namespace {
        fn kind(&self, _path: &str) -> io::Result<TargetKind> {
            Ok(TargetKind::Block {
                bytes: 16 * MIB,
                logical_block: 4096,
            })
        }

        fn zones(&self, _path: &str) -> io::Result<Option<ZoneReport>> {
            let without_area = |report| ZoneReport {
                area: None,
                ..report
            };
            let zones = self.zones.clone();
            let zones = zones.map(|report| report.map(without_area));
            zones.map_err(|()| io::ErrorKind::Other.into())
        }

        fn engine_zones(
            &self,
            engine: &'static EngineInfo,
            _options: &EngineValues,
            path: &str,
        ) -> Result<Option<ZoneReport>, EngineError> {
            assert_eq!((engine.name, path), ("io_uring_cmd", "/dev/ng0n1"));
            self.zones.clone().map_err(|()| EngineError {
                step: EngineStep::Call("Zone Management Receive"),
                target: path.into(),
                errno: None,
                hint: "run as root".into(),
            })
        }

        fn remote(
            &self,
            _engine: &'static EngineInfo,
            _options: &EngineValues,
            _path: &str,
        ) -> Result<Option<RemoteFile>, EngineError> {
            Ok(Some(RemoteFile {
                bytes: 16 * MIB,
                block_bytes: 4096,
                directions: &Direction::ALL,
            }))
        }
    }

    /// Four zones of 4 MiB, at most two open.
    fn report() -> ZoneReport {
        let zone = |number: u64| Zone {
            start: number * 4 * MIB,
            length: 4 * MIB,
            capacity: 3 * MIB,
            kind: ZoneKind::SequentialRequired,
            condition: ZoneCondition::Empty,
            write_pointer: number * 4 * MIB,
            has_area: false,
        };
        ZoneReport {
            zones: (0..4).map(zone).collect(),
            open_max: Some(2),
            area: None,
            device: 7,
        }
    }

    fn translated(words: &str, zones: Result<Option<ZoneReport>, ()>) -> Translation {
        let words = format!("--zonemode=zbd --rw=randwrite --bs=64k {words}");
        translate(&plan(&words), &Namespace { zones }, &mut || 42)
    }

    /// Returns the message and the hint of the only problem.
    fn problem_of(words: &str, zones: Result<Option<ZoneReport>, ()>) -> String {
        let problems = translated(words, zones).problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        format!("{:?}", problems[0])
    }

    const COMMANDS: &str = "--name=c --ioengine=io_uring_cmd --filename=/dev/ng0n1";
    const BLOCKS: &str = "--name=b --ioengine=io_uring --direct=1 --filename=/dev/nvme0n1";

    #[test]
    fn engines_that_manage_zones_report_them_and_need_no_direct() {
        let done = translated(&format!("{COMMANDS} --size=2z"), Ok(Some(report())));
        assert!(done.problems.is_empty(), "{:?}", done.problems);
        let setup = &done.setups[0];
        assert_eq!(setup.files[0].length, 8 * MIB);
        assert!(setup.resets_by_trims(&setup.files[0]));
        let access = setup.worker.zoned.as_ref().expect("zones");
        assert_eq!(access.open_max, Some(2));
    }

    #[test]
    fn both_names_of_a_namespace_share_its_zones() {
        let done = translated(&format!("{COMMANDS} {BLOCKS}"), Ok(Some(report())));
        assert!(done.problems.is_empty(), "{:?}", done.problems);
        let sets = done.setups.iter().map(|setup| {
            let access = setup.worker.zoned.as_ref().expect("zones");
            &access.sets[0]
        });
        let sets: Vec<_> = sets.collect();
        assert!(Arc::ptr_eq(sets[0], sets[1]));
    }

    #[test]
    fn writes_by_both_names_of_a_namespace_are_told() {
        let told = |words: &str| {
            let done = translated(words, Ok(Some(report())));
            assert!(done.problems.is_empty(), "{:?}", done.problems);
            written_two_ways(&done.setups).len()
        };
        assert_eq!(told(&format!("{COMMANDS} {BLOCKS} --numjobs=2")), 1);
        assert_eq!(told(&format!("{COMMANDS} --rw=trim --bs=4m {BLOCKS}")), 1);
        assert_eq!(told(&format!("{COMMANDS} {BLOCKS} --rw=read")), 0);
        assert_eq!(told(&format!("{COMMANDS} --rw=read {BLOCKS}")), 0);
        assert_eq!(told(&format!("{BLOCKS} --numjobs=2")), 0);
        assert_eq!(told(&format!("{COMMANDS} --numjobs=2")), 0);
    }

    #[test]
    fn random_write_areas_are_known_whichever_name_comes_first() {
        let report = ZoneReport {
            area: Some(WriteArea {
                bytes: MIB,
                granule: 4096,
                zones: Some(1),
            }),
            ..report()
        };
        let words = format!("{BLOCKS} {COMMANDS} --zrwa=1");
        let done = translated(&words, Ok(Some(report.clone())));
        assert!(done.problems.is_empty(), "{:?}", done.problems);
        let access = |job: usize| done.setups[job].worker.zoned.as_ref().expect("zones");
        assert_eq!((access(0).areas, access(0).open_max), (false, Some(2)));
        assert_eq!((access(1).areas, access(1).open_max), (true, Some(1)));
        let told = problem_of(&format!("{COMMANDS} --zrwa=1 --bs=2m"), Ok(Some(report)));
        assert!(told.contains("which have 1048576"), "{told}");
        let told = problem_of(&format!("{BLOCKS} --zrwa=1"), Ok(Some(self::report())));
        assert!(told.contains("use `ioengine=io_uring_cmd`"), "{told}");
    }

    #[test]
    fn appends_go_to_zones_of_the_device_and_cannot_be_found_again() {
        let appends = format!("{COMMANDS} --write_mode=zone_append --iodepth=8");
        let access = |words: &str| {
            let done = translated(words, Ok(Some(report())));
            assert!(done.problems.is_empty(), "{:?}", done.problems);
            let access = done.setups[0].worker.zoned.as_ref().expect("zones");
            access.appends
        };
        assert!(access(&appends));
        assert!(access(&format!("{appends} --verify=md5 --iodepth=1")));
        assert!(!access(COMMANDS));
        let mixed = "write_mode=zone_append/50:write/50";
        assert!(!access(&format!("{COMMANDS} --{mixed}")), "one at a time");
        let told = problem_of(&format!("{appends} --verify=md5"), Ok(Some(report())));
        assert!(told.contains("use `iodepth=1`"), "{told}");
        let told = problem_of(&format!("{appends} --zonesize=2m"), Ok(None));
        assert!(told.contains("no zones of its own"), "{told}");
        let area = WriteArea {
            bytes: MIB,
            granule: 4096,
            zones: None,
        };
        let with_areas = ZoneReport {
            area: Some(area),
            ..report()
        };
        let told = problem_of(&format!("{appends} --zrwa=1"), Ok(Some(with_areas)));
        assert!(told.contains("with random write areas"), "{told}");
    }

    #[test]
    fn the_device_compares_what_has_no_header() {
        let words = format!("{COMMANDS} --verify_mode=compare --verify_pattern=0x5a");
        let on_device = |words: &str| {
            let done = translated(words, Ok(Some(report())));
            assert!(done.problems.is_empty(), "{:?}", done.problems);
            let verify = done.setups[0].worker.verify.as_ref();
            verify.is_some_and(|verify| verify.on_device)
        };
        assert!(on_device(&format!("{words} --verify=pattern")));
        let read = format!("{words} --verify=pattern --verify_mode=read");
        assert!(!on_device(&read));
        let unverified = format!("{COMMANDS} --verify_mode=compare");
        assert!(!on_device(&unverified));
        let told = problem_of(&format!("{words} --verify=crc32c"), Ok(Some(report())));
        assert!(told.contains("use `verify=pattern`"), "{told}");
    }

    #[test]
    fn a_namespace_without_zones_has_emulated_ones() {
        let done = translated(&format!("{COMMANDS} --zonesize=2m"), Ok(None));
        assert!(done.problems.is_empty(), "{:?}", done.problems);
        let setup = &done.setups[0];
        assert!(!setup.resets_by_trims(&setup.files[0]), "they discard");
        let told = problem_of(COMMANDS, Ok(None));
        assert!(
            told.contains("Specifying the zone size is mandatory"),
            "{told}"
        );
    }

    #[test]
    fn what_the_engine_says_is_passed_on() {
        let told = problem_of(COMMANDS, Err(()));
        let want = "cannot read the zones of /dev/ng0n1: Zone Management Receive: /dev/ng0n1";
        assert!(
            told.contains(want) && told.contains("run as root"),
            "{told}"
        );
        let told = problem_of(BLOCKS, Err(()));
        assert!(
            told.contains("cannot read the zones of /dev/nvme0n1"),
            "{told}"
        );
    }

    #[test]
    fn other_engines_of_devices_are_refused() {
        let told = problem_of("--name=s --ioengine=sg --filename=/dev/sg0", Ok(None));
        assert!(told.contains("`sg` opens none"), "{told}");
        assert!(told.contains("`io_uring_cmd`"), "{told}");
    }
}
