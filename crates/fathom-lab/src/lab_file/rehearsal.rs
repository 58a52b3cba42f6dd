//! Rehearsals: the experiment of a lab file on another machine.

use fathom_job::Environment;
use fathom_toml::{Source, TomlProblem};

use super::reader::Reader;
use super::{LAB_FILE, jobs, machine};
use crate::lab_plan::{LabPlan, MachineSource, RunSettings, Subject};

impl LabPlan {
    /// Returns the same experiment on this modelled machine. Commands, programs and other boots are
    /// left out: nothing of it touches this machine.
    ///
    /// # Errors
    /// Changes of a variant that this machine cannot have, jobs that it cannot run, a subject that
    /// needs a real one, or a service, which the load and perhaps the variants depend on.
    pub fn rehearsed_on(
        mut self,
        machine: MachineSource,
        environment: &dyn Environment,
    ) -> Result<Self, Vec<TomlProblem>> {
        let (file, text) = (self.file.clone(), self.text.clone());
        let source = Source::new(&file, &text, LAB_FILE);
        let reader = Reader::new(&source, &file, environment, &[]);
        if let Subject::Peak(_) = self.subject {
            let hint = "describe the load as a `[job]`";
            reader.refuse(&(0..0), "`fathom peak` has no modelled machine", hint);
        }
        if let Some(at) = self
            .text
            .find(SERVICE)
            .filter(|_| !self.services.is_empty())
        {
            let why = "a service runs in real time: it cannot be beside runs in virtual time";
            let hint = "rehearse a lab file without services, or run this one with fewer repeats";
            reader.refuse(&(at..at + SERVICE.len()), why, hint);
        }
        self.machine = Some(machine);
        self.precondition = None;
        self.run = RunSettings {
            pause: self.run.pause,
            ..RunSettings::default()
        };
        for variant in &mut self.variants {
            variant.requires.clear();
        }
        machine::check(&reader, &self);
        jobs::check_rehearsed(&reader, &self);
        match source.into_problems() {
            problems if problems.is_empty() => Ok(self),
            problems => Err(problems),
        }
    }
}

/// Beginning of a service in a lab file.
const SERVICE: &str = "[service";
