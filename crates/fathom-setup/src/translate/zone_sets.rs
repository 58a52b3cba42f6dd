//! Zones of the devices of a run: the devices' own, or emulated ones.

use std::cell::RefCell;
use std::collections::HashMap;
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
        if job.options.engine.storage != Storage::LocalFiles {
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
                let report = planned.probe.zones(path).map_err(|error| {
                    let message = format!("cannot read the zones of {path}: {error}");
                    RunProblem::new(ProblemKind::FileUnreadable, message).at(job, "filename")
                })?;
                let set = match report {
                    Some(report) => self.of_device(&report),
                    None => emulated(job, path, bytes, logical_block)?,
                };
                (self.by_path.borrow_mut()).insert(path.to_owned(), Arc::clone(&set));
                set
            }
        };
        if zones.size > 0 && zones.size != set.zone_bytes() {
            let message = format!(
                "`zonesize` is {} bytes, but the zones of {path} have {}",
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
        Arc::clone(known.entry(report.device).or_insert_with(new))
    }
}

/// Returns the problem of an engine that opens no devices.
fn no_devices(job: &Job) -> RunProblem {
    let name = job.options.engine.name;
    let message = format!("`zonemode=zbd` needs a zoned block device: `{name}` opens none");
    let hint = "use `ioengine=psync`, `libaio` or `io_uring`, or remove `zonemode`";
    problem(message).hint(hint).at(job, "zonemode")
}

/// Returns the problem of a target that is no block device.
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
        let message = format!("{path} has no zones, and no `zonesize` to emulate them");
        return refuse("zonesize", message, "add one, as in `zonesize=64m`");
    }
    let given = [("zonesize", zones.size), ("zonecapacity", zones.capacity)];
    let block = u64::from(logical_block);
    if let Some((option, _)) = given
        .into_iter()
        .find(|(_, size)| block > 0 && !size.is_multiple_of(block))
    {
        let message = format!("`{option}` is no multiple of the {block} B logical block of {path}");
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

/// Largest number of emulated zones. A zone takes some hundred bytes; a disk of 30 TB with zones of
/// 256 MiB has 112,000.
const ZONES_MAX: u64 = 1 << 20;
