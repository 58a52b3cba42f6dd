//! State of a target as text.

use std::fmt::Write as _;

use fathom_record::{
    BuffersRecord, CommandsRecord, ConnectionRecord, NamespaceRecord, TargetRecord, ThreadRecord,
};

use crate::peak::{aligned, short};

/// Formats the state of a target; rates are those since `earlier`, a record of the same target, or
/// since its start.
#[must_use]
pub fn target_state(record: &TargetRecord, earlier: Option<&TargetRecord>) -> String {
    let earlier = earlier.filter(|earlier| earlier.uptime_ns < record.uptime_ns);
    let since = earlier.map_or(0, |earlier| earlier.uptime_ns);
    let seconds = seconds(record.uptime_ns.saturating_sub(since));
    let rates = Rates { seconds };
    let mut text = head(record, earlier.is_some(), seconds);
    let threads = record.threads.iter().map(|thread| {
        let was = earlier.and_then(|earlier| earlier.threads.get(thread.thread as usize));
        thread_row(
            thread,
            rates.of(thread.commands, was.map(|was| was.commands)),
        )
    });
    table(&mut text, &THREAD_HEADS, threads.collect());
    for thread in &record.threads {
        text.push_str(&pacer_line(thread));
    }
    let namespaces = record.namespaces.iter().map(|namespace| {
        let same =
            |was: &&NamespaceRecord| (&was.nqn, was.nsid) == (&namespace.nqn, namespace.nsid);
        let was = earlier.and_then(|earlier| earlier.namespaces.iter().find(same));
        namespace_row(
            namespace,
            rates.of(namespace.commands, was.map(|was| was.commands)),
        )
    });
    table(&mut text, &NAMESPACE_HEADS, namespaces.collect());
    let connections = record.connections.iter().map(|connection| {
        let same = |was: &&ConnectionRecord| was.peer == connection.peer;
        let was = earlier.and_then(|earlier| earlier.connections.iter().find(same));
        connection_row(
            connection,
            rates.of(connection.commands, was.map(|was| was.commands)),
        )
    });
    table(&mut text, &CONNECTION_HEADS, connections.collect());
    text
}

fn head(record: &TargetRecord, is_interval: bool, seconds: f64) -> String {
    let events = record.events;
    let mut text = format!(
        "target {} on {}, up {} s\n",
        record.pid,
        record.listen.join(", "),
        record.uptime_ns / NS_PER_S,
    );
    text.push_str(&buffers_line(&record.buffers));
    let _infallible = writeln!(
        text,
        "connections: {} now, {} accepted, {} turned away at a limit\n\
         Connect: {} succeeded, {} refused; ended: {} by a timer, {} by a protocol error",
        record.connections.len(),
        events.accepted,
        events.turned_away,
        events.connected,
        events.refused,
        events.expired,
        events.terminated,
    );
    let _infallible = match is_interval {
        true => writeln!(text, "rates: over the last {seconds:.1} s"),
        false => writeln!(text, "rates: since the start"),
    };
    text
}

fn buffers_line(buffers: &BuffersRecord) -> String {
    let count = match buffers.count {
        Some(count) => format!("of {count}"),
        None => "of any number".to_owned(),
    };
    format!(
        "buffers: {} {count} in use, {} KiB each, pacing {}\n",
        buffers.in_use,
        buffers.buffer_bytes / 1024,
        buffers.policy,
    )
}

fn thread_row(thread: &ThreadRecord, [iops, bandwidth]: [String; 2]) -> Vec<String> {
    let taken = thread.cache_hits + thread.pool_hits;
    let from_cache = match taken {
        0 => "-".to_owned(),
        taken => format!("{:.1} %", 100.0 * float(thread.cache_hits) / float(taken)),
    };
    vec![
        thread.thread.to_string(),
        thread
            .cpu
            .map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()),
        thread.connections.to_string(),
        iops,
        bandwidth,
        thread.buffers_in_use.to_string(),
        thread.buffers_cached.to_string(),
        from_cache,
        thread.pending.to_string(),
        thread.pending_total.to_string(),
    ]
}

fn pacer_line(thread: &ThreadRecord) -> String {
    let Some(pacer) = &thread.pacer else {
        return String::new();
    };
    let mut text = format!("pacer of thread {}:", thread.thread);
    if pacer.period_ns > 0 {
        let us = |ns| float(ns) / 1e3;
        let _infallible = write!(
            text,
            " {} grants, {:.1} MiB, {} periods in {} polls\n  period {:.2} us, measured {:.2} us",
            pacer.grants,
            float(pacer.granted_bytes) / MIB,
            pacer.periods,
            pacer.polls,
            us(pacer.period_ns),
            us(pacer.period_measured_ns),
        );
    }
    if !pacer.evidence.is_empty() {
        let limit = match pacer.limit_bytes {
            Some(bytes) => format!("at most {:.2} MiB in flight", float(bytes) / MIB),
            None => "no limit".to_owned(),
        };
        let _infallible = write!(text, " {limit}\n  {}", pacer.evidence);
    }
    text.push('\n');
    text
}

fn namespace_row(namespace: &NamespaceRecord, [iops, bandwidth]: [String; 2]) -> Vec<String> {
    let commands = namespace.commands;
    vec![
        namespace.nqn.clone(),
        namespace.nsid.to_string(),
        namespace.device.clone(),
        iops,
        bandwidth,
        commands.reads.to_string(),
        commands.writes.to_string(),
        commands.others.to_string(),
        commands.errors.to_string(),
    ]
}

fn connection_row(connection: &ConnectionRecord, [iops, bandwidth]: [String; 2]) -> Vec<String> {
    let number = |found: Option<u16>| found.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let or_none = |text: &str| match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    };
    vec![
        connection.peer.clone(),
        connection.thread.to_string(),
        number(connection.cntlid),
        number(connection.qid),
        connection.in_flight.to_string(),
        iops,
        bandwidth,
        connection.commands.errors.to_string(),
        or_none(&connection.host_nqn),
    ]
}

/// Adds a table below an empty line; nothing if it has no rows.
fn table(text: &mut String, heads: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let mut all = vec![heads.iter().map(ToString::to_string).collect()];
    all.extend(rows);
    text.push('\n');
    text.push_str(&aligned(&all));
}

/// Rates of an interval.
#[derive(Clone, Copy)]
struct Rates {
    seconds: f64,
}

impl Rates {
    /// Returns IOPS and MiB/s.
    fn of(self, now: CommandsRecord, was: Option<CommandsRecord>) -> [String; 2] {
        let was = was.unwrap_or_default();
        let rate = |now: u64, was: u64| float(now.saturating_sub(was)) / self.seconds;
        [
            short(rate(now.count(), was.count())),
            format!("{:.1}", rate(now.bytes(), was.bytes()) / MIB),
        ]
    }
}

/// Converts an interval, which is at least a microsecond.
fn seconds(ns: u64) -> f64 {
    float(ns.max(1000)) / float(NS_PER_S)
}

#[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2⁻⁵³")]
const fn float(number: u64) -> f64 {
    number as f64
}

const THREAD_HEADS: [&str; 10] = [
    "thread",
    "CPU",
    "conns",
    "IOPS",
    "MiB/s",
    "in use",
    "cached",
    "from cache",
    "pending",
    "waited",
];
const NAMESPACE_HEADS: [&str; 9] = [
    "subsystem",
    "ns",
    "device",
    "IOPS",
    "MiB/s",
    "reads",
    "writes",
    "others",
    "errors",
];
const CONNECTION_HEADS: [&str; 9] = [
    "connection",
    "thread",
    "ctrl",
    "queue",
    "in flight",
    "IOPS",
    "MiB/s",
    "errors",
    "host",
];
const NS_PER_S: u64 = 1_000_000_000;
const MIB: f64 = 1_048_576.0;

#[cfg(test)]
pub(crate) mod tests {
    use fathom_record::{EventsRecord, PacerRecord, TARGET_VERSION};

    use super::*;

    /// Target of one thread with one connection, of which nothing is zero.
    pub(crate) fn example() -> TargetRecord {
        let commands = CommandsRecord {
            reads: 4000,
            read_bytes: 4000 << 12,
            writes: 100,
            written_bytes: 100 << 17,
            others: 5,
            errors: 2,
            digest_errors: 1,
        };
        TargetRecord {
            version: TARGET_VERSION,
            timestamp_ms: 1_700_000_000_000,
            uptime_ns: 2 * NS_PER_S,
            pid: 4711,
            listen: vec!["127.0.0.1:4420".into()],
            received_bytes: 14 << 20,
            sent_bytes: 17 << 20,
            commands,
            buffers: BuffersRecord {
                count: Some(32),
                buffer_bytes: 131_072,
                in_use: 3,
                pending: 2,
                policy: "rate".into(),
            },
            events: EventsRecord {
                accepted: 6,
                turned_away: 1,
                connected: 4,
                refused: 2,
                expired: 1,
                terminated: 1,
            },
            threads: vec![ThreadRecord {
                thread: 0,
                cpu: Some(1),
                connections: 1,
                turns: 5000,
                idle_turns: 100,
                receives: 2000,
                sends: 1900,
                commands,
                buffers_in_use: 3,
                in_use_bytes: 3 << 12,
                granted: 1 << 12,
                in_use_bytes_sum: 3 << 24,
                buffers_cached: 8,
                pending: 2,
                pending_total: 77,
                cache_hits: 900,
                pool_hits: 100,
                pacer: Some(PacerRecord {
                    polls: 10_000,
                    periods: 500,
                    grants: 400,
                    granted_bytes: 3 << 20,
                    period_ns: 23_000,
                    period_measured_ns: 24_500,
                    limit_bytes: None,
                    evidence: String::new(),
                }),
            }],
            namespaces: vec![NamespaceRecord {
                nqn: "nqn.2026-01.org.example:a".into(),
                nsid: 1,
                device: "8 GiB null".into(),
                commands,
            }],
            connections: vec![connection(commands)],
        }
    }

    fn connection(commands: CommandsRecord) -> ConnectionRecord {
        ConnectionRecord {
            thread: 0,
            peer: "127.0.0.1:50000".into(),
            nqn: "nqn.2026-01.org.example:a".into(),
            host_nqn: String::new(),
            cntlid: Some(1),
            qid: Some(2),
            in_flight: 4,
            commands,
            admin_commands: 0,
            received_bytes: 14 << 20,
            sent_bytes: 17 << 20,
        }
    }

    #[test]
    fn state_is_shown_in_tables() {
        let want = "\
target 4711 on 127.0.0.1:4420, up 2 s
buffers: 3 of 32 in use, 128 KiB each, pacing rate
connections: 1 now, 6 accepted, 1 turned away at a limit
Connect: 4 succeeded, 2 refused; ended: 1 by a timer, 1 by a protocol error
rates: since the start

thread  CPU  conns  IOPS  MiB/s  in use  cached  from cache  pending  waited
     0    1      1  2052   14.1       3       8      90.0 %        2      77
pacer of thread 0: 400 grants, 3.0 MiB, 500 periods in 10000 polls
  period 23.00 us, measured 24.50 us

                subsystem  ns      device  IOPS  MiB/s  reads  writes  others  errors
nqn.2026-01.org.example:a   1  8 GiB null  2052   14.1   4000     100       5       2

     connection  thread  ctrl  queue  in flight  IOPS  MiB/s  errors  host
127.0.0.1:50000       0     1      2          4  2052   14.1       2     -
";
        assert_eq!(target_state(&example(), None), want);
    }

    #[test]
    fn automatic_pacing_gives_its_evidence() {
        let mut record = example();
        let pacer = PacerRecord {
            limit_bytes: Some(3 << 20),
            evidence: "4000 MiB/s here, 3500 below".into(),
            ..PacerRecord::default()
        };
        record.threads[0].pacer = Some(pacer);
        let want = "pacer of thread 0: at most 3.00 MiB in flight\n  4000 MiB/s here, 3500 below\n";
        let text = target_state(&record, None);
        assert!(text.contains(want), "{text}");
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let earlier = example();
        let mut record = example();
        record.uptime_ns += NS_PER_S / 2;
        record.threads[0].commands.reads += 1000;
        record.threads[0].commands.read_bytes += 1000 << 12;
        let text = target_state(&record, Some(&earlier));
        assert!(text.contains("rates: over the last 0.5 s"), "{text}");
        assert!(text.contains("     0    1      1  2000    7.8 "), "{text}");
        // A target that was restarted meanwhile has nothing in common.
        let text = target_state(&earlier, Some(&record));
        assert!(text.contains("rates: since the start"), "{text}");
    }

    #[test]
    fn json_survives() {
        let record = example();
        let text = record.to_json().unwrap();
        assert_eq!(TargetRecord::from_json(&text).unwrap(), record);
        let later = text.replace("\"version\":1", "\"version\":2");
        assert!(TargetRecord::from_json(&later).is_err());
    }
}
