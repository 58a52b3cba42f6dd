//! Times at which a process's synchronous reads reach the kernel.

use crate::background::BackgroundTrace;
use crate::config::TraceConfig;
use crate::error::TraceError;
use crate::follow::follow;
use crate::format::event_id;
use crate::tracing::Tracing;

/// System calls of `pread(2)` during a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submissions {
    /// Times on `CLOCK_MONOTONIC`, ascending.
    pub at_ns: Vec<u64>,
    /// Events that the kernel dropped because a ring was full.
    pub lost_events: u64,
}

/// Starts to record the calls of `pread(2)` for `bytes` bytes by the thread `thread` and by all
/// threads and processes that it starts from now on, and returns once the kernel records. Calls for
/// other lengths, as those of the dynamic loader, are left out.
///
/// # Errors
/// Tracing is not permitted, or the kernel lacks the event.
pub fn trace_submissions(
    thread: u32,
    bytes: u32,
) -> Result<BackgroundTrace<Submissions>, TraceError> {
    let body = move |config: &TraceConfig<'_>, begun: &mut dyn FnMut()| {
        let mut tracing = Tracing::new(config.ring_kib())?;
        tracing.only_threads(&[thread])?;
        let format = tracing
            .format(EVENT)?
            .ok_or_else(|| TraceError::NotOffered {
                events: EVENT.to_owned(),
                offered_by: "a kernel that was built with CONFIG_FTRACE_SYSCALLS",
            })?;
        tracing.enable(EVENT, Some(&format!("count == {bytes}")))?;
        let mut submissions = Submissions::default();
        let followed = follow(
            &mut tracing,
            config.following(begun),
            &|record| (event_id(record)? == format.id).then_some(()),
            &mut |at_ns, event| submissions.at_ns.extend(event.map(|()| at_ns)),
        )?;
        submissions.lost_events = followed.lost;
        Ok(submissions)
    };
    BackgroundTrace::start(0, Box::new(body))
}

/// The system call of `pread(2)`.
const EVENT: &str = "syscalls/sys_enter_pread64";
