//! Ends the program when a decoder hangs, and keeps the input that hung it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::say;

/// A thread that watches the input being tried.
pub(crate) struct Watchdog {
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    /// The target and the input being tried, if any.
    current: Option<(&'static str, Vec<u8>)>,
    /// Inputs begun so far.
    begun_count: u64,
}

impl Watchdog {
    /// Starts watching.
    pub(crate) fn start() -> Self {
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let watched = Arc::clone(&state);
        std::thread::spawn(move || watch(&watched));
        Self { state }
    }

    /// Notes that an input is about to be tried.
    pub(crate) fn begin(&self, target: &'static str, input: &[u8]) {
        let mut state = self.lock();
        state.current = Some((target, input.to_vec()));
        state.begun_count += 1;
    }

    /// Notes that the decoder has returned.
    pub(crate) fn end(&self) {
        self.lock().current = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the program when one input takes longer than `HANG`.
fn watch((state, condvar): &(Mutex<State>, Condvar)) {
    let mut seen = 0;
    let mut guard = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        // Never notified: the wait only releases the lock for as long.
        let waited = condvar.wait_timeout(guard, HANG);
        guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some((target, input)) = &guard.current
            && guard.begun_count == seen
        {
            let place = keep(target, input).map_or_else(
                |error| format!("{error:#}"),
                |path| path.display().to_string(),
            );
            say(&format!("fuzz: {target}: hang: {place}"));
            std::process::exit(1);
        }
        seen = guard.begun_count;
    }
}

/// Writes an input to `target/fuzz-inputs/` and returns its path.
fn keep(target: &str, input: &[u8]) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz-inputs");
    let sum = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let path = folder.join(format!("{target}-hang-{sum:016x}"));
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&path, input))
        .with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Twelve times the limit of processor time, for a processor that others use too.
const HANG: Duration = Duration::from_secs(60);
