//! Machine files: which names of a plan stand for which modelled device.
//!
//! ```toml
//! [[device]]
//! names = ["/dev/sdb", "*.dat"]     # the first device that fits a name is its model
//! model = "constant"
//! capacity_gib = 100
//! [device.constant]
//! latency_us = 100
//! ```

use std::ops::Range;
use std::sync::Arc;

use fathom_block::{Faults, Layer, Parameters, QueueConfig, read_layers};
use fathom_core::{BlockDevice, Nanos, Tick, ZoneReport};
use fathom_job::Origin;
use fathom_setup::{ProblemKind, RunError, RunProblem};
use fathom_sim::{
    Direct, HostConfig, Model, ModelledStorage, NoiseConfig, Stack, TimeLine, read_model,
};
use fathom_toml::{Fields, FileKind, Source, TomlProblem, TomlProblemKind};

use super::queues;

/// A machine: modelled devices under the names that jobs use.
#[derive(Clone, Debug)]
pub struct MachineModel {
    /// The file that it was read from, as the user named it.
    pub file: String,
    pub(crate) devices: Vec<ModelledDevice>,
    host: HostConfig,
    noise: Option<NoiseConfig>,
    /// Place of the run that begins on it.
    place: TimeLine,
}

/// One device of a machine.
#[derive(Clone, Debug)]
pub(crate) struct ModelledDevice {
    /// Names and patterns, with where each is written.
    pub(crate) names: Vec<(String, Origin)>,
    /// Size of the device as jobs see it.
    pub(crate) capacity_bytes: u64,
    /// Names of the model and of the layers, for reports.
    pub(crate) model_name: String,
    pub(crate) model: Arc<dyn Model>,
    /// Layers over the model, the lowest first.
    layers: Vec<Arc<dyn Layer>>,
    queue: Option<QueueConfig>,
    /// Where it is written.
    pub(crate) origin: Origin,
}

impl MachineModel {
    /// Parses `text`, the content of `file`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, RunError> {
        Self::read(file, text).map_err(|problems| RunError {
            problems: problems.into_iter().map(problem).collect(),
        })
    }

    /// Parses as [`Self::parse`]; the problems are those of the file alone.
    pub(crate) fn read(file: &str, text: &str) -> Result<Self, Vec<TomlProblem>> {
        let source = Source::new(file, text, MACHINE_FILE);
        let mut devices = Vec::new();
        let (mut host, mut noise) = (HostConfig::default(), None);
        if let Some(document) = source.parse() {
            let top = source.top(&document);
            let tables = top.tables("device");
            if tables.is_empty() {
                let hint = "describe one: `[[device]]`, with `names`, `model` and `capacity_gib`";
                top.refuse("device", "the machine has no device", hint);
            }
            devices.extend(tables.into_iter().map(|fields| device(&source, fields)));
            host = queues::host(&top);
            noise = queues::noise(&top);
            top.finish();
        }
        let problems = source.into_problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            file: file.to_owned(),
            devices: devices.into_iter().flatten().collect(),
            host,
            noise,
            place: TimeLine::default(),
        })
    }

    /// Returns the machine as a run of an experiment finds it: `start` is the time from the begin
    /// of the experiment to that of the run, and `run` a number that no other run of it has.
    ///
    /// Drift, wander and neighbour of `[noise]` are functions of the time of the experiment, and go
    /// on from run to run: give each run a start after the end of the run before. The level between
    /// runs, the latencies that a `distribution` draws and the random delays of `[host]` depend on
    /// `run`: not on the seed of a run's offsets, which the variants of a repeat share. Faults and
    /// delays of layers are the same in each run. Without this call, a run has the number and the
    /// start 0.
    #[must_use]
    pub fn at(&self, start: Nanos, run: u64) -> Self {
        let place = TimeLine {
            start,
            run,
            ..self.place
        };
        Self {
            place,
            ..self.clone()
        }
    }

    /// Returns the machine with other draws of all that [`at`](Self::at) names: that of another
    /// experiment under the same assumptions. With 0 they are those of the file's seeds.
    #[must_use]
    pub fn redrawn(&self, experiment: u64) -> Self {
        let place = TimeLine {
            experiment,
            ..self.place
        };
        Self {
            place,
            ..self.clone()
        }
    }

    /// Returns the noise that the file assumes, in words.
    #[must_use]
    pub fn noise(&self) -> Option<String> {
        self.noise.as_ref().map(NoiseConfig::words)
    }

    /// Returns the device that a name of a plan stands for: the first match.
    pub(crate) fn device_of(&self, name: &str) -> Option<usize> {
        let fits = |device: &ModelledDevice| {
            let mut names = device.names.iter();
            names.any(|(pattern, _)| matches(pattern, name))
        };
        self.devices.iter().position(fits)
    }

    /// Creates the first device and the queue in front of it; `None` if it has no queue.
    #[must_use]
    pub fn first(&self) -> Option<(HostConfig, QueueConfig, Box<dyn BlockDevice>)> {
        let device = self.devices.first()?;
        Some((self.host(), device.queue?, self.open(device)))
    }

    /// Creates the machine's devices for this many jobs.
    pub(crate) fn storages(&self, jobs: u32) -> Vec<Box<dyn ModelledStorage>> {
        let each = self.devices.iter();
        each.map(|device| self.storage(device, jobs)).collect()
    }

    /// Creates a device with its layers and the machine's noise, at the start of the simulation.
    fn open(&self, device: &ModelledDevice) -> Box<dyn BlockDevice> {
        let opened = device.open(self.place.draws());
        match &self.noise {
            Some(noise) => Box::new(noise.over(opened, self.place)),
            None => opened,
        }
    }

    /// Returns the costs of threads, with the draws of this run.
    const fn host(&self) -> HostConfig {
        HostConfig {
            seed: self.host.seed.wrapping_add(self.place.draws()),
            ..self.host
        }
    }

    fn storage(&self, device: &ModelledDevice, jobs: u32) -> Box<dyn ModelledStorage> {
        let opened = self.open(device);
        match device.queue {
            Some(queue) => Box::new(Stack::new(queue, self.host(), opened, jobs)),
            None => Box::new(Direct::new(opened)),
        }
    }
}

impl ModelledDevice {
    /// Creates the model, with the draws of this number, and its layers, at the start of the
    /// simulation.
    fn open(&self, draws: u64) -> Box<dyn BlockDevice> {
        let model = self.model.device(draws);
        let layers = self.layers.iter();
        layers.fold(model, |device, layer| layer.over(device, Tick::ZERO))
    }

    /// Returns the zones of the topmost layer that has any. A layer that shows a part of the device
    /// hides those below: their addresses are others.
    pub(crate) fn zones(&self) -> Option<ZoneReport> {
        let mut layers = self.layers.iter().rev();
        let layer = layers.find(|layer| layer.bytes(1) != 1 || layer.zones().is_some());
        layer.and_then(|layer| layer.zones())
    }
}

/// Returns true if a name matches a pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        // The earliest place leaves the most for the parts to come; trying all places takes time
        // that grows with a power of the name's length.
        let Some(at) = name.find(part) else {
            return false;
        };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

fn device(source: &Source<'_>, fields: Fields<'_>) -> Option<ModelledDevice> {
    let names: Vec<_> = fields.texts("names");
    let parameters: &dyn Parameters = &fields;
    let mut capacity_bytes = parameters.gib("capacity_gib", 0.001, None);
    let model = read_model(parameters, capacity_bytes);
    let (names_of_layers, layers) = layers(parameters, &mut capacity_bytes);
    let queue = queues::queue(&fields);
    let span = fields.span();
    fields.finish();
    let origin_of = |(name, span): (&str, Range<usize>)| (name.to_owned(), source.origin(&span));
    let (model_name, model) = model?;
    Some(ModelledDevice {
        names: names.into_iter().map(origin_of).collect(),
        capacity_bytes,
        model_name: format!("{model_name}{names_of_layers}"),
        model,
        layers,
        queue,
        origin: source.origin(&span),
    })
}

/// Reads the layers of a device, the lowest first: its faults, then each `[[device.layer]]`.
/// Returns the names of the latter, too. `bytes` is the size of the model before, and that of the
/// topmost layer after.
fn layers(device: &dyn Parameters, bytes: &mut u64) -> (String, Vec<Arc<dyn Layer>>) {
    let mut names = String::new();
    let mut layers: Vec<Arc<dyn Layer>> = Vec::new();
    let table = device.table("faults", true);
    let faults = Faults::read(table.as_deref(), device);
    if let Some(table) = table {
        table.finish();
    }
    if !faults.is_empty() {
        layers.push(Arc::new(faults));
    }
    for (name, layer) in read_layers(device, bytes) {
        names.push_str(" + ");
        names.push_str(name);
        layers.push(layer);
    }
    (names, layers)
}

fn problem(found: TomlProblem) -> RunProblem {
    let kind = match found.kind {
        TomlProblemKind::NotToml => ProblemKind::MachineNotToml,
        TomlProblemKind::MissingKey => ProblemKind::MachineMissingKey,
        TomlProblemKind::UnknownKey => ProblemKind::MachineUnknownKey,
        TomlProblemKind::BadValue => ProblemKind::MachineBadValue,
        TomlProblemKind::MakesNoSense => ProblemKind::MachineMakesNoSense,
    };
    let mut problem = RunProblem::new(kind, found.message);
    problem.origin = found.origin;
    match found.hint.as_str() {
        "" => problem,
        hint => problem.hint(hint),
    }
}

const MACHINE_FILE: FileKind = FileKind {
    noun: "a machine file",
    document: "docs/MACHINE_FILES.md",
    examples: "examples/machines",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, want) in [
            ("/dev/sdb", "/dev/sdb", true),
            ("/dev/sdb", "/dev/sdb1", false),
            ("*", "anything", true),
            ("*.dat", "a.dat", true),
            ("*.dat", "a.data", false),
            ("job.*.0", "job.17.0", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("*ä*", "xäx", true),
            ("a*a", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_longer() {
        // Trying each place of each part would take 10²⁸ steps.
        let pattern = format!("{}b", "*a".repeat(20));
        assert!(!matches(&pattern, &"a".repeat(200)));
    }
}
