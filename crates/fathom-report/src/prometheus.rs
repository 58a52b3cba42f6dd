//! State of a target in the text format of Prometheus, version 0.0.4.

use fathom_record::{CommandsRecord, TargetRecord};

use crate::exposition::{MetricsFormat, MetricsKind, MetricsPage};

/// Formats the state of a target for a scrape.
#[must_use]
pub fn prometheus(record: &TargetRecord) -> String {
    let mut page = MetricsPage::new("fathom_target_", MetricsFormat::Prometheus);
    page.family("uptime_seconds", "Time since the start", GAUGE, |samples| {
        samples.add(&[], seconds(record.uptime_ns));
    });
    events(&mut page, record);
    sockets(&mut page, record);
    buffers(&mut page, record);
    threads(&mut page, record);
    namespaces(&mut page, record);
    connections(&mut page, record);
    page.finish()
}

fn events(page: &mut MetricsPage, record: &TargetRecord) {
    let events = record.events;
    let counted = [
        ("accepted", events.accepted),
        ("turned_away", events.turned_away),
        ("connected", events.connected),
        ("refused", events.refused),
        ("expired", events.expired),
        ("terminated", events.terminated),
    ];
    page.family(
        "connection_events_total",
        "Events of connections",
        COUNTER,
        |samples| {
            for (event, count) in counted {
                samples.add(&[("event", event)], count);
            }
        },
    );
}

fn sockets(page: &mut MetricsPage, record: &TargetRecord) {
    let (name, help) = ("socket_bytes_total", "Bytes on the sockets of connections");
    page.family(name, help, COUNTER, |samples| {
        for (direction, bytes) in [
            ("received", record.received_bytes),
            ("sent", record.sent_bytes),
        ] {
            samples.add(&[("direction", direction)], bytes);
        }
    });
}

fn buffers(page: &mut MetricsPage, record: &TargetRecord) {
    let buffers = &record.buffers;
    if let Some(count) = buffers.count {
        page.family("buffers", "Data buffers", GAUGE, |samples| {
            samples.add(&[], count)
        });
    }
    page.family("buffer_bytes", "Size of a data buffer", GAUGE, |samples| {
        samples.add(&[], buffers.buffer_bytes);
    });
}

/// Number of a thread by name, and its value.
type OfThread = fn(&fathom_record::ThreadRecord) -> Option<u64>;

fn threads(page: &mut MetricsPage, record: &TargetRecord) {
    for &(name, help, kind, value) in THREAD_METRICS {
        page.family(name, help, kind, |samples| {
            for thread in &record.threads {
                if let Some(value) = value(thread) {
                    samples.add(&[("thread", &thread.thread.to_string())], value);
                }
            }
        });
    }
}

fn namespaces(page: &mut MetricsPage, record: &TargetRecord) {
    for &(name, help, values) in NAMESPACE_METRICS {
        page.family(name, help, COUNTER, |samples| {
            for namespace in &record.namespaces {
                let nsid = namespace.nsid.to_string();
                for (kind, value) in values(&namespace.commands) {
                    let labels = [
                        ("subsystem", namespace.nqn.as_str()),
                        ("namespace", nsid.as_str()),
                        ("kind", kind),
                    ];
                    // Errors have no kind.
                    let labels = if kind.is_empty() {
                        &labels[..2]
                    } else {
                        &labels[..]
                    };
                    samples.add(labels, value);
                }
            }
        });
    }
}

/// Connections by subsystem, host and kind of queue: a label per connection would have no bound.
fn connections(page: &mut MetricsPage, record: &TargetRecord) {
    let mut groups = std::collections::BTreeMap::<_, (u64, u64)>::new();
    for connection in &record.connections {
        let queue = match connection.qid {
            None => "none",
            Some(0) => "admin",
            Some(_) => "io",
        };
        let group = (&connection.nqn, &connection.host_nqn, queue);
        let (count, in_flight) = groups.entry(group).or_default();
        *count += 1;
        *in_flight += u64::from(connection.in_flight);
    }
    let mut family = |name, help, value: fn(&(u64, u64)) -> u64| {
        page.family(name, help, GAUGE, |samples| {
            for ((nqn, host, queue), found) in &groups {
                let labels = [
                    ("subsystem", nqn.as_str()),
                    ("host", host.as_str()),
                    ("queue", *queue),
                ];
                samples.add(&labels, value(found));
            }
        });
    };
    family("connections", "Connections", |(count, _)| *count);
    family(
        "requests_in_flight",
        "Requests in flight",
        |(_, in_flight)| *in_flight,
    );
}

#[expect(clippy::cast_precision_loss, reason = "a time is not exact to 2⁻⁵³")]
fn seconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e9)
}

const COUNTER: MetricsKind = MetricsKind::Counter;

const GAUGE: MetricsKind = MetricsKind::Gauge;

const THREAD_METRICS: &[(&str, &str, MetricsKind, OfThread)] = &[
    (
        "thread_turns_total",
        "Turns of the thread's loop",
        COUNTER,
        |one| Some(one.turns),
    ),
    (
        "buffers_in_use",
        "Data buffers that requests hold",
        GAUGE,
        |one| Some(one.buffers_in_use.into()),
    ),
    (
        "bytes_in_flight",
        "Bytes that these requests move",
        GAUGE,
        |one| Some(one.in_use_bytes),
    ),
    (
        "buffers_cached",
        "Data buffers in the thread's cache",
        GAUGE,
        |one| Some(one.buffers_cached.into()),
    ),
    (
        "requests_pending",
        "Requests that wait for a buffer or the pacer",
        GAUGE,
        |one| Some(one.pending.into()),
    ),
    (
        "requests_waited_total",
        "Requests that had to wait",
        COUNTER,
        |one| Some(one.pending_total),
    ),
    (
        "buffers_from_cache_total",
        "Buffers taken from the thread's cache",
        COUNTER,
        |one| Some(one.cache_hits),
    ),
    (
        "buffers_from_pool_total",
        "Buffers taken from the shared pool",
        COUNTER,
        |one| Some(one.pool_hits),
    ),
    ("pacer_polls_total", "Calls of the pacer", COUNTER, |one| {
        Some(one.pacer.as_ref()?.polls)
    }),
    (
        "pacer_periods_total",
        "Periods of the pacer",
        COUNTER,
        |one| Some(one.pacer.as_ref()?.periods),
    ),
    (
        "pacer_grants_total",
        "Requests let go by the pacer",
        COUNTER,
        |one| Some(one.pacer.as_ref()?.grants),
    ),
    (
        "pacer_granted_bytes_total",
        "Bytes let go by the pacer",
        COUNTER,
        |one| Some(one.pacer.as_ref()?.granted_bytes),
    ),
    (
        "pacer_period_nanoseconds",
        "Period in force",
        GAUGE,
        |one| Some(one.pacer.as_ref()?.period_ns),
    ),
    (
        "pacer_limit_bytes",
        "Bytes in flight that the pacer allows a thread",
        GAUGE,
        |one| one.pacer.as_ref()?.limit_bytes,
    ),
];

/// Values of a namespace by kind of command.
type OfNamespace = fn(&CommandsRecord) -> Vec<(&'static str, u64)>;

const NAMESPACE_METRICS: &[(&str, &str, OfNamespace)] = &[
    ("commands_total", "Commands completed", |one| {
        vec![
            ("read", one.reads),
            ("write", one.writes),
            ("other", one.others),
        ]
    }),
    ("command_bytes_total", "Bytes moved", |one| {
        vec![("read", one.read_bytes), ("write", one.written_bytes)]
    }),
    (
        "command_errors_total",
        "Commands completed with an error status",
        |one| vec![("", one.errors)],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::tests::example;

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let text = prometheus(&example());
        for line in text.lines() {
            let is_comment = line.starts_with("# HELP fathom_target_")
                || line.starts_with("# TYPE fathom_target_");
            let value = line
                .rsplit(' ')
                .next()
                .and_then(|value| value.parse::<f64>().ok());
            let is_sample = line.starts_with("fathom_target_") && value.is_some();
            assert!(is_comment || is_sample, "{line}");
        }
        for wanted in [
            "fathom_target_uptime_seconds 2.000\n",
            "fathom_target_connection_events_total{event=\"refused\"} 2\n",
            "fathom_target_socket_bytes_total{direction=\"sent\"} 17825792\n",
            "fathom_target_buffers 32\n",
            "fathom_target_buffers_in_use{thread=\"0\"} 3\n",
            "fathom_target_pacer_period_nanoseconds{thread=\"0\"} 23000\n",
            "fathom_target_commands_total{subsystem=\"nqn.2026-01.org.example:a\",namespace=\"1\",\
             kind=\"read\"} 4000\n",
            "fathom_target_command_errors_total{subsystem=\"nqn.2026-01.org.example:a\",\
             namespace=\"1\"} 2\n",
            "host=\"\",queue=\"io\"} 1\n",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }

    #[test]
    fn names_of_peers_cannot_forge_samples() {
        let mut record = example();
        record.connections[0].host_nqn = "a\"} 1\nfathom_target_x 2\\".into();
        let text = prometheus(&record);
        assert!(
            text.contains(r#"host="a\"} 1\nfathom_target_x 2\\","#),
            "{text}"
        );
        assert!(!text.contains("\nfathom_target_x"), "{text}");
    }
}
