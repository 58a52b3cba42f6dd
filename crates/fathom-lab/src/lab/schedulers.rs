//! I/O schedulers that runs on this machine ask for.

use std::collections::BTreeSet;
use std::path::Path;

use fathom_job::Environment;
use fathom_run::why_no_scheduler;

use crate::lab_file::asked_schedulers;
use crate::lab_plan::LabPlan;

impl LabPlan {
    /// Returns a sentence, with a hint, about each I/O scheduler that runs on this machine ask for
    /// and that the device under their files does not offer. To be asked before the first run.
    #[must_use]
    pub fn missing_schedulers(&self, environment: &dyn Environment) -> Vec<String> {
        // Models have schedulers of their own.
        if self.machine.is_some() {
            return Vec::new();
        }
        let asked = asked_schedulers(self, environment).into_iter();
        let missing = asked.filter_map(|(name, file)| {
            let (why, hint) = why_no_scheduler(Path::new(&file), &name)?;
            Some(format!("ioscheduler: {why}\nhint: {hint}"))
        });
        // Several files may be on one device.
        missing.collect::<BTreeSet<_>>().into_iter().collect()
    }
}
