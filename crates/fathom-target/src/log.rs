//! Log of a target's events, a line each, and their counters.
//!
//! ```text
//!  target's threads ── line ─► bounded queue ─► log thread ── write ─► standard error
//! ```
//!
//! A terminal or pipe that does not take the lines delays the log thread alone; lines beyond the
//! queue are dropped and counted.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fathom_net::target::{Ended, Refusal, TargetEvent, TargetLog};
use fathom_nvme::Status;
use fathom_record::EventsRecord;
use fathom_sys::{clock, signals};
use serde_json::{Map, Value, json};

/// Format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// `fathom: target: connected peer=…`
    Text,
    /// An object per line.
    Json,
}

/// Log of a target's events. Dropping it writes what is queued, unless that takes longer than a
/// second: then the reader is blocked, and the thread stays in its write.
pub struct EventLog {
    format: LogFormat,
    lines: Option<SyncSender<String>>,
    /// Text that follows the lines.
    last: Arc<Mutex<String>>,
    /// Disconnects once the thread has written all lines.
    ends: Option<Mutex<Receiver<()>>>,
    dropped: AtomicU64,
    counts: Mutex<EventsRecord>,
}

impl EventLog {
    /// Starts a log that passes whole lines to `write`, on a thread of its own.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        format: LogFormat,
        write: impl FnMut(&str) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (lines, queue) = sync_channel(LINES_MAX);
        let (end, ends) = channel();
        let last = Arc::new(Mutex::default());
        let text = Arc::clone(&last);
        let thread = std::thread::Builder::new().name("log".into());
        thread.spawn(move || {
            write_lines(&queue, &text, write);
            drop(end);
        })?;
        Ok(Self {
            format,
            lines: Some(lines),
            last,
            ends: Some(Mutex::new(ends)),
            dropped: AtomicU64::new(0),
            counts: Mutex::default(),
        })
    }

    /// Ends the log with a text, and returns whether everything was written.
    #[must_use]
    pub fn finish(mut self, text: String) -> bool {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        self.close()
    }

    fn close(&mut self) -> bool {
        if let Some(lost) = self.take_dropped() {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.insert_str(0, &lost.line.format(self.format));
        }
        self.lines = None;
        let ends = self.ends.take().map(Mutex::into_inner);
        ends.is_none_or(|ends| {
            let ends = ends.unwrap_or_else(PoisonError::into_inner);
            ends.recv_timeout(CLOSE_TIME_MAX) == Err(RecvTimeoutError::Disconnected)
        })
    }

    /// Returns the counters of events so far.
    #[must_use]
    pub fn counts(&self) -> EventsRecord {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, event: &TargetEvent<'_>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TargetEvent::Connected { .. } => counts.connected += 1,
            TargetEvent::Refused { refusal, .. } => match refusal {
                Refusal::TooMany(count) | Refusal::TooManyOfAddress(count) => {
                    counts.turned_away += count;
                }
                _ => counts.refused += 1,
            },
            TargetEvent::Ended { reason, .. } => match EndKind::of(*reason) {
                EndKind::Expired => counts.expired += 1,
                EndKind::Terminated => counts.terminated += 1,
                EndKind::Ended => {}
            },
            _ => {}
        }
    }

    fn write(&self, line: &Line) {
        let Some(lines) = &self.lines else { return };
        if let Some(lost) = self.take_dropped()
            && lines.try_send(lost.line.format(self.format)).is_err()
        {
            self.dropped.fetch_add(lost.count, Ordering::Relaxed);
        }
        if lines.try_send(line.format(self.format)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the number of lines dropped since the last that were told, if there are any.
    fn take_dropped(&self) -> Option<DroppedLines> {
        // Relaxed: a number for people.
        let count = self.dropped.swap(0, Ordering::Relaxed);
        (count > 0).then(|| DroppedLines {
            count,
            line: Line::new("lines dropped").number("count", count),
        })
    }
}

impl TargetLog for EventLog {
    fn event(&self, event: &TargetEvent<'_>) {
        self.count(event);
        if let Some(line) = line_of(event) {
            self.write(&line);
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        let _written = self.close();
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog")
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

fn write_lines(queue: &Receiver<String>, last: &Mutex<String>, mut write: impl FnMut(&str)) {
    // A signal is for the thread that waits for it.
    let _unblocked = signals::block_in_this_thread();
    for line in queue {
        write(&line);
    }
    let last = last.lock().unwrap_or_else(PoisonError::into_inner);
    if !last.is_empty() {
        write(&last);
    }
}

/// Lines for which the queue had no room.
struct DroppedLines {
    count: u64,
    /// Line that says so.
    line: Line,
}

/// Line of a log: an event with its fields.
struct Line {
    event: &'static str,
    fields: Map<String, Value>,
}

impl Line {
    fn new(event: &'static str) -> Self {
        Self {
            event,
            fields: Map::new(),
        }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    fn number(self, name: &str, value: impl Into<u64>) -> Self {
        self.with(name, value.into())
    }

    fn text(self, name: &str, value: impl ToString) -> Self {
        self.with(name, value.to_string())
    }

    /// Adds controller and queue, of a connection that has them.
    fn queue(self, queue: Option<(u16, u16)>) -> Self {
        match queue {
            Some((cntlid, qid)) => self.number("controller", cntlid).number("queue", qid),
            None => self,
        }
    }

    fn format(&self, format: LogFormat) -> String {
        match format {
            LogFormat::Json => {
                let mut line = Map::new();
                line.insert("timestamp_ms".into(), json!(clock::wall_ms()));
                line.insert("event".into(), json!(self.event));
                line.extend(self.fields.clone());
                format!("{}\n", Value::Object(line))
            }
            LogFormat::Text => {
                let mut line = format!("fathom: target: {}", self.event);
                for (name, value) in &self.fields {
                    let value = match value {
                        Value::String(text) if is_plain(text) => text.clone(),
                        // Quoted and escaped: names are a peer's.
                        other => other.to_string(),
                    };
                    let _infallible = write!(line, " {name}={value}");
                }
                line.push('\n');
                line
            }
        }
    }
}

/// Returns whether a text needs no quotes.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.bytes().all(is_plain)
}

fn line_of(event: &TargetEvent<'_>) -> Option<Line> {
    Some(match event {
        TargetEvent::Listening { address } => Line::new("listening").text("address", address),
        TargetEvent::Connected {
            peer,
            host_nqn,
            subsystem_nqn,
            cntlid,
            qid,
            thread,
        } => Line::new("connected")
            .text("peer", peer)
            .queue(Some((*cntlid, *qid)))
            .number("thread", *thread)
            .text("host", host_nqn)
            .text("subsystem", subsystem_nqn),
        TargetEvent::Refused { peer, refusal } => refusal_line(peer, refusal)?,
        TargetEvent::Ended {
            peer,
            queue,
            reason,
        } => Line::new(EndKind::of(*reason).name())
            .text("peer", peer)
            .queue(*queue)
            .text("reason", reason),
        TargetEvent::ThreadFailed { thread, error } => Line::new("thread failed")
            .number("thread", *thread)
            .text("reason", error),
        TargetEvent::AcceptFailed { error } => Line::new("accept failed").text("reason", error),
        // A later event, which this log does not know.
        _ => return None,
    })
}

fn refusal_line(peer: &SocketAddr, refusal: &Refusal<'_>) -> Option<Line> {
    let too_many = |count: u64, reason| {
        let line = Line::new("turned away").text("peer", peer);
        line.number("count", count).text("reason", reason)
    };
    Some(match refusal {
        Refusal::Connect {
            status,
            host_nqn,
            subsystem_nqn,
        } => {
            let (kind, code) = status.type_and_code();
            Line::new("refused")
                .text("peer", peer)
                .text("reason", status_name(*status))
                .number("status_type", kind)
                .number("status_code", code)
                .text("host", host_nqn)
                .text("subsystem", subsystem_nqn)
        }
        Refusal::TooMany(count) => too_many(*count, "as many connections as the target may have"),
        Refusal::TooManyOfAddress(count) => {
            too_many(*count, "as many connections as an address may have")
        }
        _ => return None,
    })
}

/// Kind of a connection's end: an event each, and a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndKind {
    /// By the host, or an error.
    Ended,
    /// By a time limit.
    Expired,
    /// By the target, for a violation of the protocol.
    Terminated,
}

impl EndKind {
    const fn of(reason: Ended) -> Self {
        match reason {
            Ended::NotInitialized | Ended::Silent | Ended::Stalled | Ended::KeepAliveExpired => {
                Self::Expired
            }
            Ended::Terminated(..) => Self::Terminated,
            _ => Self::Ended,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Expired => "expired",
            Self::Terminated => "terminated",
        }
    }
}

/// Returns the specification's name of a status of Connect.
fn status_name(status: Status) -> &'static str {
    match status.type_and_code() {
        (0, 0x02) => "Invalid Field",
        (0, 0x0c) => "Command Sequence Error",
        (1, 0x01) => "Invalid Queue Identifier",
        (1, 0x80) => "Connect Incompatible Format",
        (1, 0x81) => "Connect Controller Busy",
        (1, 0x82) => "Connect Invalid Parameters",
        (1, 0x84) => "Connect Invalid Host",
        _ => "another status",
    }
}

/// A burst of connections fits; a flood is counted.
const LINES_MAX: usize = 1024;
/// Time for the last lines: a reader that takes none is gone or stuck.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(
        std::net::Ipv4Addr::LOCALHOST,
        50_000,
    ));

    fn refused(host_nqn: &str) -> TargetEvent<'_> {
        TargetEvent::Refused {
            peer: PEER,
            refusal: Refusal::Connect {
                status: Status::CONNECT_INVALID_HOST.do_not_retry(),
                host_nqn,
                subsystem_nqn: "nqn.2026-01.org.example:a",
            },
        }
    }

    fn logged(format: LogFormat, events: &[TargetEvent<'_>]) -> (Vec<String>, EventsRecord) {
        let (sender, lines) = channel();
        let write = move |line: &str| sender.send(line.to_owned()).expect("the test listens");
        let log = EventLog::start(format, write).expect("a thread");
        for event in events {
            log.event(event);
        }
        let counts = log.counts();
        drop(log);
        (lines.into_iter().collect(), counts)
    }

    #[test]
    fn events_are_lines_of_text() {
        let connected = TargetEvent::Connected {
            peer: PEER,
            host_nqn: "",
            subsystem_nqn: "nqn.2026-01.org.example:a",
            cntlid: 3,
            qid: 1,
            thread: 0,
        };
        let expired = TargetEvent::Ended {
            peer: PEER,
            queue: None,
            reason: Ended::NotInitialized,
        };
        let (lines, counts) = logged(LogFormat::Text, &[connected, refused("h x"), expired]);
        assert_eq!(
            lines,
            [
                "fathom: target: connected peer=127.0.0.1:50000 controller=3 queue=1 thread=0 \
                 host=\"\" subsystem=nqn.2026-01.org.example:a\n",
                "fathom: target: refused peer=127.0.0.1:50000 reason=\"Connect Invalid Host\" \
                 status_type=1 status_code=132 host=\"h x\" subsystem=nqn.2026-01.org.example:a\n",
                "fathom: target: expired peer=127.0.0.1:50000 reason=\"no connect in time\"\n",
            ]
        );
        let want = EventsRecord {
            connected: 1,
            refused: 1,
            expired: 1,
            ..EventsRecord::default()
        };
        assert_eq!(counts, want);
    }

    #[test]
    fn events_are_objects_in_json() {
        let (lines, _) = logged(LogFormat::Json, &[refused("\"\n")]);
        let line: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(line["event"], "refused");
        assert_eq!(line["host"], "\"\n");
        assert_eq!(line["status_code"], 0x84);
        assert!(line["timestamp_ms"].as_u64().is_some());
        assert!(lines[0].ends_with("}\n") && lines[0].matches('\n').count() == 1);
    }

    #[test]
    fn a_log_ends_with_a_text_or_after_a_second() {
        let (sender, lines) = channel();
        let write = move |line: &str| sender.send(line.to_owned()).expect("the test listens");
        let log = EventLog::start(LogFormat::Text, write).unwrap();
        log.event(&refused("h"));
        assert!(log.finish("the end\n".into()));
        let lines: Vec<String> = lines.into_iter().collect();
        assert!(lines.len() == 2 && lines[1] == "the end\n", "{lines:?}");
        // A pipe that is full.
        let (_full, wait) = channel::<()>();
        let write = move |_: &str| assert!(wait.recv().is_err());
        let log = EventLog::start(LogFormat::Text, write).unwrap();
        log.event(&refused("h"));
        assert!(!log.finish("the end\n".into()));
    }

    #[test]
    fn a_log_that_nobody_reads_delays_no_one() {
        let (go, wait) = channel::<()>();
        let (sender, lines) = channel();
        let write = move |line: &str| {
            // Until the test has logged everything.
            let _go = wait.recv();
            let _heard = sender.send(line.to_owned());
        };
        let log = Arc::new(EventLog::start(LogFormat::Text, write).unwrap());
        for _ in 0..LINES_MAX * 3 {
            log.event(&refused("h"));
        }
        assert_eq!(log.counts().refused, LINES_MAX as u64 * 3);
        drop(go);
        drop(lines.recv().unwrap());
        drop(log);
        let written: Vec<String> = lines.into_iter().collect();
        assert!(written.len() < LINES_MAX * 2, "{}", written.len());
        let last = written.last().unwrap();
        assert!(last.contains("lines dropped count="), "{last}");
    }
}
