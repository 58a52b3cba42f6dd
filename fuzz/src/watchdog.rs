//! Watches for an input that never ends: it is written down, and the program ends.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use fathom_core::Nanos;

use crate::say;
use crate::target::Target;

/// Knows what is being tried.
pub(crate) struct Watchdog {
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    /// What is being tried, if anything is.
    input: Option<(Target, Vec<u8>)>,
    /// How many were tried before.
    number: u64,
    longest: Nanos,
    most_bytes: usize,
}

impl Watchdog {
    /// Watches from now on.
    pub(crate) fn start() -> Self {
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let watched = Arc::clone(&state);
        std::thread::spawn(move || watch(&watched));
        Self { state }
    }

    /// An input is about to be tried.
    pub(crate) fn begin(&self, target: Target, input: &[u8]) {
        let mut state = self.lock();
        state.input = Some((target, input.to_vec()));
        state.number += 1;
    }

    /// It was answered.
    pub(crate) fn end(&self, took: Nanos, bytes: usize) {
        let mut state = self.lock();
        state.input = None;
        state.longest = state.longest.max(took);
        state.most_bytes = state.most_bytes.max(bytes);
    }

    /// The longest that an input took.
    pub(crate) fn longest(&self) -> Nanos {
        self.lock().longest
    }

    /// The most memory that an input took.
    pub(crate) fn most_bytes(&self) -> usize {
        self.lock().most_bytes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the program when one input is tried for too long.
fn watch((state, condvar): &(Mutex<State>, Condvar)) {
    let mut seen = 0;
    let mut guard = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        // Nobody wakes it: this only gives the lock back for so long.
        let waited = condvar.wait_timeout(guard, HANG);
        guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some((target, input)) = &guard.input
            && guard.number == seen
        {
            let kept = keep(*target, input);
            let place = kept.map_or_else(
                |error| format!("{error:#}"),
                |path| path.display().to_string(),
            );
            say(&format!("fuzz: {}: a hang: {place}", target.name()));
            std::process::exit(1);
        }
        seen = guard.number;
    }
}

/// Writes an input down.
pub(crate) fn keep(target: Target, input: &[u8]) -> Result<PathBuf> {
    let folder = Path::new("target/fuzz");
    let sum = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let path = folder.join(format!("{}-{sum:016x}", target.name()));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, input))
        .with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Many times what an input may take of a processor that others use too.
const HANG: Duration = Duration::from_secs(60);
