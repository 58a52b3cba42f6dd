//! Options of `fathom table io-pacing`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use fathom_lab::{Condition, Devices, IoPacing, Pacing, PacingTest, Period, Slow};

use crate::micro::usable_cpus;
use crate::table_format::first_given;

/// Options of the table io-pacing.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of io-pacing")]
pub(crate) struct PacingArguments {
    /// Published tests to repeat, each with its own rows [default: rows of the options below]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = test)]
    test: Vec<PacingTest>,
    /// Ops in flight per initiator, one row each [default: 1,32,256,1024]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=DEPTH_MAX))]
    depth: Vec<u32>,
    /// Kinds of devices [default: null,memory]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    devices: Vec<DeviceName>,
    /// Pacing policies [default: none,buffers,rate,auto]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pacing: Vec<PolicyName>,
    /// Numbers of buffers of the policy buffers [default: 96,48,16]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    buffers: Vec<u32>,
    /// Periods of the policy rate: time per 128 KiB of the target as a whole, in microseconds
    /// [default: published ones, scaled to this machine]
    #[arg(long, value_name = "US,…", value_delimiter = ',', value_parser = period)]
    period: Vec<f64>,
    /// Buffers that each thread of the target keeps [default: the target's default]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=65_536))]
    buffer_cache: Vec<u32>,
    /// Threads of the target [default: 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=128))]
    threads: Vec<u32>,
    /// Slow devices, 1 ms of latency each, among 48
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=47))]
    slow: Option<u32>,
    /// Ops in flight per initiator on the slow devices [default: as on the others]
    #[arg(long, value_name = "N", requires = "slow")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=DEPTH_MAX))]
    slow_depth: Option<u32>,
    /// Initiators, a process each [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    initiators: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DeviceName {
    /// No data move between device and buffer
    Null,
    /// Data in memory
    Memory,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyName {
    /// Buffers as needed
    None,
    /// A fixed number of buffers
    Buffers,
    /// A period per 128 KiB
    Rate,
    /// Fewest buffers that keep the bandwidth
    Auto,
}

impl PacingArguments {
    /// Returns an option that was given, if there is one.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let others = [
            ("--test", !self.test.is_empty()),
            ("--slow-depth", self.slow_depth.is_some()),
            ("--initiators", self.initiators.is_some()),
        ];
        first_given(others.into_iter().chain(self.row_options()))
    }

    /// Refuses these options for another table.
    pub(crate) fn refuse_for(&self, name: &str) -> Result<()> {
        match self.given() {
            Some(option) => {
                bail!("{name}: {option} applies to io-pacing only\nhint: omit it")
            }
            None => Ok(()),
        }
    }

    /// Returns the experiment's parameters.
    pub(crate) fn to_config(&self, seconds: Option<u32>, repeats: Option<u32>) -> Result<IoPacing> {
        let rows = if self.test.is_empty() {
            self.rows()
        } else {
            self.test_rows()?
        };
        Ok(IoPacing {
            rows,
            initiators: self.initiators.unwrap_or(1),
            repeats: repeats.unwrap_or(REPEATS),
            seconds: seconds.unwrap_or(SECONDS),
            cpus: fathom_sys::thread::allowed_cpus().unwrap_or_default(),
            fathom: std::env::current_exe()?,
        })
    }

    /// Returns the options that make rows, and whether each is given.
    const fn row_options(&self) -> [(&'static str, bool); 8] {
        [
            ("--depth", !self.depth.is_empty()),
            ("--devices", !self.devices.is_empty()),
            ("--pacing", !self.pacing.is_empty()),
            ("--buffers", !self.buffers.is_empty()),
            ("--period", !self.period.is_empty()),
            ("--buffer-cache", !self.buffer_cache.is_empty()),
            ("--threads", !self.threads.is_empty()),
            ("--slow", self.slow.is_some()),
        ]
    }

    /// Returns the rows of the published tests that were named, each once.
    fn test_rows(&self) -> Result<Vec<Condition>> {
        if let Some((option, _)) = self.row_options().into_iter().find(|(_, given)| *given) {
            bail!("--test names the rows; {option} does not apply\nhint: omit one of the two");
        }
        let mut rows: Vec<Condition> = Vec::new();
        for &test in &self.test {
            for row in IoPacing::published_rows(test, usable_cpus()) {
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    /// Returns all combinations of the options.
    fn rows(&self) -> Vec<Condition> {
        let depths = or(&self.depth, &[1, 32, 256, 1024]);
        let threads = or(&self.threads, &[1]);
        let devices: Vec<Devices> = or(&self.devices, &[DeviceName::Null, DeviceName::Memory])
            .into_iter()
            .map(|name| match name {
                DeviceName::Null => Devices::Null,
                DeviceName::Memory => Devices::Memory,
            })
            .collect();
        let caches: Vec<Option<u32>> = match self.buffer_cache.is_empty() {
            true => vec![None],
            false => self.buffer_cache.iter().copied().map(Some).collect(),
        };
        let mut rows = Vec::new();
        for &kind in &devices {
            for &threads in &threads {
                for &buffer_cache in &caches {
                    for pacing in self.policies() {
                        rows.extend(depths.iter().map(|&depth| Condition {
                            devices: kind,
                            pacing,
                            threads,
                            buffer_cache,
                            depth,
                            slow: self.slow.map(|devices| Slow {
                                devices,
                                depth: self.slow_depth.unwrap_or(depth),
                            }),
                        }));
                    }
                }
            }
        }
        rows
    }

    fn policies(&self) -> Vec<Pacing> {
        let all = [
            PolicyName::None,
            PolicyName::Buffers,
            PolicyName::Rate,
            PolicyName::Auto,
        ];
        let policies = or(&self.pacing, &all).into_iter();
        policies
            .flat_map(|policy| match policy {
                PolicyName::None => vec![Pacing::None],
                PolicyName::Auto => vec![Pacing::Auto],
                PolicyName::Buffers => (or(&self.buffers, &[96, 48, 16]).into_iter())
                    .map(Pacing::Buffers)
                    .collect(),
                PolicyName::Rate if self.period.is_empty() => PUBLISHED_PERIODS_US
                    .map(|us| Pacing::Rate(Period::PublishedUs(us)))
                    .to_vec(),
                PolicyName::Rate => (self.period.iter())
                    .map(|&us| Pacing::Rate(Period::Us(us)))
                    .collect(),
            })
            .collect()
    }
}

fn or<T: Copy>(given: &[T], default: &[T]) -> Vec<T> {
    if given.is_empty() { default } else { given }.to_vec()
}

fn test(name: &str) -> Result<PacingTest, String> {
    let found = PacingTest::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, test)| *test).ok_or_else(|| {
        let names: Vec<&str> = PacingTest::ALL.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

fn period(text: &str) -> Result<f64, String> {
    let us = text.parse().ok().filter(|us| (0.1..=1e6).contains(us));
    us.ok_or_else(|| "microseconds, 0.1 to 1000000".to_owned())
}

/// Published periods around the line rate.
const PUBLISHED_PERIODS_US: [f64; 3] = [5.0, 5.5, 6.0];
/// As the target's queues allow in all.
const DEPTH_MAX: i64 = 4096;
const REPEATS: u32 = 3;
const SECONDS: u32 = 2;
