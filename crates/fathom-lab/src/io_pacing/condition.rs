//! Conditions of a row, and the grids of the published tests.

use std::fmt;

/// Conditions under which a row is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Kind of the devices behind the namespaces.
    pub devices: Devices,
    /// Policy of the target.
    pub pacing: Pacing,
    /// Threads of the target.
    pub threads: u32,
    /// Buffers that each thread keeps; `None`: the target's default.
    pub buffer_cache: Option<u32>,
    /// Ops in flight per initiator, on the devices that are not slow.
    pub depth: u32,
    /// Slow devices among the others.
    pub slow: Option<Slow>,
}

/// Kind of device behind the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// No data move between device and buffer.
    Null,
    /// Data in memory, copied to the buffers; stands beside published NVMe drives.
    Memory,
}

/// Devices with 1 ms of added latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Number among all 48 devices.
    pub devices: u32,
    /// Ops in flight per initiator on them.
    pub depth: u32,
}

/// Pacing policy of the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Buffers as needed.
    None,
    /// This many buffers.
    Buffers(u32),
    /// A period per buffer of the target as a whole.
    Rate(Period),
    /// The target finds the number of buffers.
    Auto,
}

/// Period of the rate pacer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Period {
    /// Microseconds.
    Us(f64),
    /// Published microseconds on a link of 184.8 Gb/s, scaled to what this machine moves.
    PublishedUs(f64),
}

impl Period {
    /// Returns the period in µs on a machine that moves a buffer in `line_us`.
    pub(super) fn on_machine(self, line_us: f64) -> f64 {
        match self {
            Self::Us(us) => us,
            Self::PublishedUs(us) => us / PUBLISHED_LINE_US * line_us,
        }
    }
}

impl Devices {
    /// Returns the name in rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Buffers(count) => write!(f, "buffers {count}"),
            Self::Rate(_) => f.write_str("rate"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, depth, .. } = self;
        write!(f, "{}, {}, depth {depth}", devices.name(), self.pacing)?;
        if let Pacing::Rate(Period::Us(us) | Period::PublishedUs(us)) = self.pacing {
            write!(f, ", {us} us")?;
        }
        if let Some(slow) = self.slow {
            write!(f, ", {} slow at depth {}", slow.devices, slow.depth)?;
        }
        Ok(())
    }
}

/// Published test that the table repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingTest {
    /// Depths without pacing (tests 2 and 3).
    None,
    /// Depths with 96 buffers (4 and 5).
    Buffers,
    /// Numbers of threads with 96 buffers (7).
    Threads,
    /// Buffers kept per thread, 0 included (8).
    Cache,
    /// Numbers of buffers, the unstable ones included (9 and 10).
    BufferCount,
    /// Slow devices that share the depth of all (11).
    SlowShared,
    /// Slow devices whose depth is held (12).
    SlowHeld,
    /// Latency at depth 1.
    Latency,
    /// Periods of the rate pacer (14).
    Rate,
}

impl PacingTest {
    /// All tests, by name.
    pub const ALL: [(&'static str, Self); 9] = [
        ("none", Self::None),
        ("buffers", Self::Buffers),
        ("threads", Self::Threads),
        ("cache", Self::Cache),
        ("buffer-count", Self::BufferCount),
        ("slow-shared", Self::SlowShared),
        ("slow-held", Self::SlowHeld),
        ("latency", Self::Latency),
        ("rate", Self::Rate),
    ];

    /// Returns the test's grid, with `auto` beside the published policies where devices are slow.
    /// Targets have one thread, and up to `threads` where their number is the subject.
    pub(super) fn grid(self, threads: u32) -> Vec<Condition> {
        let base = |devices, pacing, depth| Condition {
            devices,
            pacing,
            threads: 1,
            buffer_cache: None,
            depth,
            slow: None,
        };
        let memory = |pacing, depth| base(Devices::Memory, pacing, depth);
        match self {
            Self::None | Self::Buffers => {
                let fixed = match self {
                    Self::None => Pacing::None,
                    _ => Pacing::Buffers(96),
                };
                let null = [16, 32, 64, 128, 256].map(|depth| base(Devices::Null, fixed, depth));
                let memory = [32, 64, 256, 1024, 2048].map(|depth| memory(fixed, depth));
                null.into_iter().chain(memory).collect()
            }
            Self::Threads => {
                let cells = [1, 2, 4, 8, 16]
                    .into_iter()
                    .filter(|&count| count <= threads);
                cells
                    .flat_map(|threads| [32, 256].map(|depth| (threads, depth)))
                    .map(|(threads, depth)| Condition {
                        threads,
                        ..memory(Pacing::Buffers(96), depth)
                    })
                    .collect()
            }
            Self::Cache => [6, 1, 0]
                .into_iter()
                .flat_map(|cache| [32, 128, 256].map(|depth| (cache, depth)))
                .map(|(cache, depth)| Condition {
                    buffer_cache: Some(cache),
                    ..memory(Pacing::Buffers(96), depth)
                })
                .collect(),
            Self::BufferCount => [256, 1024]
                .into_iter()
                .flat_map(|depth| BUFFER_COUNTS.map(|count| memory(Pacing::Buffers(count), depth)))
                .collect(),
            Self::SlowShared => {
                let cells = [85, 341]
                    .into_iter()
                    .flat_map(|depth| [0, 16, 32].map(|devices| (depth, Slow { devices, depth })));
                slow_rows(cells, memory)
            }
            Self::SlowHeld => {
                let held = [(256, 1), (256, 4), (256, 16), (1024, 4), (1024, 32)];
                let cells = held.into_iter().flat_map(|(fast, depth)| {
                    [16, 32].map(|devices| (fast, Slow { devices, depth }))
                });
                slow_rows(cells, memory)
            }
            Self::Latency => [Devices::Null, Devices::Memory]
                .map(|kind| base(kind, Pacing::None, 1))
                .to_vec(),
            Self::Rate => [32, 256, 1024]
                .into_iter()
                .flat_map(|depth| {
                    PUBLISHED_PERIODS_US
                        .map(|us| memory(Pacing::Rate(Period::PublishedUs(us)), depth))
                })
                .collect(),
        }
    }
}

/// Returns rows with slow devices, each with 48 buffers as published and with `auto`.
fn slow_rows(
    cells: impl Iterator<Item = (u32, Slow)>,
    row: impl Fn(Pacing, u32) -> Condition,
) -> Vec<Condition> {
    let policies = [Pacing::Buffers(48), Pacing::Auto];
    cells
        .flat_map(|cell| policies.map(|pacing| (cell, pacing)))
        .map(|((depth, slow), pacing)| Condition {
            slow: Some(slow),
            ..row(pacing, depth)
        })
        .collect()
}

/// Published numbers of buffers.
const BUFFER_COUNTS: [u32; 10] = [128, 96, 64, 48, 44, 40, 36, 32, 24, 16];
/// Published periods, thinned out: below, at and above the line rate.
const PUBLISHED_PERIODS_US: [f64; 5] = [4.0, 5.0, 5.5, 6.0, 7.0];
/// Time of a buffer of 128 KiB at 184.8 Gb/s.
pub(super) const PUBLISHED_LINE_US: f64 = 5.674;
/// Devices of the tests with slow ones.
pub(super) const SLOW_TEST_DEVICES: u32 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_has_rows_and_distinct_ones() {
        for (name, test) in PacingTest::ALL {
            let grid = test.grid(4);
            assert!(!grid.is_empty(), "{name}");
            for (at, row) in grid.iter().enumerate() {
                assert!(!grid[..at].contains(row), "{name}: {row}");
            }
        }
    }

    #[test]
    fn published_periods_are_scaled_to_the_machine() {
        assert_eq!(
            Period::Us(30.0).on_machine(25.0).to_bits(),
            30.0_f64.to_bits()
        );
        let period = Period::PublishedUs(PUBLISHED_LINE_US).on_machine(25.0);
        assert!((period - 25.0).abs() < 1e-9);
    }
}
