//! State of a running target as a record.

use fathom_block::{AdmissionStatistics, AutoStatistics, BufferConfig};
use fathom_net::target::{ConnectionStatistics, IoCounters, TargetStatistics, ThreadStatistics};
use fathom_record::{
    BuffersRecord, CommandsRecord, ConnectionRecord, EventsRecord, NamespaceRecord, PacerRecord,
    TARGET_VERSION, TargetRecord, ThreadRecord,
};
use fathom_sys::clock::{self, Clock};

/// Facts of a target that do not change.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Its origin is the start.
    pub(crate) clock: Clock,
    pub(crate) listen: Vec<String>,
    pub(crate) buffers: BufferConfig,
    pub(crate) policy: &'static str,
    pub(crate) cpus: Vec<u32>,
    /// Descriptions of the namespaces' devices, in the order of the statistics.
    pub(crate) devices: Vec<String>,
}

impl Facts {
    /// Creates the record of a target's counters.
    pub(crate) fn record(&self, counted: TargetStatistics, events: EventsRecord) -> TargetRecord {
        let threads = &counted.threads;
        let sum = |count: fn(&ThreadStatistics) -> u64| threads.iter().map(count).sum::<u64>();
        let connections: Vec<ConnectionRecord> = threads
            .iter()
            .flat_map(|one| one.connections.iter().map(|it| connection(one.thread, it)))
            .collect();
        let mut all = CommandsRecord::default();
        let namespaces = counted.namespaces.iter().map(|one| &one.io);
        for io in namespaces.chain(threads.iter().map(|one| &one.unnamed)) {
            all.merge(&commands(io));
        }
        let pending = threads.iter().map(|one| one.admission.pending).sum();
        let named = counted.namespaces.iter().zip(&self.devices);
        TargetRecord {
            version: TARGET_VERSION,
            timestamp_ms: clock::wall_ms(),
            uptime_ns: self.clock.now().get(),
            pid: std::process::id(),
            listen: self.listen.clone(),
            received_bytes: sum(|one| one.received_bytes),
            sent_bytes: sum(|one| one.sent_bytes),
            commands: all,
            buffers: BuffersRecord {
                count: self.buffers.count,
                buffer_bytes: self.buffers.bytes,
                in_use: counted.buffers_in_use,
                pending,
                policy: self.policy.to_owned(),
            },
            events: EventsRecord {
                accepted: sum(|one| one.accepted),
                turned_away: sum(|one| one.turned_away),
                ..events
            },
            namespaces: named
                .map(|(namespace, device)| NamespaceRecord {
                    nqn: namespace.subsystem_nqn.clone(),
                    nsid: namespace.nsid,
                    device: device.clone(),
                    commands: commands(&namespace.io),
                })
                .collect(),
            threads: threads.iter().map(|one| self.thread(one)).collect(),
            connections,
        }
    }

    fn thread(&self, counted: &ThreadStatistics) -> ThreadRecord {
        let mut all = CommandsRecord::default();
        for io in counted.namespaces.iter().chain([&counted.unnamed]) {
            all.merge(&commands(io));
        }
        let admission = &counted.admission;
        let connections = u32::try_from(counted.connections.len());
        ThreadRecord {
            thread: counted.thread,
            cpu: self.cpus.get(counted.thread as usize).copied(),
            connections: connections.unwrap_or(u32::MAX),
            turns: counted.turns,
            idle_turns: counted.idle_turns,
            receives: counted.receives,
            sends: counted.sends,
            commands: all,
            buffers_in_use: admission.in_use,
            in_use_bytes: admission.in_use_bytes,
            granted: admission.granted,
            in_use_bytes_sum: admission.in_use_bytes_sum,
            buffers_cached: admission.cached,
            pending: admission.pending,
            pending_total: admission.pending_total,
            cache_hits: admission.cache_hits,
            pool_hits: admission.pool_hits,
            pacer: pacer(admission),
        }
    }
}

fn pacer(admission: &AdmissionStatistics) -> Option<PacerRecord> {
    if let Some(auto) = &admission.auto {
        return Some(PacerRecord {
            limit_bytes: auto.limit_bytes,
            evidence: evidence(auto),
            ..PacerRecord::default()
        });
    }
    let rate = admission.rate?;
    Some(PacerRecord {
        polls: rate.polls,
        periods: rate.ticks,
        grants: rate.grants,
        granted_bytes: rate.bytes,
        period_ns: rate.period.get(),
        period_measured_ns: rate.period_measured.get(),
        limit_bytes: None,
        evidence: String::new(),
    })
}

/// Formats what automatic pacing has measured at its limit, beside it, and of slow devices.
fn evidence(auto: &AutoStatistics) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let kib = |bytes: u64| bytes >> 10;
    let mut text = format!("{} MiB/s here", mib(auto.bandwidth));
    for (name, beside) in [("below", auto.below), ("above", auto.above)] {
        if let Some(beside) = beside {
            let bandwidth = mib(beside.bandwidth);
            text += &match beside.limit_bytes {
                Some(bytes) => format!(", {bandwidth} MiB/s {name}, at {} KiB", kib(bytes)),
                None => format!(", {bandwidth} MiB/s without a limit"),
            };
        }
    }
    if auto.slow_devices > 0 {
        text += &format!("; {} slow devices", auto.slow_devices);
        if let Some(part) = auto.slow_part {
            text += &format!(" get 1/{part} of it");
        }
    }
    text += &format!("; {} sweeps, {} trials", auto.sweeps, auto.trials);
    text
}

fn connection(thread: u32, counted: &ConnectionStatistics) -> ConnectionRecord {
    ConnectionRecord {
        thread,
        peer: counted.peer.to_string(),
        nqn: counted.subsystem_nqn.clone(),
        host_nqn: counted.host_nqn.clone(),
        cntlid: counted.queue.map(|(cntlid, _)| cntlid),
        qid: counted.queue.map(|(_, qid)| qid),
        in_flight: counted.in_flight,
        commands: commands(&counted.io),
        admin_commands: counted.admin_commands,
        received_bytes: counted.received_bytes,
        sent_bytes: counted.sent_bytes,
    }
}

const fn commands(io: &IoCounters) -> CommandsRecord {
    CommandsRecord {
        reads: io.reads,
        read_bytes: io.read_bytes,
        writes: io.writes,
        written_bytes: io.written_bytes,
        others: io.others,
        errors: io.errors,
        digest_errors: io.digest_errors,
    }
}
