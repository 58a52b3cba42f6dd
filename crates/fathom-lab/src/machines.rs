//! The machines that the published measurement is repeated on: the example machine files, with what
//! differs from run to run.

use fathom_block::{Policy, QueueConfig};
use fathom_run::Machine;
use fathom_sim::{Array, Device, HostConfig, Stack};

/// A machine to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabMachine {
    /// The published disk.
    #[default]
    Hdd,
    /// The published disk in a box that takes one command at a time.
    Usb,
    /// Eight published disks, spread over in chunks of 128 KiB.
    Array,
}

impl LabMachine {
    /// As many jobs have room on the disk, 1 GiB each.
    pub const MOST_JOBS: u32 = 900;

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Usb => "usb",
            Self::Array => "array",
        }
    }

    /// Host, queue and device.
    fn parts(self, write_cache: bool) -> (HostConfig, QueueConfig, Box<dyn Device>) {
        let (file, text) = match self {
            Self::Hdd | Self::Array => ("hdd.toml", HDD),
            Self::Usb => ("usb.toml", USB),
        };
        let cache = if write_cache { CACHE } else { "" };
        let machine = Machine::parse(file, &format!("{text}{cache}"));
        let first = || machine.as_ref().ok()?.first();
        let (host, queue, device) = first().expect("our own machine files have queues");
        if self != Self::Array {
            return (host, queue, device);
        }
        let disks = std::iter::repeat_with(|| first().map(|(.., disk)| disk));
        let disks = disks.take(ARRAY_DISKS as usize).flatten().collect();
        let queue = QueueConfig {
            queue_depth: queue.queue_depth * ARRAY_DISKS,
            ..queue
        };
        (host, queue, Box::new(Array::new(disks, ARRAY_CHUNK)))
    }
}

/// What differs from run to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) machine: LabMachine,
    pub(crate) write_cache: bool,
    pub(crate) policy: Policy,
    pub(crate) together: bool,
    pub(crate) nr_requests: u32,
    pub(crate) max_sectors_kib: u32,
    pub(crate) jobs: u32,
}

impl Setup {
    /// Queue, tags and device.
    pub(crate) fn stack(&self) -> Stack<Box<dyn Device>> {
        let (host, queue, device) = self.machine.parts(self.write_cache);
        let mut queue = QueueConfig {
            nr_requests: self.nr_requests,
            policy: self.policy,
            together: self.together,
            ..queue
        };
        queue.limits.max_bytes = self.max_sectors_kib * 1024;
        queue.limits.max_segments = SEGMENTS;
        Stack::new(queue, host, device, self.jobs)
    }
}

const HDD: &str = include_str!("../../../examples/machines/hdd.toml");
const USB: &str = include_str!("../../../examples/machines/usb.toml");

/// Not published; common sizes.
const CACHE: &str = "
[device.hdd.write_cache]
size_mib = 64
writes = 64
fill_mb_per_s = 300
";
/// No limit here.
const SEGMENTS: u32 = 4096;
const ARRAY_DISKS: u32 = 8;
const ARRAY_CHUNK: u64 = 128 << 10;
