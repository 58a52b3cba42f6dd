//! Options of `fathom table hdd-tags`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use fathom_core::Direction;
use fathom_lab::{HddTags, LabMachine, Policy};

use crate::table_format::first_given;

/// Options of the table hdd-tags; the defaults are the published configuration.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of hdd-tags")]
pub(crate) struct HddArguments {
    /// Numbers of jobs, one row each [default: 1,2,4,…,512]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(LabMachine::JOBS_MAX)))]
    numjobs: Vec<u32>,
    /// Number of scheduler tags [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    nr_requests: Option<u32>,
    /// Access pattern of the jobs [default: randwrite]
    #[arg(long, value_name = "RW")]
    rw: Option<Rw>,
    /// Write cache of the hard disks [default: off]
    #[arg(long, value_name = "ON|OFF")]
    write_cache: Option<OnOff>,
    /// Modelled device [default: hdd]
    #[arg(long, value_name = "NAME")]
    machine: Option<MachineName>,
    /// Tag allocation policies, two columns each [default: plain,fair]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    policy: Vec<PolicyName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rw {
    Randwrite,
    Randread,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnOff {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MachineName {
    /// The published disk
    Hdd,
    /// That disk with one command at a time
    Usb,
    /// Striped array of eight such disks
    Array,
    /// Flash drive, measured for a shorter time
    Ssd,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyName {
    /// First come, first served, one tag at a time
    Plain,
    /// Waiters first, all tags of an op at once
    Fair,
    /// As fair, with round-robin wait queues
    FairRoundrobin,
    /// As fair, but an op may have more pieces than there are tags
    Elastic,
}

impl HddArguments {
    /// Converts the options to the table's configuration.
    pub(crate) fn to_config(&self) -> Result<HddTags> {
        let default = HddTags::default();
        let policies: Vec<Policy> = self.policy.iter().map(|name| name.policy()).collect();
        let twice = |(at, policy): (usize, &Policy)| policies[..at].contains(policy);
        if policies.iter().enumerate().any(twice) {
            bail!("--policy: duplicate policy\nhint: name each policy once");
        }
        let machine = self.machine.map_or(default.machine, MachineName::machine);
        if self.write_cache.is_some() && !machine.has_write_cache() {
            let name = machine.name();
            bail!(
                "--write-cache: the cache of `{name}` is always on\n\
                 hint: omit it, or use another --machine"
            );
        }
        if self.nr_requests.is_some() && !machine.has_scheduler() {
            let name = machine.name();
            bail!(
                "--nr-requests: `{name}` has no I/O scheduler, so it has no scheduler tags\n\
                 hint: omit it, or use another --machine"
            );
        }
        Ok(HddTags {
            numjobs: or(&self.numjobs, default.numjobs),
            policies: or(&policies, default.policies),
            nr_requests: self.nr_requests.unwrap_or(default.nr_requests),
            direction: match self.rw {
                Some(Rw::Randread) => Direction::Read,
                Some(Rw::Randwrite) | None => Direction::Write,
            },
            write_cache: matches!(self.write_cache, Some(OnOff::On)),
            machine,
        })
    }

    /// Returns an option that was given, if there is one.
    pub(crate) fn given(&self) -> Option<&'static str> {
        first_given([
            ("--numjobs", !self.numjobs.is_empty()),
            ("--nr-requests", self.nr_requests.is_some()),
            ("--rw", self.rw.is_some()),
            ("--write-cache", self.write_cache.is_some()),
            ("--machine", self.machine.is_some()),
            ("--policy", !self.policy.is_empty()),
        ])
    }

    /// Refuses the options for another table.
    pub(crate) fn refuse_for(&self, name: &str) -> Result<()> {
        match self.given() {
            Some(option) => {
                bail!("{name}: {option} does not apply\nhint: use it with hdd-tags")
            }
            None => Ok(()),
        }
    }
}

fn or<T: Clone>(given: &[T], default: Vec<T>) -> Vec<T> {
    if given.is_empty() {
        default
    } else {
        given.to_vec()
    }
}

impl MachineName {
    const fn machine(self) -> LabMachine {
        match self {
            Self::Hdd => LabMachine::Hdd,
            Self::Usb => LabMachine::Usb,
            Self::Array => LabMachine::Array,
            Self::Ssd => LabMachine::Ssd,
        }
    }
}

impl PolicyName {
    const fn policy(self) -> Policy {
        match self {
            Self::Plain => Policy::Plain,
            Self::Fair => Policy::Fair,
            Self::FairRoundrobin => Policy::FairRoundRobin,
            Self::Elastic => Policy::Elastic,
        }
    }
}
