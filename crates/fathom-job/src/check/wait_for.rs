//! The rule on `wait_for`.

use super::{JobCheck, problem};

impl JobCheck<'_> {
    /// The job that `wait_for` names must be defined before this one and have a unique name, as in
    /// fio.
    pub(super) fn wait_for(&mut self) {
        let Some(waits_for) = &self.layer.options.lifecycle.wait_for else {
            return;
        };
        let named = self.earlier.iter().filter(|job| &job.name == waits_for);
        let (why, fix) = match named.count() {
            _ if waits_for == self.name => (
                "the job waits for itself".to_owned(),
                "name a job defined before it",
            ),
            0 => (
                format!("no job `{waits_for}` is defined before this one"),
                "name a job defined before it",
            ),
            1 => return,
            count => (
                format!("{count} jobs are named `{waits_for}`; `wait_for` needs a unique name"),
                "give each job a unique name",
            ),
        };
        let problem = problem("bad-wait", why).fix(fix);
        self.error_at(&["wait_for"], problem);
    }
}
