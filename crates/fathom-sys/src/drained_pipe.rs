//! Output of a command, read as it comes, so that the command never blocks on a full pipe.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use fathom_core::Nanos;

use crate::clock::{self, Clock};

/// Pipe that a thread of its own reads to the end; a limited part of it is kept.
///
/// The thread outlives this value if a process that the command left behind holds the pipe open.
#[derive(Clone, Debug)]
pub struct DrainedPipe(Arc<Mutex<State>>);

/// Part of the output that is kept, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first bytes.
    First(usize),
    /// The last bytes.
    Last(usize),
}

impl DrainedPipe {
    /// Begins to read a pipe. Each text in it is looked for as long as [`has_seen`] says no;
    /// without `awaited`, none is.
    ///
    /// [`has_seen`]: Self::has_seen
    #[must_use]
    pub fn new(mut pipe: impl Read + Send + 'static, keep: Keep, awaited: Option<&str>) -> Self {
        let state = State {
            keep,
            kept: VecDeque::new(),
            awaited: awaited.map(|text| text.as_bytes().to_vec()),
            unmatched: Vec::new(),
            is_closed: false,
        };
        let this = Self(Arc::new(Mutex::new(state)));
        let reader = this.clone();
        thread::spawn(move || {
            let mut chunk = [0; CHUNK];
            // A broken pipe has no more to say.
            while let Ok(count @ 1..) = read(&mut pipe, &mut chunk) {
                reader.state().take(&chunk[..count]);
            }
            reader.state().is_closed = true;
        });
        this
    }

    /// Returns whether the awaited text was in the output.
    #[must_use]
    pub fn has_seen(&self) -> bool {
        self.state().awaited.is_none()
    }

    /// Returns what was kept, once all writers have closed the pipe or `limit` has passed: a
    /// process in the background may hold it open for ever.
    #[must_use]
    pub fn text_within(&self, limit: Nanos) -> Vec<u8> {
        let clock = Clock::monotonic();
        let until = clock.now() + limit;
        while !self.state().is_closed && clock.now() < until {
            clock::sleep(PAUSE);
        }
        self.state().kept.iter().copied().collect()
    }

    /// Locks the state. A thread that panicked left it whole: bytes are added by single calls.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct State {
    keep: Keep,
    kept: VecDeque<u8>,
    /// Text that is looked for; `None` once it was seen.
    awaited: Option<Vec<u8>>,
    /// End of the output in which the text may have begun.
    unmatched: Vec<u8>,
    is_closed: bool,
}

impl State {
    fn take(&mut self, chunk: &[u8]) {
        match self.keep {
            Keep::First(limit) => {
                let room = limit.saturating_sub(self.kept.len());
                self.kept.extend(&chunk[..chunk.len().min(room)]);
            }
            Keep::Last(limit) => {
                self.kept.extend(chunk);
                let beyond = self.kept.len().saturating_sub(limit);
                self.kept.drain(..beyond);
            }
        }
        self.look_in(chunk);
    }

    fn look_in(&mut self, chunk: &[u8]) {
        let Some(awaited) = &self.awaited else {
            return;
        };
        self.unmatched.extend(chunk);
        let length = awaited.len().max(1);
        if self.unmatched.windows(length).any(|part| part == awaited) || awaited.is_empty() {
            self.awaited = None;
            self.unmatched = Vec::new();
            return;
        }
        let beyond = self.unmatched.len().saturating_sub(length - 1);
        self.unmatched.drain(..beyond);
    }
}

/// Reads what there is; 0 at the end.
fn read(pipe: &mut impl Read, chunk: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match pipe.read(chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Bytes read at once.
const CHUNK: usize = 8192;

/// Time between looks at whether the pipe is closed.
const PAUSE: Nanos = Nanos::from_micros(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads these chunks, one a call.
    struct Chunks(VecDeque<Vec<u8>>);

    impl Read for Chunks {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let chunk = self.0.pop_front().unwrap_or_default();
            into[..chunk.len()].copy_from_slice(&chunk);
            Ok(chunk.len())
        }
    }

    #[track_caller]
    fn check(chunks: &[&str], keep: Keep, awaited: &str, want: (&str, bool)) {
        let chunks = chunks.iter().map(|chunk| chunk.as_bytes().to_vec());
        let pipe = DrainedPipe::new(Chunks(chunks.collect()), keep, Some(awaited));
        let text = pipe.text_within(Nanos::from_secs(60));
        assert_eq!((&*String::from_utf8_lossy(&text), pipe.has_seen()), want);
    }

    #[test]
    fn a_part_is_kept() {
        check(&["abc", "def"], Keep::First(4), "x", ("abcd", false));
        check(&["abc", "def"], Keep::Last(4), "x", ("cdef", false));
        check(&["abc", "def"], Keep::Last(0), "x", ("", false));
    }

    #[test]
    fn texts_are_found_across_chunks() {
        check(
            &["lis", "ten", "ing"],
            Keep::Last(9),
            "listening",
            ("listening", true),
        );
        check(&["aa", "ab"], Keep::Last(9), "aab", ("aaab", true));
        check(&["a", "b"], Keep::Last(0), "abc", ("", false));
    }

    #[test]
    fn a_pipe_that_stays_open_is_not_waited_for() {
        let (reader, writer) = std::io::pipe().unwrap();
        let pipe = DrainedPipe::new(reader, Keep::Last(9), None);
        assert_eq!(pipe.text_within(Nanos::ZERO), b"");
        assert!(pipe.has_seen());
        drop(writer);
    }
}
