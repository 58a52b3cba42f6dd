//! Threads that check what a job reads (`verify_async`).
//!
//! ```text
//! job ─► reads to check, of which there are few ─► threads ─► checked reads ─► job
//! ```
//!
//! A job whose reads are checked too slowly waits, so that memory is bounded. The threads end with
//! the job's end of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use fathom_core::Errno;
use fathom_job::Options;
use fathom_setup::outcome::JobFailure;
use fathom_sys::thread;
use fathom_workload::{Check, Checker};

/// Number and CPUs of a job's checking threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VerifyThreads {
    count: u32,
    /// `None` for those of the job's thread.
    cpus: Option<Vec<u32>>,
}

impl VerifyThreads {
    /// Returns the threads that a job asks for.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            count: options.verify_threads,
            cpus: options.verify_cpus.clone(),
        }
    }

    /// Starts the threads; `None` if there are to be none.
    ///
    /// Call it on the job's thread, whose settings they take over.
    pub(crate) fn start(&self) -> Result<Option<Box<dyn Checker>>, JobFailure> {
        if self.count == 0 {
            return Ok(None);
        }
        let (give, given) = sync_channel(self.count as usize * CHECKS_PER_THREAD);
        let (done, take) = channel();
        let given = Arc::new(Mutex::new(given));
        let mut pool = VerifyPool {
            give: Some(give),
            take,
            threads: Vec::new(),
        };
        for _ in 0..self.count {
            pool.threads
                .push(self.spawn(Arc::clone(&given), done.clone())?);
        }
        Ok(Some(Box::new(pool)))
    }

    fn spawn(
        &self,
        given: Arc<Mutex<Receiver<Check>>>,
        done: Sender<Check>,
    ) -> Result<JoinHandle<()>, JobFailure> {
        let (ready, is_ready) = channel();
        let cpus = self.cpus.clone();
        let thread = Builder::new().name("verify".into()).spawn(move || {
            let set = cpus.map_or(Ok(()), |cpus| thread::set_allowed_cpus(&cpus));
            let failed = set.is_err();
            // The starting thread waits for it.
            let _told = ready.send(set);
            if !failed {
                check_all(&given, &done);
            }
        });
        let thread = thread.map_err(|error| failure("verify_async", &error))?;
        match is_ready.recv() {
            Ok(Err(error)) => Err(failure("verify_async_cpus", &error)),
            _ => Ok(thread),
        }
    }
}

/// Runs checks until the job's end of the queue is gone.
fn check_all(given: &Mutex<Receiver<Check>>, done: &Sender<Check>) {
    loop {
        // The lock is held while waiting: the others could only wait, too.
        let next = given.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut check) = next else {
            return;
        };
        // A check that panics comes back as one that was not run, which fails the job.
        let _panicked = catch_unwind(AssertUnwindSafe(|| check.run()));
        if done.send(check).is_err() {
            return;
        }
    }
}

fn failure(what: &str, error: &std::io::Error) -> JobFailure {
    let errno = Errno::of(error).unwrap_or(Errno::EINVAL);
    JobFailure::new(errno, format!("{what}: {error}"))
}

/// Job's end of its checking threads.
struct VerifyPool {
    /// `None` once the threads are to end.
    give: Option<SyncSender<Check>>,
    take: Receiver<Check>,
    threads: Vec<JoinHandle<()>>,
}

impl Checker for VerifyPool {
    fn give(&mut self, check: Check) {
        if let Some(give) = &self.give {
            // Without threads nothing is taken back either, which fails the job.
            let _refused = give.send(check);
        }
    }

    fn take(&mut self, wait: bool) -> Option<Check> {
        match wait {
            true => self.take.recv().ok(),
            false => self.take.try_recv().ok(),
        }
    }
}

impl fmt::Debug for VerifyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyPool({} threads)", self.threads.len())
    }
}

impl Drop for VerifyPool {
    fn drop(&mut self) {
        self.give = None;
        for thread in self.threads.drain(..) {
            let _ended = thread.join();
        }
    }
}

/// Reads that wait for a thread, beside the one that it checks.
const CHECKS_PER_THREAD: usize = 4;
