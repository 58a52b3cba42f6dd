//! Requests to a run from outside: a report now, or its end by a trigger.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_core::{Nanos, Tick};
use fathom_job::Settings;
use fathom_sys::child::Child;
use fathom_sys::clock::Clock;
use fathom_sys::signals::Interrupts;

/// Trigger of a run: `--trigger-file`, `--trigger-timeout` and the command they run.
pub(crate) struct Trigger<'a> {
    settings: &'a Settings,
    interrupts: Interrupts,
    clock: Clock,
    begun: Tick,
    fired: Cell<bool>,
}

impl<'a> Trigger<'a> {
    /// Creates the trigger of the settings; its timeout starts now.
    pub(crate) fn new(settings: &'a Settings, interrupts: Interrupts) -> Self {
        let clock = Clock::monotonic();
        Self {
            settings,
            interrupts,
            begun: clock.now(),
            clock,
            fired: Cell::new(false),
        }
    }

    /// Fires if it is time to, and returns how often it has fired: 0 or 1.
    pub(crate) fn fired(&self) -> u32 {
        if !self.fired.get() && (self.has_file() || self.is_over()) {
            self.fired.set(true);
            self.fire();
        }
        u32::from(self.fired.get())
    }

    fn has_file(&self) -> bool {
        let Some(file) = self.settings.trigger_file.as_ref().map(Path::new) else {
            return false;
        };
        let is_there = file.exists();
        // As in fio the file is removed, or it would end the next run too. A device, pipe or link
        // stays: removing it could harm others.
        if is_there && file.symlink_metadata().is_ok_and(|found| found.is_file()) {
            let _still_there = std::fs::remove_file(file);
        }
        is_there
    }

    fn is_over(&self) -> bool {
        let passed = |timeout: Nanos| self.clock.now() - self.begun >= timeout;
        self.settings.trigger_timeout.is_some_and(passed)
    }

    fn fire(&self) {
        let Some(command) = &self.settings.trigger else {
            return;
        };
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::null());
        // Its output would appear in the middle of the report.
        shell.stdout(Stdio::null());
        // Its exit status is ignored, as in fio: the command may power the machine off. An
        // interrupt ends the wait for it.
        let _ended = Child::spawn(&mut shell)
            .and_then(|mut child| child.wait_unless(&|| self.interrupts.count() > 0));
    }
}

/// Requests for a report: `SIGUSR1`, or a file that appears.
pub(crate) struct ReportRequests {
    interrupts: Interrupts,
    file: PathBuf,
    by_file: Cell<u32>,
    polls: Cell<u32>,
}

impl ReportRequests {
    /// Creates a counter of requests, none so far.
    pub(crate) fn new(interrupts: Interrupts) -> Self {
        let named = ["TMPDIR", "TEMP"].iter().find_map(std::env::var_os);
        Self {
            interrupts,
            file: named
                .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
                .join(DUMP_FILE),
            by_file: Cell::new(0),
            polls: Cell::new(0),
        }
    }

    /// Returns the number of requests so far. Only every fourth call looks for the file: calls come
    /// about twenty times a second.
    pub(crate) fn count(&self) -> u32 {
        let polls = self.polls.get().wrapping_add(1);
        self.polls.set(polls);
        if polls.is_multiple_of(4) && self.file.exists() {
            // Ignored if it cannot be removed, or it would request a report at every call.
            let removed = std::fs::remove_file(&self.file).is_ok();
            self.by_file.set(self.by_file.get() + u32::from(removed));
        }
        self.interrupts.reports() + self.by_file.get()
    }
}

/// fio's name of the file.
const DUMP_FILE: &str = "fio-dump-status";
