//! Reads whose data are not what was written.

use fathom_core::{Completion, Errno, FileIndex};

use crate::recorder::job_error;
use crate::results::{JobActivity, JobError};
use crate::slots::SlotState;
use crate::verify::{Checker, Checks, ChecksLost};
use crate::worker::Worker;

impl Worker {
    /// Has reads checked by `checker` from now on, instead of by the job's loop.
    pub fn check_by(&mut self, checker: Box<dyn Checker>) {
        self.checks = Some(Box::new(Checks::new(checker)));
    }

    /// Counts the outcomes of the checks that have been run; with `wait`, of all.
    #[cold]
    pub(crate) fn take_checks(&mut self, wait: bool) {
        let Some(mut checks) = self.checks.take() else {
            return;
        };
        loop {
            match checks.take(wait) {
                Ok(Some(mut check)) => {
                    if let (Some(Err(error)), Some(readback)) =
                        (check.outcome.take(), &mut self.readback)
                    {
                        let file = check.state.op.file;
                        let text = readback.note(file, &error, &mut check.data);
                        self.on_mismatch(&check.state, text);
                    }
                    checks.put_back(check);
                }
                Ok(None) => break,
                Err(ChecksLost) => {
                    self.on_checks_lost();
                    break;
                }
            }
        }
        self.checks = Some(checks);
    }

    /// Tolerates a mismatch, or ends the job.
    #[cold]
    pub(crate) fn on_mismatch(&mut self, state: &SlotState, mismatch: String) {
        let completion = Completion {
            slot: state.op.slot,
            // As in fio, for data that are not what was written.
            result: Errno::EILSEQ.result(),
        };
        let error = job_error(state, completion, Some(mismatch));
        let verify = self.config.verify.as_ref();
        let is_fatal = verify.is_some_and(|verify| verify.is_fatal);
        if self.config.tolerate.verify(error.errno) && !is_fatal {
            self.recorder.tolerated(error);
        } else {
            self.fail(JobError {
                activity: JobActivity::Verify,
                ..error
            });
        }
    }

    fn on_checks_lost(&mut self) {
        self.fail(JobError {
            errno: Errno::EIO,
            activity: JobActivity::Verify,
            file: FileIndex::new(0),
            offset: 0,
            length: 0,
            detail: Some("threads of verify_async have died, and reads were not checked".into()),
        });
    }
}
