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
    let rows = threads.map(|row| (None, row));
    table(&mut text, &THREAD_HEADS, rows.collect());
    for thread in &record.threads {
        text.push_str(&pacer_line(thread));
    }
    let namespaces = record.namespaces.iter().map(|namespace| {
        let same =
            |was: &&NamespaceRecord| (&was.nqn, was.nsid) == (&namespace.nqn, namespace.nsid);
        let was = earlier.and_then(|earlier| earlier.namespaces.iter().find(same));
        let rates = rates.of(namespace.commands, was.map(|was| was.commands));
        let group = format!("subsystem {}", namespace.nqn);
        (Some(group), namespace_row(namespace, rates))
    });
    table(&mut text, &NAMESPACE_HEADS, namespaces.collect());
    connections(&mut text, record, earlier, rates);
    text
}

/// Adds the connections by host, no more than fit a screen.
fn connections(
    text: &mut String,
    record: &TargetRecord,
    earlier: Option<&TargetRecord>,
    rates: Rates,
) {
    let mut shown: Vec<_> = record.connections.iter().collect();
    shown.truncate(CONNECTIONS_SHOWN);
    shown.sort_by(|one, other| one.host_nqn.cmp(&other.host_nqn));
    let rows = shown.iter().map(|connection| {
        let same = |was: &&ConnectionRecord| was.peer == connection.peer;
        let was = earlier.and_then(|earlier| earlier.connections.iter().find(same));
        let rates = rates.of(connection.commands, was.map(|was| was.commands));
        let group = match (connection.host_nqn.as_str(), connection.qid) {
            ("", None) => "not connected".to_owned(),
            ("", Some(_)) => "host without a name".to_owned(),
            (nqn, _) => format!("host {nqn}"),
        };
        (Some(group), connection_row(connection, rates))
    });
    table(text, &CONNECTION_HEADS, rows.collect());
    let others = record.connections.len() - shown.len();
    if others > 0 {
        let _infallible = writeln!(text, "and {others} more; `--json` has all");
    }
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
        count(thread.pending.into()),
        count(thread.pending_total),
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
        let evidence = wrapped(&pacer.evidence);
        let _infallible = write!(text, " {limit}\n{evidence}");
    }
    text.push('\n');
    text
}

fn namespace_row(namespace: &NamespaceRecord, [iops, bandwidth]: [String; 2]) -> Vec<String> {
    let commands = namespace.commands;
    vec![
        namespace.nsid.to_string(),
        iops,
        bandwidth,
        count(commands.reads),
        count(commands.writes),
        count(commands.others),
        count(commands.errors),
        namespace.device.clone(),
    ]
}

fn connection_row(connection: &ConnectionRecord, [iops, bandwidth]: [String; 2]) -> Vec<String> {
    let number = |found: Option<u16>| found.map_or_else(|| "-".to_owned(), |it| it.to_string());
    vec![
        connection.peer.clone(),
        connection.thread.to_string(),
        number(connection.cntlid),
        number(connection.qid),
        connection.in_flight.to_string(),
        iops,
        bandwidth,
        count(connection.commands.errors),
    ]
}

/// Adds a table below an empty line; nothing if it has no rows. A line with the name of a group
/// stands before the first of its rows: names have up to 223 characters.
fn table(text: &mut String, heads: &[&str], rows: Vec<(Option<String>, Vec<String>)>) {
    if rows.is_empty() {
        return;
    }
    let (groups, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let mut all = vec![heads.iter().map(ToString::to_string).collect()];
    all.extend(rows);
    text.push('\n');
    let mut before = &None;
    for (line, group) in aligned(&all)
        .lines()
        .zip([&None].into_iter().chain(&groups))
    {
        if let Some(name) = group
            && group != before
        {
            let _infallible = writeln!(text, "{name}");
        }
        before = group;
        let _infallible = writeln!(text, "{line}");
    }
}

/// Breaks a text into lines that are indented and fit a terminal.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let is_first = length == 0;
        if is_first || length + 1 + word.chars().count() > COLUMNS {
            lines.push_str(if is_first { "  " } else { "\n  " });
            length = 2;
        } else {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word.chars().count();
    }
    lines
}

/// Formats a count that may grow for months.
fn count(number: u64) -> String {
    match number {
        0..=99_999 => number.to_string(),
        100_000..=999_999_999 => short(float(number)),
        _ => format!("{:.1}G", float(number) / 1e9),
    }
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
const NAMESPACE_HEADS: [&str; 8] = [
    "ns", "IOPS", "MiB/s", "reads", "writes", "others", "errors", "device",
];
const CONNECTION_HEADS: [&str; 8] = [
    "connection",
    "thread",
    "ctrl",
    "queue",
    "in flight",
    "IOPS",
    "MiB/s",
    "errors",
];
/// Columns of a narrow terminal.
const COLUMNS: usize = 80;
/// Connections in a text: a screen of `--watch` has them below everything else.
const CONNECTIONS_SHOWN: usize = 64;
const NS_PER_S: u64 = 1_000_000_000;
const MIB: f64 = 1_048_576.0;

#[cfg(test)]
pub(crate) mod tests;
