//! Frequency and batch sizes of io_uring's task work.
//!
//! Most io_uring ops are completed by the task that submitted them, as *task work*, when that task
//! next enters or leaves the kernel or is interrupted for it. Large batches cost less per op.

use std::fs;

use fathom_host::machine;
use fathom_record::{TRACE_VERSION, UringBatches, UringTraceRecord, UringWork};
use fathom_sys::clock::{self, Clock};

use crate::config::TraceConfig;
use crate::error::TraceError;
use crate::follow::{Traced, follow};
use crate::format::{FieldRange, event_id};
use crate::tracing::Tracing;

/// Traces io_uring's task work, of one process or of all; `begun` is called once the kernel
/// records.
///
/// # Errors
/// The process does not exist, tracing is not permitted, or the kernel lacks the events.
pub fn trace_uring(
    pid: Option<u32>,
    config: &TraceConfig<'_>,
    begun: &mut dyn FnMut(),
) -> Result<Traced<UringTraceRecord>, TraceError> {
    let mut tracing = Tracing::new(config.ring_kib())?;
    if let Some(pid) = pid {
        tracing.only_threads(&threads_of(pid)?)?;
    }
    let layouts = enabled(&tracing)?;
    let mut batches = [Batches::default(); EVENTS.len()];
    let followed = follow(
        &mut tracing,
        config.following(begun),
        &|record| layouts.iter().find_map(|layout| layout.decode(record)),
        &mut |_, event| {
            if let Some((event, items)) = event {
                batches[event].add(items);
            }
        },
    )?;
    let each = EVENTS.iter().zip(batches).enumerate();
    let work = each.map(|(event, (name, batches))| {
        let offered = layouts.iter().any(|layout| layout.event == event);
        batches.record(name, offered)
    });
    let record = UringTraceRecord {
        version: TRACE_VERSION,
        timestamp_ms: clock::wall_ms(),
        pid,
        wall_ns: followed.wall_ns,
        lost_events: followed.lost,
        machine: Some(machine::machine(
            &Clock::monotonic(),
            Vec::new(),
            Vec::new(),
        )),
        work: work.collect(),
        warnings: followed.warnings(),
    };
    Ok(followed.traced(record))
}

/// Enables the events that this kernel has, at least one.
fn enabled(tracing: &Tracing) -> Result<Vec<BatchLayout>, TraceError> {
    let mut layouts = Vec::new();
    for (event, name) in EVENTS.into_iter().enumerate() {
        let path = format!("io_uring/{name}");
        let Some(format) = tracing.format(&path)? else {
            continue;
        };
        let items = format
            .place("count")
            .ok_or_else(|| TraceError::missing_field(name, "count"))?;
        let id = format.id;
        layouts.push(BatchLayout { id, event, items });
        tracing.enable(&path, None)?;
    }
    if layouts.is_empty() {
        return Err(TraceError::NotOffered {
            events: EVENTS.join(", "),
            offered_by: "Linux 5.19 or later, built with CONFIG_IO_URING",
        });
    }
    Ok(layouts)
}

/// Location of the batch size in the records of one event.
#[derive(Clone, Copy, Debug)]
struct BatchLayout {
    id: u16,
    /// Index in `EVENTS`.
    event: usize,
    items: FieldRange,
}

impl BatchLayout {
    fn decode(&self, record: &[u8]) -> Option<(usize, u64)> {
        if event_id(record)? != self.id {
            return None;
        }
        Some((self.event, self.items.number(record)?))
    }
}

fn threads_of(pid: u32) -> Result<Vec<u32>, TraceError> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).map_err(|source| TraceError::NoProcess {
        pid,
        folder: folder.into(),
        source,
    })?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
}

/// Histogram of batch sizes, by powers of two.
#[derive(Clone, Copy, Debug)]
struct Batches {
    runs: u64,
    items: u64,
    counts: [u64; BUCKETS],
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            runs: 0,
            items: 0,
            counts: [0; BUCKETS],
        }
    }
}

impl Batches {
    fn add(&mut self, items: u64) {
        self.runs += 1;
        self.items = self.items.saturating_add(items);
        self.counts[bucket_of(items)] += 1;
    }

    fn record(&self, event: &str, offered: bool) -> UringWork {
        let mut batches = UringBatches::default();
        let used = self.counts.iter().rposition(|&count| count > 0);
        let used = used.map_or(0, |last| last + 1);
        for (bucket, &count) in self.counts[..used].iter().enumerate() {
            let (from, to) = ends_of(bucket);
            batches.from.push(from);
            batches.to.push(to);
            batches.count.push(count);
        }
        UringWork {
            event: event.to_owned(),
            offered,
            runs: self.runs,
            items: self.items,
            batches,
        }
    }
}

/// Returns the bucket of 0, 1, 2, 3…4, 5…8 and so on; the last one is open-ended.
fn bucket_of(items: u64) -> usize {
    match items {
        0 => 0,
        items => {
            let power = u64::BITS - (items - 1).leading_zeros();
            usize::try_from(power + 1).map_or(BUCKETS - 1, |bucket| bucket.min(BUCKETS - 1))
        }
    }
}

/// Returns the smallest and the largest batch of a bucket.
const fn ends_of(bucket: usize) -> (u64, u64) {
    match bucket {
        0 => (0, 0),
        1 => (1, 1),
        bucket => ((1 << (bucket - 2)) + 1, 1 << (bucket - 1)),
    }
}

/// Events of task work: of a task as a whole, and of a ring set up with `DEFER_TASKRUN`.
const EVENTS: [&str; 2] = ["io_uring_task_work_run", "io_uring_local_work_run"];

/// Batches of up to 2³² ops, more than a ring holds.
const BUCKETS: usize = 34;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    #[test]
    fn batches_fall_between_powers_of_two() {
        for (items, from, to) in [
            (0, 0, 0),
            (1, 1, 1),
            (2, 2, 2),
            (3, 3, 4),
            (4, 3, 4),
            (5, 5, 8),
            (32, 17, 32),
            (33, 33, 64),
        ] {
            let bucket = bucket_of(items);
            assert_eq!(ends_of(bucket), (from, to), "{items}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_batch_is_found_by_its_field() {
        let text = include_str!("../tests/data/io_uring_local_work_run");
        let format = Format::parse(text).unwrap();
        let layout = BatchLayout {
            id: format.id,
            event: 1,
            items: format.place("count").unwrap(),
        };
        let mut record = [0_u8; 24];
        record[..2].copy_from_slice(&format.id.to_ne_bytes());
        record[16..20].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!(layout.decode(&record), Some((1, 7)));
        assert_eq!(layout.decode(&record[..18]), None);
        record[..2].copy_from_slice(&(format.id + 1).to_ne_bytes());
        assert_eq!(layout.decode(&record), None);
    }

    #[test]
    fn a_process_that_is_not_there_is_refused() {
        let threads = threads_of(std::process::id()).unwrap();
        assert!(!threads.is_empty());
        assert!(
            threads_of(u32::MAX)
                .unwrap_err()
                .to_string()
                .contains("--pid")
        );
    }
}
