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

use fathom_block::QueueConfig;
use fathom_core::{BlockDevice, Errno, Nanos, PerDirection, Tick};
use fathom_job::Origin;
use fathom_setup::{ProblemKind, RunError};
use fathom_sim::{Direct, Faults, Faulty, HostConfig, Stack, Stall, Storage};
use toml::de::DeTable;

use super::fields::{Fields, Source};
use super::models::Model;
use super::queues;

/// A machine: modelled devices under the names that jobs use.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The file that it was read from, as it was named.
    pub file: String,
    pub(crate) devices: Vec<ModelledDevice>,
    host: HostConfig,
}

/// One device of a machine.
#[derive(Clone, Debug)]
pub(crate) struct ModelledDevice {
    /// Names and patterns, with where each is written.
    pub(crate) names: Vec<(String, Origin)>,
    pub(crate) capacity_bytes: u64,
    pub(crate) model: Model,
    faults: Faults,
    queue: Option<QueueConfig>,
    /// Where it is written.
    pub(crate) origin: Origin,
}

impl Machine {
    /// The machine that `text`, the content of `file`, describes.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, RunError> {
        let source = Source::new(file, text);
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let at = error.span().unwrap_or(0..0);
            let why = format!("this is no TOML: {}", error.message());
            let hint = "the files in examples/machines show how one is written";
            source.problem(&at, ProblemKind::MachineNotToml, why, hint);
        }
        let mut devices = Vec::new();
        let mut host = HostConfig::default();
        if !source.has_problems() {
            let top = Fields::new(&source, document.get_ref(), 0..0, "");
            let tables = top.tables("device");
            if tables.is_empty() {
                let hint = "describe one: `[[device]]`, with `names`, `model` and `capacity_gib`";
                top.refuse("device", "the machine has no device", hint);
            }
            devices.extend(tables.into_iter().map(|fields| device(&source, fields)));
            host = queues::host(&top);
            top.finish();
        }
        let problems = source.into_problems();
        if !problems.is_empty() {
            return Err(RunError { problems });
        }
        Ok(Self {
            file: file.to_owned(),
            devices: devices.into_iter().flatten().collect(),
            host,
        })
    }

    /// The device that a name of a plan stands for: the first one that fits.
    pub(crate) fn device_of(&self, name: &str) -> Option<usize> {
        let fits = |device: &ModelledDevice| {
            let mut names = device.names.iter();
            names.any(|(pattern, _)| matches(pattern, name))
        };
        self.devices.iter().position(fits)
    }

    /// The first device, new, with what stands in front of it; nothing if it has no queue.
    #[must_use]
    pub fn first(&self) -> Option<(HostConfig, QueueConfig, Box<dyn BlockDevice>)> {
        let device = self.devices.first()?;
        Some((self.host, device.queue?, device.model.device()))
    }

    /// The machine's devices, new, for so many jobs.
    pub(crate) fn storages(&self, jobs: u32) -> Vec<Box<dyn Storage>> {
        let each = self.devices.iter();
        each.map(|device| device.storage(self.host, jobs)).collect()
    }
}

impl ModelledDevice {
    fn storage(&self, host: HostConfig, jobs: u32) -> Box<dyn Storage> {
        let mut device = self.model.device();
        if !self.faults.is_empty() {
            device = Box::new(Faulty::new(device, self.faults.clone()));
        }
        match self.queue {
            Some(queue) => Box::new(Stack::new(queue, host, device, jobs)),
            None => Box::new(Direct::new(device)),
        }
    }
}

/// Returns true if a name matches a pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at);
            after.is_empty() || ends.any(|at| matches(after, &rest[at..]))
        }),
    }
}

fn device(source: &Source<'_>, fields: Fields<'_>) -> Option<ModelledDevice> {
    let names: Vec<_> = fields.texts("names");
    let capacity_gib = fields.number("capacity_gib", 0.001..=1_000_000.0, None);
    let model = Model::read(&fields, capacity_bytes(capacity_gib));
    let faults = faults(&fields);
    let queue = queues::queue(&fields);
    let span: Range<usize> = fields.span.clone();
    fields.finish();
    let origin_of = |(name, span): (&str, Range<usize>)| (name.to_owned(), source.origin(&span));
    Some(ModelledDevice {
        names: names.into_iter().map(origin_of).collect(),
        capacity_bytes: capacity_bytes(capacity_gib),
        model: model?,
        faults,
        queue,
        origin: source.origin(&span),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most a million GiB, which is below 2^53 bytes"
)]
fn capacity_bytes(gib: f64) -> u64 {
    // Devices are whole numbers of 4 KiB long.
    (gib * 1024.0 * 1024.0 / 4.0) as u64 * 4096
}

fn faults(device: &Fields<'_>) -> Faults {
    let mut faults = Faults::default();
    let mut free_from = Tick::ZERO;
    for stall in device.tables("stall") {
        let at = stall.time("at_ms", MS, 0.0..=1e9, None);
        let length = stall.time("for_ms", MS, 0.001..=1e9, None);
        let at = Tick::ZERO + at;
        if at < free_from {
            let why = "a stall begins before the one above is over";
            stall.refuse("at_ms", why, "write stalls in their order, or as one");
        }
        free_from = at + length;
        faults.stalls.push(Stall { at, length });
        stall.finish();
    }
    if let Some(fields) = device.table("faults", true) {
        let ppm = |key| fields.count(key, 0..=1_000_000, Some(0));
        faults.errors_ppm = PerDirection::new(
            ppm("read_errors_ppm"),
            ppm("write_errors_ppm"),
            ppm("trim_errors_ppm"),
        );
        faults.short_ppm = ppm("short_ppm");
        faults.lost_ppm = ppm("lost_ppm");
        let errno = fields.count("errno", 1..=4095, Some(Errno::EIO.unsigned()));
        faults.errno = u16::try_from(errno).unwrap_or(u16::MAX);
        faults.timeout = fields.time("timeout_ms", MS, 0.001..=1e9, Some(30_000.0));
        faults.seed = fields.whole("seed", 0..=u64::MAX, Some(1));
        fields.finish();
    }
    faults
}

const MS: Nanos = Nanos::from_millis(1);

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
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
