//! Times at which the kernel wakes threads, from its scheduler's events.

use std::collections::HashMap;

use crate::error::TraceError;
use crate::format::{FieldRange, event_id};
use crate::tracing::Tracing;

/// Location of the woken thread in records of `sched_waking`.
#[derive(Debug)]
pub(crate) struct WakingLayout {
    id: u16,
    thread: FieldRange,
}

impl WakingLayout {
    /// Enables the event for threads of these names; `None` without names or before Linux 4.3.
    pub(crate) fn enabled(
        tracing: &Tracing,
        threads: &[String],
    ) -> Result<Option<Self>, TraceError> {
        let filters = threads.iter().filter(|name| is_plain(name));
        let filters: Vec<String> = filters.map(|name| format!("comm == \"{name}\"")).collect();
        if filters.is_empty() {
            return Ok(None);
        }
        let event = "sched/sched_waking";
        let Some(format) = tracing.format(event)? else {
            return Ok(None);
        };
        let thread = format.place("pid");
        let thread = thread.ok_or_else(|| TraceError::missing_field(event, "pid"))?;
        tracing.enable(event, Some(&filters.join(" || ")))?;
        let id = format.id;
        Ok(Some(Self { id, thread }))
    }

    /// Decodes the woken thread; `None` if the record belongs to another event.
    pub(crate) fn decode(&self, record: &[u8]) -> Option<u32> {
        if event_id(record)? != self.id {
            return None;
        }
        u32::try_from(self.thread.number(record)?).ok()
    }
}

/// Times at which threads were woken, ascending, by thread id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakings {
    by_thread: HashMap<u32, Vec<u64>>,
}

impl Wakings {
    /// Adds a time, unless the thread has `WAKINGS_MAX` of them.
    pub(crate) fn add(&mut self, thread: u32, at_ns: u64) {
        let times = self.by_thread.entry(thread).or_default();
        if times.len() < WAKINGS_MAX {
            times.push(at_ns);
        }
    }

    /// Returns the times of a thread.
    pub(crate) fn of(&self, thread: u32) -> &[u64] {
        self.by_thread.get(&thread).map_or(&[], Vec::as_slice)
    }
}

/// Returns whether a name can stand in a filter, which has no escapes.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.: ".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

/// Times kept per thread: 128 MiB.
const WAKINGS_MAX: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_filter_would_misread_are_left_out() {
        for (name, plain) in [
            ("job-1.a: b", true),
            ("", false),
            ("a\"b", false),
            ("ü", false),
        ] {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }

    #[test]
    fn wakings_are_kept_by_thread() {
        let mut wakings = Wakings::default();
        for (thread, at_ns) in [(1, 10), (2, 15), (1, 20)] {
            wakings.add(thread, at_ns);
        }
        assert_eq!(wakings.of(1), [10, 20]);
        assert!(wakings.of(3).is_empty());
    }
}
