//! Start at a moment that all hosts of a run have agreed on (`--start-at`), and what the record
//! says of this host.
//!
//! The wait is in two parts. The first ends [`LEAD`] ahead of the moment, before the state of the
//! host is captured, so that it does not count as part of the run; the second is the watcher's,
//! with all jobs of the first wave ready.

use fathom_core::{Nanos, Tick};
use fathom_job::{Plan, Settings, StartTime};
use fathom_record::{HostClock, HostRecord, Warning};
use fathom_setup::{ProblemKind, RunError, RunEvent, RunProblem, Session};
use fathom_sys::clock::{self, Clock, clock_status, wall_ns};
use fathom_sys::system;

/// Agreed start, on the wall clock of this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgreedStart(u64);

impl AgreedStart {
    /// Fixes the moment, as seen now.
    fn of(time: StartTime) -> Result<Self, RunError> {
        let moment = time.resolve(wall_ns());
        moment.map(Self).map_err(|why| {
            let problem = RunProblem::new(ProblemKind::StartTime, format!("--start-at: {why}"));
            RunError {
                problems: vec![
                    problem.hint("choose a time, in UTC, by which all hosts can be ready"),
                ],
            }
        })
    }

    /// Returns the time left, by the wall clock: a time service may set it meanwhile.
    pub(crate) fn left(self) -> Nanos {
        Nanos::new(self.0.saturating_sub(wall_ns()))
    }
}

/// Returns the agreed start, if there is one.
///
/// # Errors
/// It is past or too far ahead, or the ranks agree on one themselves.
pub(crate) fn of(settings: &Settings, is_alone: bool) -> Result<Option<AgreedStart>, RunError> {
    if !is_alone && settings.start_at.is_some() {
        let why = "--start-at: these ranks agree on their starts themselves";
        let problem = RunProblem::new(ProblemKind::StartTime, why);
        return Err(problem.hint("remove `--start-at`").into());
    }
    settings.start_at.map(AgreedStart::of).transpose()
}

/// Waits until shortly before the moment, if there is one, or for a request to stop.
pub(crate) fn approach(agreed: Option<AgreedStart>, session: &mut Session<'_>, run_clock: &Clock) {
    let Some(agreed) = agreed else {
        return;
    };
    if agreed.left() > LEAD {
        (session.tell)(RunEvent::AwaitingStart(agreed.left()));
    }
    while agreed.left() > LEAD && (session.stops)() == 0 {
        let nap = (agreed.left() - LEAD).min(NAP);
        clock::sleep_until(run_clock, run_clock.now() + nap);
    }
}

/// First start and last end of the jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: Tick,
    pub(crate) end: Tick,
}

/// Returns the entry of this host, if the run is one of several.
pub(crate) fn host(
    (plan, settings): (&Plan, &Settings),
    agreed: Option<AgreedStart>,
    span: Option<Span>,
    run_clock: &Clock,
) -> Option<HostRecord> {
    let rank = settings.rank?;
    let wall_of = |tick: Tick| wall_ns().saturating_sub((run_clock.now() - tick).get());
    let status = clock_status().ok();
    Some(HostRecord {
        name: system::kernel().host,
        rank: rank.rank,
        ranks: rank.ranks,
        program: format!("fathom {}", env!("CARGO_PKG_VERSION")),
        clock: HostClock {
            compared: "kernel".to_owned(),
            is_synchronised: status.is_some_and(|status| status.is_synchronised),
            bound_ns: status
                .filter(|status| status.is_synchronised)
                .map(|status| status.bound.get()),
            ..HostClock::default()
        },
        agreed_ns: agreed.map(|agreed| agreed.0),
        start_ns: span.map_or(0, |span| wall_of(span.start)),
        end_ns: span.map_or(0, |span| wall_of(span.end)),
        left_out: plan.left_out.clone(),
        client: plan.place.client.clone(),
        port: plan.place.port,
        ..HostRecord::default()
    })
}

/// Returns the warning about jobs that began after the agreed moment.
pub(crate) fn late(host: Option<&HostRecord>) -> Option<Warning> {
    let host = host.filter(|host| host.end_ns > 0)?;
    let first_late_ns = host.start_ns.saturating_sub(host.agreed_ns?);
    let waves = host.waves.iter();
    let late_ns = waves.map(|wave| wave.start_ns.saturating_sub(wave.agreed_ns));
    let late_ns = late_ns.fold(first_late_ns, u64::max);
    let hint = match host.waves.is_empty() {
        true => "choose a later `--start-at`: files are laid out before it",
        false => "leave a processor to each job and rank of this host",
    };
    (late_ns >= LATE_NS).then(|| Warning {
        code: "started_late".to_owned(),
        message: format!(
            "the jobs began {} ms after the agreed start, because they were not ready in time",
            late_ns / 1_000_000
        ),
        hint: hint.to_owned(),
        ..Warning::default()
    })
}

/// Time ahead of the moment at which engines start and files are opened. A guess: large maps of
/// random offsets take the longest.
const LEAD: Nanos = Nanos::from_secs(2);

/// Interval at which a request to stop is looked for.
const NAP: Nanos = Nanos::from_millis(50);

/// Start later than this is told. A guess, well above the wait of a ready thread on an idle host.
const LATE_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_late(agreed_ns: Option<u64>, start_ns: u64, end_ns: u64, want: Option<&str>) {
        let host = HostRecord {
            agreed_ns,
            start_ns,
            end_ns,
            ..HostRecord::default()
        };
        let got = late(Some(&host)).map(|warning| (warning.code, warning.message));
        let want = want.map(|after| {
            let message = format!(
                "the jobs began {after} ms after the agreed start, because they were not ready in \
                 time"
            );
            ("started_late".to_owned(), message)
        });
        assert_eq!(got, want);
    }

    #[test]
    fn late_starts_are_told_of() {
        let (agreed, ms) = (1_000_000_000, 1_000_000);
        check_late(
            Some(agreed),
            agreed + 1234 * ms,
            9_000_000_000,
            Some("1234"),
        );
        check_late(Some(agreed), agreed + 20 * ms, 9_000_000_000, Some("20"));
        check_late(Some(agreed), agreed + 20 * ms - 1, 9_000_000_000, None);
        check_late(Some(agreed), agreed - 5 * ms, 9_000_000_000, None);
        // Without an agreed start, and where no job ran.
        check_late(None, agreed + 1234 * ms, 9_000_000_000, None);
        check_late(Some(agreed), 0, 0, None);
        assert_eq!(late(None), None);
    }
}
