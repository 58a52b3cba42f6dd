//! Times at which a process's io_uring ops reach the kernel.

use crate::background::BackgroundTrace;
use crate::config::TraceConfig;
use crate::error::TraceError;
use crate::follow::follow;
use crate::format::event_id;
use crate::tracing::Tracing;

/// Submissions of io_uring ops during a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submissions {
    /// Times on `CLOCK_MONOTONIC`, ascending.
    pub at_ns: Vec<u64>,
    /// Events that the kernel dropped because a ring was full.
    pub lost_events: u64,
}

/// Starts to record the io_uring submissions of the thread `thread` and of all threads and
/// processes that it starts from now on, and returns once the kernel records.
///
/// # Errors
/// Tracing is not permitted, or the kernel lacks the event.
pub fn trace_submissions(thread: u32) -> Result<BackgroundTrace<Submissions>, TraceError> {
    let body = move |config: &TraceConfig<'_>, begun: &mut dyn FnMut()| {
        let mut tracing = Tracing::new(config.ring_kib())?;
        tracing.only_threads(&[thread])?;
        let (event, format) = event(&tracing)?;
        tracing.enable(&event, None)?;
        let mut submissions = Submissions::default();
        let followed = follow(
            &mut tracing,
            config.following(begun),
            &|record| (event_id(record)? == format).then_some(()),
            &mut |at_ns, event| submissions.at_ns.extend(event.map(|()| at_ns)),
        )?;
        submissions.lost_events = followed.lost;
        Ok(submissions)
    };
    BackgroundTrace::start(0, Box::new(body))
}

/// Returns the name and the id of this kernel's event of a submission.
fn event(tracing: &Tracing) -> Result<(String, u16), TraceError> {
    for name in EVENTS {
        let event = format!("io_uring/{name}");
        if let Some(format) = tracing.format(&event)? {
            return Ok((event, format.id));
        }
    }
    Err(TraceError::NotOffered {
        events: EVENTS.join(", "),
        offered_by: "Linux 5.1 or later, built with CONFIG_IO_URING",
    })
}

/// The event of a submission, newest name first: Linux 6.4, and earlier.
const EVENTS: [&str; 2] = ["io_uring_submit_req", "io_uring_submit_sqe"];
