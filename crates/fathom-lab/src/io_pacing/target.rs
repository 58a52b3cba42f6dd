//! Target of a row: a process of this program, sampled through its statistics.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_core::{Nanos, Tick};
use fathom_record::TargetRecord;
use fathom_sys::cache_counters::{CacheCounters, CacheCounts};
use fathom_sys::child::{Child, end_with_parent};
use fathom_sys::clock::Clock;

use super::DEVICES;
use super::condition::{Condition, Devices, Pacing, SLOW_TEST_DEVICES};
use super::outcome::{Samples, count, mean};
use crate::error::CommandError;

/// Configuration of a row's target.
pub(super) struct TargetPlan<'a> {
    /// Path of this program.
    pub(super) fathom: &'a Path,
    /// Condition of the row.
    pub(super) condition: &'a Condition,
    /// Time in which the machine moves a buffer, µs.
    pub(super) line_us: f64,
    /// CPUs of the threads, one each; `None`: any.
    pub(super) cpus: Option<&'a [u32]>,
    /// Folder for the configuration and the socket.
    pub(super) folder: &'a Path,
}

impl TargetPlan<'_> {
    /// Returns the namespaces: numbered from 1, the slow ones last.
    fn nsids(&self) -> (Vec<u32>, Vec<u32>) {
        let all = self.device_count();
        let slow = self.condition.slow.map_or(0, |slow| slow.devices);
        let fast = all.saturating_sub(slow).max(1);
        ((1..=fast).collect(), (fast + 1..=all).collect())
    }

    const fn device_count(&self) -> u32 {
        match self.condition.slow {
            Some(_) => SLOW_TEST_DEVICES,
            None => DEVICES,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("target.sock")
    }

    /// Writes the target file.
    fn text(&self) -> String {
        let Condition {
            devices, threads, ..
        } = self.condition;
        let mut text = String::new();
        text += "listen = \"127.0.0.1:0\"\n";
        _ = writeln!(text, "socket = {:?}", self.socket().display().to_string());
        _ = writeln!(text, "threads = {threads}\nbuffer_size = \"128k\"");
        if let Some(cpus) = self.cpus {
            let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
            _ = writeln!(text, "cpus = {:?}", cpus.join(","));
        }
        if let Some(cache) = self.condition.buffer_cache {
            _ = writeln!(text, "buffer_cache = {cache}");
        }
        text += &self.pacing();
        let (fast, slow) = self.nsids();
        let size = match devices {
            Devices::Null => NULL_GIB << 10,
            Devices::Memory => MEMORY_MIB / self.device_count(),
        };
        for nsid in fast.iter().chain(&slow) {
            let kind = devices.name();
            _ = writeln!(
                text,
                "\n[[device]]\nname = \"disk-{nsid}\"\nkind = \"{kind}\"\nsize = \"{size}M\"\n\
                 block_size = \"4k\""
            );
            if slow.contains(nsid) {
                text += "[[device.layer]]\nkind = \"delay\"\nread_us = 1000\n";
            }
        }
        _ = writeln!(
            text,
            "\n[[subsystem]]\nnqn = \"{NQN}\"\nallow_any_host = true"
        );
        for nsid in fast.iter().chain(&slow) {
            _ = writeln!(
                text,
                "\n[[subsystem.namespace]]\nnsid = {nsid}\ndevice = \"disk-{nsid}\""
            );
        }
        text
    }

    /// Returns the part of the file that sets buffers and pacing.
    fn pacing(&self) -> String {
        match self.condition.pacing {
            Pacing::None => "[pacing]\npolicy = \"none\"\n".into(),
            Pacing::Buffers(count) => {
                format!("buffers = {count}\n[pacing]\npolicy = \"buffers\"\n")
            }
            Pacing::Rate(period) => {
                // Each thread has a pacer of its own.
                let us = period.on_machine(self.line_us) * f64::from(self.condition.threads);
                format!("[pacing]\npolicy = \"rate\"\ncredit = \"128k\"\nperiod_us = {us:.3}\n")
            }
            Pacing::Auto => "[pacing]\npolicy = \"auto\"\n".into(),
        }
    }
}

/// Namespaces of a running target.
#[derive(Clone, Debug)]
pub(super) struct Namespaces {
    /// Port on the loopback address.
    port: u16,
    pub(super) fast: Vec<u32>,
    pub(super) slow: Vec<u32>,
}

impl Namespaces {
    /// Returns these namespaces as files of a job.
    pub(super) fn filename(&self, nsids: &[u32]) -> String {
        let port = self.port;
        let names: Vec<String> = nsids
            .iter()
            .map(|nsid| {
                format!(
                    "trtype=tcp adrfam=ipv4 traddr=127.0.0.1 trsvcid={port} subnqn={NQN} ns={nsid}"
                )
            })
            .collect();
        names.join(":")
    }
}

/// Running target; ended on drop.
pub(super) struct TargetProcess {
    child: Child,
    clock: Clock,
    socket: PathBuf,
    namespaces: Namespaces,
    counters: Option<CacheCounters>,
    /// Cache counts at the first snapshot.
    counted: Option<CacheCounts>,
    /// Data that the target had moved before the initiators started.
    filled_bytes: f64,
    /// Statistics while the initiators ran.
    snapshots: Vec<Snapshot>,
}

impl TargetProcess {
    /// Starts a target, waits until it listens, and fills its namespaces.
    pub(super) fn start(
        plan: &TargetPlan<'_>,
        stops: &dyn Fn() -> u32,
    ) -> Result<Self, CommandError> {
        let file = plan.folder.join("target.toml");
        fs::write(&file, plan.text()).map_err(CommandError::System)?;
        let errors = plan.folder.join("target.err");
        let mut command = Command::new(plan.fathom);
        command.arg("target").arg(&file).stdin(Stdio::null());
        command.stdout(Stdio::piped());
        command.stderr(fs::File::create(&errors).map_err(CommandError::System)?);
        end_with_parent(&mut command);
        let mut child = Child::spawn(&mut command).map_err(CommandError::System)?;
        let Some(port) = child
            .take_stdout()
            .and_then(|pipe| read_port(BufReader::new(pipe)))
        else {
            let text = fs::read_to_string(&errors).unwrap_or_default();
            let line = text.lines().next().unwrap_or("the target does not listen");
            return Err(CommandError::Failed(line.to_owned()));
        };
        let (fast, slow) = plan.nsids();
        let counters = CacheCounters::open(child.id()).ok();
        let mut target = Self {
            child,
            clock: Clock::monotonic(),
            socket: plan.socket(),
            namespaces: Namespaces { port, fast, slow },
            counted: None,
            counters,
            filled_bytes: 0.0,
            snapshots: Vec::new(),
        };
        if plan.condition.devices == Devices::Memory {
            target.fill(plan.fathom, stops)?;
            let filled = Snapshot::read(&target.socket, target.clock.now());
            target.filled_bytes = filled.map_or(0.0, |snapshot| snapshot.data_bytes);
        }
        Ok(target)
    }

    pub(super) fn namespaces(&self) -> Namespaces {
        self.namespaces.clone()
    }

    /// Writes all namespaces once: reads of what was never written touch no memory.
    fn fill(&self, fathom: &Path, stops: &dyn Fn() -> u32) -> Result<(), CommandError> {
        let Namespaces { fast, slow, .. } = &self.namespaces;
        let nsids: Vec<u32> = fast.iter().chain(slow).copied().collect();
        let mut command = Command::new(fathom);
        command.args(["run", "--name=fill", "--ioengine=nvme_tcp", "--rw=write"]);
        command.args(["--bs=128k", "--iodepth=32", "--thread"]);
        command.arg(format!("--filename={}", self.namespaces.filename(&nsids)));
        crate::command::output(command, stops).map(|_report| ())
    }

    /// Takes a sample if one is due.
    pub(super) fn sample(&mut self) {
        let now = self.clock.now();
        let last = self.snapshots.last();
        if last.is_some_and(|last| now < last.at + SAMPLE_INTERVAL) {
            return;
        }
        let Some(snapshot) = Snapshot::read(&self.socket, now) else {
            return;
        };
        if self.snapshots.is_empty() {
            // Before the initiators have connected there is nothing to see.
            if snapshot.data_bytes <= self.filled_bytes {
                return;
            }
            self.counted = self.counters.as_ref().and_then(|all| all.counts().ok());
        }
        self.snapshots.push(snapshot);
    }

    /// Ends the target and returns the samples.
    pub(super) fn finish(mut self) -> Samples {
        let hit_percent = self.hit_percent();
        self.child.end();
        // The initiators end within the last interval.
        let whole = self.snapshots.len().saturating_sub(1);
        Samples {
            hit_percent,
            ..Snapshot::samples(&self.snapshots[..whole])
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a percentage")]
    fn hit_percent(&self) -> Option<f64> {
        let (before, after) = (self.counted?, self.counters.as_ref()?.counts().ok()?);
        let references = after.references.wrapping_sub(before.references);
        let misses = after.misses.wrapping_sub(before.misses);
        (references > 0).then(|| (1.0 - misses as f64 / references as f64) * 100.0)
    }
}

/// Statistics of the target at one time.
#[derive(Clone, Debug)]
struct Snapshot {
    at: Tick,
    wire_bytes: f64,
    data_bytes: f64,
    threads: f64,
    /// Requests that got a buffer.
    granted: f64,
    /// Sum of the bytes that each of them found in use on its thread.
    in_use_bytes: f64,
    /// Time in which the pacers let a buffer's bytes go, on average from the start, µs.
    period_us: Option<f64>,
    /// Sum of the limits that the threads' pacers have found.
    limit_bytes: Option<f64>,
}

impl Snapshot {
    /// Reads the statistics; `None` if the target does not answer.
    fn read(socket: &Path, at: Tick) -> Option<Self> {
        let mut stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let record = TargetRecord::from_json(&text).ok()?;
        Some(Self::of(&record, at))
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn of(record: &TargetRecord, at: Tick) -> Self {
        let threads = || record.threads.iter();
        let pacers = || threads().filter_map(|thread| thread.pacer.as_ref());
        let limits: Vec<f64> = pacers()
            .filter_map(|pacer| pacer.limit_bytes)
            .map(|bytes| bytes as f64)
            .collect();
        let periods_us: Vec<f64> = pacers()
            .map(|pacer| pacer.period_measured_ns as f64 / 1e3)
            .filter(|us| *us > 0.0)
            .collect();
        let in_use = threads().map(|thread| thread.in_use_bytes_sum);
        let bytes: u64 = threads().map(|thread| thread.commands.bytes()).sum();
        Self {
            at,
            wire_bytes: (record.sent_bytes + record.received_bytes) as f64,
            data_bytes: bytes as f64,
            threads: threads().count() as f64,
            granted: threads().map(|thread| thread.granted).sum::<u64>() as f64,
            in_use_bytes: in_use.map(|bytes| bytes as f64).sum(),
            // The threads let go in parallel.
            period_us: mean(&periods_us).map(|us| us / count(&periods_us)),
            limit_bytes: (!limits.is_empty()).then(|| limits.iter().sum()),
        }
    }

    /// Sums up snapshots in the order of their times.
    fn samples(snapshots: &[Self]) -> Samples {
        let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else {
            return Samples::default();
        };
        let pairs = snapshots.windows(2);
        let granted = last.granted - first.granted;
        // On its thread; the threads hold as much each.
        let found = (last.in_use_bytes - first.in_use_bytes) / granted;
        Samples {
            wire_gbps: (last.at > first.at).then(|| gbps(first, last, |one| one.wire_bytes)),
            bw_gbps: pairs
                .map(|pair| gbps(&pair[0], &pair[1], |one| one.data_bytes))
                .collect(),
            buffer_bytes_in_flight: (granted > 0.0).then_some(found * last.threads),
            period_us: last.period_us,
            limit_bytes: last.limit_bytes,
            hit_percent: None,
        }
    }
}

/// Returns the time between two snapshots, ns.
#[expect(clippy::cast_precision_loss, reason = "a time for people")]
fn nanos(before: &Snapshot, after: &Snapshot) -> f64 {
    (after.at - before.at).get() as f64
}

/// Returns the bandwidth of these bytes between two snapshots, Gb/s.
fn gbps(before: &Snapshot, after: &Snapshot, bytes: fn(&Snapshot) -> f64) -> f64 {
    (bytes(after) - bytes(before)) * 8.0 / nanos(before, after)
}

/// Reads the port from the line that the target prints once it listens.
fn read_port(lines: impl BufRead) -> Option<u16> {
    let line = lines.lines().next()?.ok()?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "trsvcid")?;
    words.next()?.parse().ok()
}

const NQN: &str = "nqn.2026-01.io.fathom:io-pacing";
/// Size of a null device, GiB.
const NULL_GIB: u32 = 8;
/// Size of all devices in memory: beyond the caches of most machines.
const MEMORY_MIB: u32 = 1024;
/// Time between samples: ten in a repeat of a second.
const SAMPLE_INTERVAL: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests {
    use fathom_record::{CommandsRecord, PacerRecord, ThreadRecord};

    use super::super::condition::{Period, Slow};
    use super::*;

    fn plan(condition: &Condition) -> TargetPlan<'_> {
        TargetPlan {
            fathom: Path::new("fathom"),
            condition,
            line_us: 25.0,
            cpus: Some(&[0, 1]),
            folder: Path::new("/tmp"),
        }
    }

    #[test]
    fn a_target_file_has_the_row_s_devices_and_policy() {
        let condition = Condition {
            devices: Devices::Memory,
            pacing: Pacing::Rate(Period::Us(30.0)),
            threads: 2,
            buffer_cache: Some(0),
            depth: 1,
            slow: Some(Slow {
                devices: 16,
                depth: 1,
            }),
        };
        let text = plan(&condition).text();
        assert_eq!(text.matches("[[device]]").count(), 48);
        assert_eq!(text.matches("kind = \"delay\"").count(), 16);
        assert_eq!(text.matches("[[subsystem.namespace]]").count(), 48);
        for line in ["period_us = 60.000", "buffer_cache = 0", "cpus = \"0,1\""] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn the_port_is_read_from_the_first_line() {
        let line = "nqn.2026-01.a:b traddr 127.0.0.1 trsvcid 4421 ns 1 8 GiB null\n";
        assert_eq!(read_port(line.as_bytes()), Some(4421));
        assert_eq!(read_port("".as_bytes()), None);
    }

    #[test]
    fn snapshots_give_bandwidths() {
        let snapshot = |bytes: u64, period_measured_ns: u64, ms: u64| {
            let thread = |limit| ThreadRecord {
                granted: ms,
                in_use_bytes_sum: ms * 131_072,
                commands: CommandsRecord {
                    read_bytes: bytes / 2,
                    ..CommandsRecord::default()
                },
                pacer: Some(PacerRecord {
                    period_measured_ns,
                    limit_bytes: Some(limit),
                    ..PacerRecord::default()
                }),
                ..ThreadRecord::default()
            };
            let record = TargetRecord {
                threads: vec![thread(16), thread(8)],
                ..TargetRecord::default()
            };
            Snapshot::of(&record, Tick::new(ms * 1_000_000))
        };
        let samples = Snapshot::samples(&[
            snapshot(0, 0, 0),
            snapshot(125_000_000, 50_000, 100),
            snapshot(125_000_000, 50_000, 200),
        ]);
        let near = |found: Option<f64>, want: f64| {
            assert!(
                found.is_some_and(|found| (found - want).abs() < 1e-9),
                "{found:?} {want}"
            );
        };
        near(samples.bw_gbps.first().copied(), 10.0);
        near(samples.bw_gbps.last().copied(), 0.0);
        near(samples.period_us, 25.0);
        near(samples.limit_bytes, 24.0);
        near(samples.buffer_bytes_in_flight, 262_144.0);
        assert_eq!(Snapshot::samples(&[]), Samples::default());
    }
}
