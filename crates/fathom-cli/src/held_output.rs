//! Output for a terminal while a view has it (`--live`): printed when the view has left.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use crate::standard_stream::StandardStream;

/// Holds output for terminals back, until [`release`].
#[cfg_attr(
    not(feature = "live"),
    expect(dead_code, reason = "no view has the terminal")
)]
pub(crate) fn hold() {
    *lock() = Some(Held::default());
}

/// Ends the holding back, and returns what was held, in order.
pub(crate) fn release() -> Vec<(StandardStream, String)> {
    let Some(held) = lock().take() else {
        return Vec::new();
    };
    let mut texts = Vec::from(held.texts);
    if held.dropped_bytes > 0 {
        let bytes = held.dropped_bytes;
        let line = format!("fathom: {bytes} bytes of earlier output are not shown\n");
        texts.insert(0, (StandardStream::Error, line));
    }
    texts
}

/// Takes text for a stream that is held back; returns false if it is not.
pub(crate) fn takes(stream: StandardStream, text: &str) -> bool {
    let mut lock = lock();
    let Some(held) = lock.as_mut() else {
        return false;
    };
    let is_terminal = match stream {
        StandardStream::Data => io::stdout().is_terminal(),
        StandardStream::Error => io::stderr().is_terminal(),
    };
    if is_terminal {
        held.add(stream, text);
    }
    is_terminal
}

/// Texts in the order in which they came.
#[derive(Debug, Default)]
struct Held {
    texts: VecDeque<(StandardStream, String)>,
    bytes: usize,
    dropped_bytes: usize,
}

impl Held {
    /// Adds text, and drops the oldest beyond the limit: interim reports may come for days.
    fn add(&mut self, stream: StandardStream, text: &str) {
        self.texts.push_back((stream, text.to_owned()));
        self.bytes += text.len();
        while self.bytes > BYTES_MAX
            && let Some((_, oldest)) = self.texts.pop_front()
        {
            self.bytes -= oldest.len();
            self.dropped_bytes += oldest.len();
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Output held back from the terminal, which the process has one of.
static HELD: Mutex<Option<Held>> = Mutex::new(None);
/// More than a terminal scrolls back.
const BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut held = Held::default();
        for letter in ["a", "b", "c"] {
            held.add(StandardStream::Error, &letter.repeat(BYTES_MAX / 2));
        }
        assert_eq!((held.texts.len(), held.dropped_bytes), (2, BYTES_MAX / 2));
        assert!(held.texts[0].1.starts_with('b'));
        assert!(!takes(StandardStream::Error, "x"), "nothing is held");
    }
}
