//! Lookup of a plan's file names on a modelled machine, and the problems found.

use std::io;

use fathom_core::{Direction, Storage, ZoneReport};
use fathom_host::target_kind::{FileSystemProbe, TargetKind};
use fathom_job::Plan;
use fathom_record::ModelledMachine;
use fathom_setup::translate::{JobSetup, pattern};
use fathom_setup::{ProblemKind, RunError, RunProblem};

use super::machine_file::{MachineModel, ModelledDevice, matches};
use super::place::{Home, Placed, place};

/// Devices have the capacity in the machine file; regular files do not exist yet.
impl FileSystemProbe for MachineModel {
    fn kind(&self, path: &str) -> io::Result<TargetKind> {
        if !is_device(path) {
            return Ok(TargetKind::Missing);
        }
        // A device without a model gets any size here, because a later check refuses it with a
        // better message.
        let bytes = self
            .device_of(path)
            .map_or(ANY_SIZE, |device| self.devices[device].capacity_bytes);
        Ok(TargetKind::Block {
            bytes,
            logical_block: LOGICAL_BLOCK,
        })
    }

    fn zones(&self, path: &str) -> io::Result<Option<ZoneReport>> {
        let device = self.device_of(path).map(|device| &self.devices[device]);
        Ok(device.and_then(ModelledDevice::zones))
    }
}

impl MachineModel {
    /// Places the files of a plan on the machine's devices. Each must be used, unless other ranks
    /// have sections of their own, which may use it.
    pub(crate) fn place(&self, plan: &Plan, setups: &[JobSetup]) -> Result<Placed, RunError> {
        let mut problems = self.without_model(setups);
        if plan.left_out.is_empty() {
            problems.extend(self.unused(setups));
        }
        problems.extend(self.not_recorded(setups));
        if !problems.is_empty() {
            return Err(RunError { problems });
        }
        let placed = place(setups, &|path| Home {
            storage: self.device_of(path).unwrap_or_default(),
            is_device: is_device(path),
        });
        problems.extend(self.too_full(&placed));
        if problems.is_empty() {
            Ok(placed)
        } else {
            Err(RunError { problems })
        }
    }

    /// Returns the description of the machine for the record.
    pub(crate) fn record(&self) -> ModelledMachine {
        let devices = self
            .devices
            .iter()
            .map(|device| fathom_record::ModelledDevice {
                names: device.names.iter().map(|(name, _)| name.clone()).collect(),
                model: device.model_name.clone(),
                capacity_bytes: device.capacity_bytes,
                seeks: None,
            });
        ModelledMachine {
            file: self.file.clone(),
            devices: devices.collect(),
            noise: self.noise(),
        }
    }

    /// Returns the problems of files without a model, one per name.
    fn without_model(&self, setups: &[JobSetup]) -> Vec<RunProblem> {
        let mut told: Vec<&str> = Vec::new();
        let mut problems = Vec::new();
        for setup in setups {
            let job = &setup.job;
            let engine = job.options.engine;
            if !job.options.moves_data() || engine.storage == Storage::Peer {
                let name = engine.name;
                let message = match job.options.has_local_files() {
                    true => format!(
                        "`ioengine={name}` does no block I/O: a modelled device has nothing to do"
                    ),
                    false => {
                        format!("`ioengine={name}` has no device: there is nothing to model")
                    }
                };
                let problem = RunProblem::new(ProblemKind::NullHasNoModel, message);
                let hint = "name an engine that does I/O, as `ioengine=libaio`";
                problems.push(problem.hint(hint).at(job, "ioengine"));
                continue;
            }
            for file in &setup.files {
                let path = file.path.as_str();
                if self.device_of(path).is_some() || told.contains(&path) {
                    continue;
                }
                told.push(path);
                let message = format!("{} has no model for `{path}`", self.file);
                let hint = format!("write \"{path}\" into the `names` of a device there");
                let problem = RunProblem::new(ProblemKind::NoModel, message).hint(hint);
                problems.push(problem.at(job, "filename"));
            }
        }
        problems
    }

    /// Returns the problems of jobs with ops for which a model of recorded latencies has none.
    fn not_recorded(&self, setups: &[JobSetup]) -> Vec<RunProblem> {
        let mut problems = Vec::new();
        for setup in setups.iter().filter(|setup| setup.place.clone == 0) {
            let job = &setup.job;
            for device in setup
                .files
                .iter()
                .filter_map(|file| self.device_of(&file.path))
            {
                let Some(drawn) = self.devices[device].model.drawn() else {
                    continue;
                };
                let lacks = |direction: &Direction| {
                    !drawn[*direction] && pattern::uses(&job.options, *direction)
                };
                if let Some(direction) = Direction::ALL.iter().find(|lacks_it| lacks(lacks_it)) {
                    let name = direction.name();
                    let message = format!("{} has no latencies of a {name}", self.file);
                    let hint = format!("record some: a table `[device.distribution.{name}]`");
                    let problem = RunProblem::new(ProblemKind::NotRecorded, message).hint(hint);
                    problems.push(problem.at(job, "rw"));
                    break;
                }
            }
        }
        problems
    }

    /// Returns the problems of device names that match no file of the plan.
    fn unused(&self, setups: &[JobSetup]) -> Vec<RunProblem> {
        let paths: Vec<(&str, Option<usize>)> = (setups.iter().flat_map(|setup| &setup.files))
            .map(|file| (file.path.as_str(), self.device_of(&file.path)))
            .collect();
        let mut problems = Vec::new();
        for (number, device) in self.devices.iter().enumerate() {
            for (pattern, origin) in &device.names {
                let fits = |(path, home): &(&str, Option<usize>)| {
                    *home == Some(number) && matches(pattern, path)
                };
                if paths.iter().any(fits) {
                    continue;
                }
                let message = format!("no job uses `{pattern}`");
                let mut names: Vec<&str> = Vec::new();
                for (path, _) in &paths {
                    if names.len() < 3 && !names.contains(path) {
                        names.push(path);
                    }
                }
                let hint = format!("remove it; the jobs use {}", names.join(", "));
                let mut problem = RunProblem::new(ProblemKind::UnusedModel, message).hint(hint);
                problem.origin = origin.clone();
                problems.push(problem);
            }
        }
        problems
    }

    /// Returns the problems of devices too small for the files placed on them.
    fn too_full(&self, placed: &Placed) -> Vec<RunProblem> {
        let mut problems = Vec::new();
        for (number, device) in self.devices.iter().enumerate() {
            let used = placed.used.get(&number).copied().unwrap_or_default();
            if used > device.capacity_bytes {
                let (need, hold) = (used >> 20, device.capacity_bytes >> 20);
                let message = format!("the files on it take {need} MiB, and it holds {hold} MiB");
                let hint = "raise `capacity_gib`, or lower the jobs' `size`";
                let mut problem = RunProblem::new(ProblemKind::ModelTooSmall, message).hint(hint);
                problem.origin = device.origin.clone();
                problems.push(problem);
            }
        }
        problems
    }
}

/// Returns true if a name is a device, not a file on one.
pub(crate) fn is_device(path: &str) -> bool {
    path.starts_with("/dev/")
}

/// Alignment of direct ops, bytes.
const LOGICAL_BLOCK: u32 = 512;
/// Size reported for a device that is not in the machine file, bytes.
const ANY_SIZE: u64 = 1 << 40;
