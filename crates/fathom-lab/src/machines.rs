//! Modelled machines of the experiments: the example machine files, with varying parameters.

use fathom_block::{Policy, QueueConfig, SeekCounts};
use fathom_core::{BlockDevice, Direction, Nanos, Tick};
use fathom_sim::{HostConfig, ModelledStorage as _, Stack};
use fathom_virtual::MachineModel;

use crate::closed_loop::{Load, closed_loop, mib_per_second};

/// Modelled machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabMachine {
    /// The published disk.
    #[default]
    Hdd,
    /// The published disk behind a bridge that accepts one command at a time.
    Usb,
    /// Striped array of eight published disks, with chunks of 128 KiB.
    Array,
    /// A flash drive.
    Ssd,
}

impl LabMachine {
    /// Largest number of jobs; each machine has space for their regions.
    pub const JOBS_MAX: u32 = 900;

    /// Returns the machine's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Usb => "usb",
            Self::Array => "array",
            Self::Ssd => "ssd",
        }
    }

    /// Returns whether its write cache can be switched on and off.
    #[must_use]
    pub const fn has_write_cache(self) -> bool {
        !matches!(self, Self::Ssd)
    }

    /// Returns whether it has an I/O scheduler, with tags of its own.
    #[must_use]
    pub const fn has_scheduler(self) -> bool {
        !matches!(self, Self::Ssd)
    }

    /// Returns the size of a job's region in bytes.
    pub(crate) const fn region(self) -> u64 {
        match self {
            Self::Hdd | Self::Usb | Self::Array => 1 << 30,
            // Space for 900 regions.
            Self::Ssd => 256 << 20,
        }
    }

    /// Returns the distance between the starts of the regions of this number of jobs, in bytes.
    ///
    /// The published job says 1 GiB, but its seek distances say that 512 jobs covered about
    /// 100 GB: regions of more jobs than fit into that overlap.
    pub(crate) fn stride(self, jobs: u32) -> u64 {
        match self {
            Self::Hdd | Self::Usb | Self::Array => {
                let even = PUBLISHED_SPAN / u64::from(jobs.max(1));
                (even >> 20 << 20).min(self.region())
            }
            Self::Ssd => self.region(),
        }
    }

    /// Describes where the jobs' regions are.
    pub(crate) fn placement(self) -> String {
        let region = self.region() >> 20;
        match self {
            Self::Hdd | Self::Usb | Self::Array => format!(
                "jobs {region} MiB apart, or closer so that all start within {} GiB",
                PUBLISHED_SPAN >> 30
            ),
            Self::Ssd => format!("jobs {region} MiB apart"),
        }
    }

    /// Returns ramp and runtime. A flash drive moves in a second as much as a hard disk in a
    /// minute, and its map takes memory per byte written.
    pub(crate) const fn times(self) -> (Nanos, Nanos) {
        match self {
            Self::Hdd | Self::Usb | Self::Array => (Nanos::from_secs(10), Nanos::from_secs(110)),
            Self::Ssd => (Nanos::from_millis(500), Nanos::from_secs(2)),
        }
    }

    /// Returns host, queue and device.
    fn parts(self, write_cache: bool) -> (HostConfig, QueueConfig, Box<dyn BlockDevice>) {
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
        let machine = MachineModel::parse(file, &text);
        let first = machine.ok().and_then(|machine| machine.first());
        first.expect("our own machine files have queues")
    }
}

/// Machine with the parameters that vary between runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineSetup {
    pub(crate) machine: LabMachine,
    pub(crate) write_cache: bool,
    pub(crate) policy: Policy,
    pub(crate) together: bool,
    pub(crate) nr_requests: u32,
    pub(crate) max_sectors_kib: u32,
    pub(crate) jobs: u32,
}

impl MachineSetup {
    /// Builds the stack of queue, tags and device.
    pub(crate) fn stack(&self) -> Stack<Box<dyn BlockDevice>> {
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

/// Runs random ops of 1 MiB; returns their bandwidth in MiB/s and the seeks of the device.
pub(crate) fn run_1m_ops(setup: &MachineSetup, direction: Direction) -> (f64, SeekCounts) {
    let (ramp, runtime) = setup.machine.times();
    let load = Load {
        jobs: setup.jobs,
        direction,
        block: 1 << 20,
        stride: setup.machine.stride(setup.jobs),
        region: setup.machine.region(),
        ramp,
        runtime,
    };
    let mut stack = setup.stack();
    stack.count_seeks(Tick::ZERO + load.ramp);
    let bytes = closed_loop(&mut stack, &load);
    let seeks = stack.seeks().cloned().unwrap_or_default();
    (mib_per_second(bytes, load.runtime), seeks)
}

const HDD: &str = include_str!("../machines/hdd.toml");
const USB: &str = include_str!("../machines/usb.toml");

const ARRAY: &str = include_str!("../machines/array.toml");
const SSD: &str = include_str!("../machines/ssd.toml");

/// Part of the disk that the published jobs covered: 14.2 TiB of seeks upwards, in 137 sweeps.
const PUBLISHED_SPAN: u64 = 103 << 30;
/// Write cache of common size; not published.
const CACHE: &str = "size_mib = 64\nwrites = 64\nfill_mb_per_s = 300\n";
/// More segments than any op has.
const SEGMENTS: u32 = 4096;
