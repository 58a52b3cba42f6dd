//! The machines that the published measurement is repeated on: the example machine files, with what
//! differs from run to run.

use fathom_block::{Policy, QueueConfig};
use fathom_core::Nanos;
use fathom_run::Machine;
use fathom_sim::{Device, HostConfig, Stack};

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
    /// A flash drive.
    Ssd,
}

impl LabMachine {
    /// As many jobs have room on each of them.
    pub const JOBS_MAX: u32 = 900;

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Usb => "usb",
            Self::Array => "array",
            Self::Ssd => "ssd",
        }
    }

    /// Whether it has a write cache that can be on or off.
    #[must_use]
    pub const fn has_write_cache(self) -> bool {
        !matches!(self, Self::Ssd)
    }

    /// Bytes from where one job's part begins to where the next one's does.
    pub(crate) const fn stride(self) -> u64 {
        match self {
            Self::Hdd | Self::Usb | Self::Array => 1 << 30,
            // 900 of them fit.
            Self::Ssd => 256 << 20,
        }
    }

    /// What is not counted, and what is. A flash drive moves in a second what a hard disk does in
    /// a minute, and what it has written takes memory here.
    pub(crate) const fn times(self) -> (Nanos, Nanos) {
        match self {
            Self::Hdd | Self::Usb | Self::Array => (Nanos::from_secs(10), Nanos::from_secs(110)),
            Self::Ssd => (Nanos::from_millis(500), Nanos::from_secs(2)),
        }
    }

    /// Host, queue and device.
    fn parts(self, write_cache: bool) -> (HostConfig, QueueConfig, Box<dyn Device>) {
        let (file, text, table) = match self {
            Self::Hdd => ("hdd.toml", HDD, "device.hdd"),
            Self::Usb => ("usb.toml", USB, "device.hdd"),
            Self::Array => ("array.toml", ARRAY, "device.array.hdd"),
            Self::Ssd => ("ssd.toml", SSD, "device.ssd"),
        };
        let mut text = text.to_owned();
        if write_cache {
            text.push_str(&format!("\n[{table}.write_cache]\n{CACHE}"));
        }
        let machine = Machine::parse(file, &text);
        let first = machine.ok().and_then(|machine| machine.first());
        first.expect("our own machine files have queues")
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

const ARRAY: &str = include_str!("../../../examples/machines/array.toml");
const SSD: &str = include_str!("../../../examples/machines/ssd.toml");

/// Not published; common sizes.
const CACHE: &str = "size_mib = 64\nwrites = 64\nfill_mb_per_s = 300\n";
/// No limit here.
const SEGMENTS: u32 = 4096;
