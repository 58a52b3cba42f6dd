//! What somebody asks of a run from outside: a report now, or its end by a trigger.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_core::{Nanos, Tick};
use fathom_job::Settings;
use fathom_sys::child::Child;
use fathom_sys::clock::Clock;
use fathom_sys::signals::Interrupts;

/// `--trigger-file`, `--trigger-timeout` and what they fire.
pub(crate) struct Trigger<'a> {
    settings: &'a Settings,
    interrupts: Interrupts,
    clock: Clock,
    begun: Tick,
    fired: Cell<bool>,
}

impl<'a> Trigger<'a> {
    /// The trigger that the settings ask for; its time counts from now.
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

    /// How often it has fired, 0 or 1; looks whether it is to fire.
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
        // As in fio the file is taken away: it has done its work. A device, a pipe or a link is
        // more than that, and stays.
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
        // Its output would stand in the middle of the report.
        shell.stdout(Stdio::null());
        // What it makes of it is its own business, as in fio: it may well end this machine. A user
        // who stops the run meanwhile does not wait for it.
        let _ended = Child::spawn(&mut shell)
            .and_then(|mut child| child.wait_unless(&|| self.interrupts.count() > 0));
    }
}

/// `SIGUSR1`, and the file that asks for a report.
pub(crate) struct ReportRequests {
    interrupts: Interrupts,
    file: PathBuf,
    by_file: Cell<u32>,
    looks: Cell<u32>,
}

impl ReportRequests {
    /// Nobody has asked.
    pub(crate) fn new(interrupts: Interrupts) -> Self {
        let named = ["TMPDIR", "TEMP"].iter().find_map(std::env::var_os);
        Self {
            interrupts,
            file: named
                .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
                .join(DUMP_FILE),
            by_file: Cell::new(0),
            looks: Cell::new(0),
        }
    }

    /// How often a report was asked for. The file is looked for at every fourth call only: the
    /// calls come some twenty times a second.
    pub(crate) fn count(&self) -> u32 {
        let looks = self.looks.get().wrapping_add(1);
        self.looks.set(looks);
        if looks.is_multiple_of(4) && self.file.exists() {
            // One that cannot be taken away would ask for ever.
            let taken = std::fs::remove_file(&self.file).is_ok();
            self.by_file.set(self.by_file.get() + u32::from(taken));
        }
        self.interrupts.reports() + self.by_file.get()
    }
}

/// fio's name for it.
const DUMP_FILE: &str = "fio-dump-status";
