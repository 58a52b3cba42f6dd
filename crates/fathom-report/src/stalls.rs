//! The worst stalls of a run.

use fathom_record::{JobRecord, Record, StallCause, StallRecord};

use crate::characters::printable;
use crate::json::Object;

/// Formats a line for each of the worst stalls, the longest first; empty if there was none.
///
/// Stalls of several jobs at the same time are one line: they wait for the same device, or for the
/// same processor.
#[must_use]
pub fn stall_lines(record: &Record) -> String {
    let mut worst: Vec<Line<'_>> = Vec::new();
    for found in by_length(record) {
        if let Some(line) = worst.iter_mut().find(|line| line.overlaps(&found)) {
            line.add(&found);
        } else if worst.len() < LINES_MAX {
            worst.push(found);
        }
    }
    let lines: String = worst.iter().map(Line::text).collect();
    match lines.as_str() {
        "" => lines,
        _ => format!("\n{lines}"),
    }
}

/// Returns the stalls of a job or group.
pub(crate) fn stall_objects(job: &JobRecord) -> Vec<Object> {
    let object = |stall: &StallRecord| {
        let mut out = Object::new();
        out.set("number", stall.number);
        out.set("at_ns", stall.at_ns);
        out.set("duration_ns", stall.duration_ns);
        out.set("direction", stall.direction.as_str());
        out.set("late_ios", stall.ops);
        out.set("cause", stall.cause().name());
        out.set("waited_ns", stall.waited_ns);
        out.set("stopped_ns", stall.stopped_ns);
        out
    };
    job.stalls.iter().map(object).collect()
}

/// Line of the report.
struct Line<'a> {
    job: &'a JobRecord,
    stall: &'a StallRecord,
    /// Name of its host, in a sum of several.
    host: Option<&'a str>,
    /// Numbers of the other jobs that stalled at the time.
    others: Vec<u32>,
    /// Late ops of all jobs.
    ops: u64,
}

impl Line<'_> {
    /// Returns start and end since 1970, ns.
    fn span(&self) -> (u64, u64) {
        let start = self.job.start_ms.saturating_mul(1_000_000);
        let from = start.saturating_add(self.stall.at_ns);
        (from, from.saturating_add(self.stall.duration_ns))
    }

    fn overlaps(&self, other: &Self) -> bool {
        // Other hosts have other devices, and other processors in any case.
        if self.stall.host != other.stall.host {
            return false;
        }
        let (own, other) = (self.span(), other.span());
        own.0 < other.1 && other.0 < own.1
    }

    fn add(&mut self, other: &Self) {
        let number = other.stall.number;
        if number != self.stall.number && !self.others.contains(&number) {
            self.others.push(number);
        }
        self.ops += other.ops;
    }

    fn text(&self) -> String {
        let Self {
            job, stall, others, ..
        } = self;
        let others = match others.len() {
            0 => String::new(),
            1 => " and another job".to_owned(),
            count => format!(" and {count} other jobs"),
        };
        format!(
            "stall: {} ms at {} s in job {}{}{others} ({}): {}\n",
            millis(stall.duration_ns),
            seconds(stall.at_ns),
            printable(&job.name),
            self.host
                .map_or_else(String::new, |host| format!(" on {}", printable(host))),
            stall.direction,
            self.reason()
        )
    }

    fn reason(&self) -> String {
        let stall = self.stall;
        let ops = match self.ops {
            1 => "1 op".to_owned(),
            ops => format!("{ops} ops"),
        };
        match stall.cause() {
            StallCause::Device => format!("the device was late with {ops}"),
            StallCause::Unknown => {
                let engine = &self.job.engine;
                format!("cause unknown ({ops} late; ioengine={engine} has no device)")
            }
            StallCause::NoProcessor => format!(
                "this process was not running (waited {} ms for a processor)",
                millis(stall.waited_ns)
            ),
            StallCause::Stopped => format!(
                "this process was not running (it or its machine was stopped for {} ms)",
                millis(stall.stopped_ns)
            ),
        }
    }
}

/// Returns the stalls of all reported jobs that are long enough for a line, the longest first.
fn by_length(record: &Record) -> Vec<Line<'_>> {
    let jobs = record.jobs.iter().filter(|job| !job.display.hidden);
    let all = jobs.flat_map(|job| {
        let long = job
            .stalls
            .iter()
            .filter(|stall| stall.duration_ns >= LEAST_NS);
        long.map(move |stall| Line {
            job,
            stall,
            host: host_of(record, stall),
            others: Vec::new(),
            ops: stall.ops,
        })
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|line| std::cmp::Reverse(line.stall.duration_ns));
    all
}

fn host_of<'a>(record: &'a Record, stall: &StallRecord) -> Option<&'a str> {
    let index = usize::try_from(stall.host?).ok()?;
    let host = record.hosts.get(index)?;
    (record.hosts.len() > 1).then_some(host.name.as_str())
}

/// Returns whole milliseconds, rounded.
const fn millis(ns: u64) -> u64 {
    ns.saturating_add(500_000) / 1_000_000
}

/// Formats seconds to three decimals.
fn seconds(ns: u64) -> String {
    let ms = millis(ns);
    format!("{}.{:03}", ms / 1_000, ms % 1_000)
}

/// Lines of a report.
const LINES_MAX: usize = 5;
/// Least length for a line. The record has stalls from 1 ms on, of which an idle machine sees some
/// in every run.
const LEAST_NS: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, number: u32, stalls: &[(u64, u64)]) -> JobRecord {
        let stalls = stalls.iter().map(|&(at_ms, length_ms)| StallRecord {
            number,
            at_ns: at_ms * 1_000_000,
            duration_ns: length_ms * 1_000_000,
            direction: "write".to_owned(),
            ops: 4,
            ..StallRecord::default()
        });
        JobRecord {
            name: name.to_owned(),
            number,
            stalls: stalls.collect(),
            ..JobRecord::default()
        }
    }

    #[track_caller]
    fn check(jobs: Vec<JobRecord>, want: &str) {
        let record = Record {
            jobs,
            ..Record::default()
        };
        assert_eq!(stall_lines(&record), want);
    }

    #[test]
    fn the_longest_come_first() {
        let stalls = [(1000, 20), (2000, 9), (12_305, 412), (13_000, 30)];
        check(
            vec![job("db", 1, &stalls)],
            "\nstall: 412 ms at 12.305 s in job db (write): the device was late with 4 ops\n\
             stall: 30 ms at 13.000 s in job db (write): the device was late with 4 ops\n\
             stall: 20 ms at 1.000 s in job db (write): the device was late with 4 ops\n",
        );
        check(vec![job("db", 1, &[])], "");
    }

    #[test]
    fn five_lines_at_most() {
        let stalls: Vec<(u64, u64)> = (1..=8).map(|n| (n * 1000, n * 10)).collect();
        let record = Record {
            jobs: vec![job("a", 1, &stalls)],
            ..Record::default()
        };
        assert_eq!(stall_lines(&record).lines().count(), 1 + 5);
    }

    #[test]
    fn jobs_that_stall_together_share_a_line() {
        let jobs = vec![
            job("a", 1, &[(1000, 50)]),
            job("b", 2, &[(1010, 45), (1056, 40)]),
            // Overlaps with both, and counts to the longer one.
            job("c", 3, &[(1049, 20)]),
        ];
        check(
            jobs,
            "\nstall: 50 ms at 1.000 s in job a and 2 other jobs (write): the device was late \
             with 12 ops\nstall: 40 ms at 1.056 s in job b (write): the device was late with 4 \
             ops\n",
        );
    }

    #[test]
    fn an_engine_without_a_device_has_no_late_one() {
        let mut found = job("a", 1, &[(3100, 24)]);
        found.engine = "null".to_owned();
        found.stalls[0].has_no_device = true;
        check(
            vec![found],
            "\nstall: 24 ms at 3.100 s in job a (write): cause unknown (4 ops late; \
             ioengine=null has no device)\n",
        );
    }

    #[test]
    fn the_cause_is_named() {
        let mut found = job("a", 1, &[(3100, 90), (4000, 80)]);
        found.stalls[0].waited_ns = 88_000_000;
        found.stalls[1].stopped_ns = 79_000_000;
        check(
            vec![found],
            "\nstall: 90 ms at 3.100 s in job a (write): this process was not running (waited 88 \
             ms for a processor)\nstall: 80 ms at 4.000 s in job a (write): this process was not \
             running (it or its machine was stopped for 79 ms)\n",
        );
    }
}
