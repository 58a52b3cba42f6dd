//! Output of a launcher: passed on, but for the marks by which ranks say that they are there.
//!
//! Launchers ignore errors of writing; what cannot be passed on here is noticed.
//!
//! A rank on another host shares neither a folder nor, before `MPI_Init` returns, messages with
//! this program. All that reaches it is what the launcher forwards.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use fathom_core::Nanos;
use fathom_sys::clock::{self, Clock};

/// Output of a launcher, passed on by a thread of its own.
///
/// The thread outlives this value if a process that the launcher left behind holds the pipe open.
#[derive(Clone, Debug, Default)]
pub(crate) struct LauncherVoice(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    ranks: BTreeSet<u32>,
    is_closed: bool,
    is_muted: bool,
    /// First error of passing it on.
    failed: Option<io::Error>,
}

impl LauncherVoice {
    /// Begins to pass a pipe on.
    ///
    /// # Errors
    /// The error of starting a thread.
    pub(crate) fn pass_on(
        mut pipe: impl Read + Send + 'static,
        mut to: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let this = Self::default();
        let reader = this.clone();
        thread::Builder::new().spawn(move || {
            let (mut marks, mut chunk) = (Marks::default(), [0; CHUNK]);
            loop {
                match pipe.read(&mut chunk) {
                    Ok(count @ 1..) => {
                        let text = marks.take(&chunk[..count], &mut reader.heard().ranks);
                        reader.write(&mut to, &text);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // A broken pipe has no more to say.
                    Ok(0) | Err(_) => break,
                }
            }
            reader.write(&mut to, &marks.held);
            reader.heard().is_closed = true;
        })?;
        Ok(this)
    }

    /// Stops passing the output on; it is still read.
    pub(crate) fn mute(&self) {
        self.heard().is_muted = true;
    }

    /// Passes a piece on. After an error no more is: the launcher must not wait for a reader.
    fn write(&self, to: &mut impl Write, text: &[u8]) {
        let is_over = {
            let heard = self.heard();
            heard.is_muted || heard.failed.is_some()
        };
        if is_over {
            return;
        }
        let written = to.write_all(text).and_then(|()| to.flush());
        self.heard().failed = written.err();
    }

    /// Returns the first error of passing the output on.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.heard().failed.take()
    }

    /// Returns the ranks that have said that they are there.
    pub(crate) fn ranks(&self) -> BTreeSet<u32> {
        self.heard().ranks.clone()
    }

    /// Waits until everything has been passed on, for a limited time: a process in the background
    /// may hold the pipe open for ever.
    pub(crate) fn finish(&self) {
        let clock = Clock::monotonic();
        let until = clock.now() + END_PATIENCE;
        while !self.heard().is_closed && clock.now() < until {
            clock::sleep(NAP);
        }
    }

    /// Locks the state. A thread that panicked left it whole: ranks are added by single calls.
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Announces this rank to the user's program, before MPI starts. `variable` reads the
/// environment: the launcher's number is all that is known then.
#[cfg_attr(
    not(feature = "mpi"),
    expect(dead_code, reason = "this program is not a rank")
)]
pub(crate) fn say_here(variable: &dyn Fn(&str) -> Option<String>) {
    let mut told = RANKS.iter().filter_map(|name| variable(name)?.parse().ok());
    if let Some(rank) = told.next() {
        // One call: marks of ranks on one host must not mix. Nobody listens if it fails.
        let _closed = io::stderr().write_all(mark(rank).as_bytes());
    }
}

fn mark(rank: u32) -> String {
    format!("{BEGIN}{rank}{END}")
}

/// Finds marks in a stream.
#[derive(Debug, Default)]
struct Marks {
    /// Bytes that may become a mark.
    held: Vec<u8>,
}

impl Marks {
    /// Takes a piece of the stream and returns what is to be passed on.
    fn take(&mut self, chunk: &[u8], ranks: &mut BTreeSet<u32>) -> Vec<u8> {
        self.held.extend(chunk);
        let mut out = Vec::with_capacity(self.held.len());
        loop {
            let length = self.held.len();
            let at = self.held.iter().position(|byte| *byte == FIRST);
            out.extend(self.held.drain(..at.unwrap_or(length)));
            if at.is_none() {
                return out;
            }
            match found(&self.held) {
                Found::Mark { rank, length } => {
                    ranks.insert(rank);
                    self.held.drain(..length);
                }
                Found::Part => return out,
                Found::Other => out.extend(self.held.drain(..1)),
            }
        }
    }
}

/// Beginning of a text.
enum Found {
    Mark {
        rank: u32,
        length: usize,
    },
    /// The rest of a mark may follow.
    Part,
    Other,
}

fn found(text: &[u8]) -> Found {
    let Some(rest) = text.strip_prefix(BEGIN.as_bytes()) else {
        return match BEGIN.as_bytes().starts_with(text) {
            true => Found::Part,
            false => Found::Other,
        };
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    let end = END.as_bytes();
    if digits > DIGITS_MAX || !(after.starts_with(end) || end.starts_with(after)) {
        return Found::Other;
    }
    if after.len() < end.len() {
        return Found::Part;
    }
    let number = str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse().ok());
    match number {
        Some(rank) => Found::Mark {
            rank,
            length: BEGIN.len() + digits + end.len(),
        },
        None => Found::Other,
    }
}

/// Variables in which launchers tell a rank: Open MPI, PMI (MPICH, Intel MPI), PMIx.
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];
const FIRST: u8 = 0x1e;
/// Control characters around it: no text of a program or of ssh has them.
const BEGIN: &str = "\u{1e}fathom-mpi rank ";
const END: &str = "\u{1f}\n";
/// Digits of the largest rank, with room.
const DIGITS_MAX: usize = 9;
const CHUNK: usize = 8192;
const NAP: Nanos = Nanos::from_millis(1);
/// Time for what the launcher said last.
const END_PATIENCE: Nanos = Nanos::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the pieces are, marks are taken out and all else is kept.
    #[track_caller]
    fn check(text: &str, want: &str, want_ranks: &[u32]) {
        for size in 1..=text.len() {
            let (mut marks, mut ranks, mut out) = (Marks::default(), BTreeSet::new(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                out.extend(marks.take(piece, &mut ranks));
            }
            out.extend(&marks.held);
            assert_eq!(String::from_utf8_lossy(&out), want, "pieces of {size}");
            assert_eq!(ranks.iter().copied().collect::<Vec<_>>(), want_ranks);
        }
    }

    #[test]
    fn marks_are_taken_out_of_any_pieces() {
        check("plain\rtext\n", "plain\rtext\n", &[]);
        let both = format!("a\n{}{}b", mark(1), mark(65_536));
        check(&both, "a\nb", &[1, 65_536]);
        let within = format!("half {}line", mark(7));
        check(&within, "half line", &[7]);
    }

    #[test]
    fn what_only_begins_as_a_mark_is_passed_on() {
        for odd in [
            "\u{1e}",
            "\u{1e}\u{1e}",
            "\u{1e}fathom-mpi rank ",
            "\u{1e}fathom-mpi rank \u{1f}\n",
            "\u{1e}fathom-mpi rank 1x\u{1f}\n",
            "\u{1e}fathom-mpi rank 99999999999999\u{1f}\n",
            "\u{1e}fathom-mpi rank 1\u{1f}x",
        ] {
            check(odd, odd, &[]);
            check(&format!("{odd}{}", mark(3)), odd, &[3]);
        }
    }
}
