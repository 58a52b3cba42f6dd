//! The exit code, decided in one place.

use fathom_job::Dialect;

/// Outcome of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    /// Printed what was requested (help, a version, parsed options), or ran nothing on purpose.
    Printed,
    /// Help was requested for an engine without options, which fio counts as a failure.
    NothingToShow,
    /// Help was requested for an unknown option, which fio does not count as a failure.
    NothingKnown,
    /// Ran the jobs and printed the report.
    Ran {
        /// Jobs that ended with an error.
        failed_jobs: usize,
        /// Errors that jobs tolerated as configured.
        tolerated_errors: u64,
        /// The run was interrupted.
        interrupted: bool,
    },
    /// Ran the jobs and printed the report, but an I/O log is incomplete.
    LogBroken {
        /// Jobs that ended with an error.
        failed_jobs: usize,
    },
    /// Ran the jobs as ranks, whose rank 0 has decided on this code.
    Ranks(u8),
    /// Compared runs, and a judged metric is worse, or whatever else was to count as a failure.
    Judged,
    /// The request is invalid or cannot be done; nothing was run.
    Refused,
    /// The report could not be written.
    NotReported,
    /// A panic.
    Bug,
}

/// Returns the exit code. `fathom`: 0 done; 1 done, but a check failed (errors, verify); 2 not
/// done, or not completely. `fio`: as fio's own.
pub(crate) fn code(dialect: Dialect, end: ProgramEnd) -> u8 {
    match (dialect, end) {
        (_, ProgramEnd::Printed) | (Dialect::Fathom, ProgramEnd::NothingToShow) => 0,
        (Dialect::Fio, ProgramEnd::NothingToShow) => 1,
        (Dialect::Fio, ProgramEnd::NothingKnown) => 0,
        (Dialect::Fathom, ProgramEnd::NothingKnown) => 2,
        (_, ProgramEnd::Ranks(code)) => code,
        (_, ProgramEnd::Judged) => 1,
        (_, ProgramEnd::Bug) => 2,
        (
            Dialect::Fathom,
            ProgramEnd::Refused | ProgramEnd::NotReported | ProgramEnd::LogBroken { .. },
        ) => 2,
        (Dialect::Fio, ProgramEnd::Refused | ProgramEnd::NotReported) => 1,
        (
            Dialect::Fathom,
            ProgramEnd::Ran {
                interrupted: true, ..
            },
        ) => 2,
        (
            Dialect::Fio,
            ProgramEnd::Ran {
                interrupted: true, ..
            },
        ) => 128,
        (
            Dialect::Fathom,
            ProgramEnd::Ran {
                failed_jobs,
                tolerated_errors,
                ..
            },
        ) => u8::from(failed_jobs > 0 || tolerated_errors > 0),
        // The system cuts fio's count to eight bits, so 256 failures look like success: not copied.
        // To fio, an incomplete log is not a failure.
        (
            Dialect::Fio,
            ProgramEnd::Ran { failed_jobs, .. } | ProgramEnd::LogBroken { failed_jobs },
        ) => u8::try_from(failed_jobs).unwrap_or(255),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_as_documented() {
        let ran = |failed_jobs, tolerated_errors, interrupted| ProgramEnd::Ran {
            failed_jobs,
            tolerated_errors,
            interrupted,
        };
        let cases = [
            // (end, as fathom, as fio)
            (ProgramEnd::Printed, 0, 0),
            (ProgramEnd::NothingToShow, 0, 1),
            (ProgramEnd::NothingKnown, 2, 0),
            (ran(0, 0, false), 0, 0),
            (ran(3, 0, false), 1, 3),
            (ran(0, 5, false), 1, 0),
            (ran(256, 0, false), 1, 255),
            (ran(0, 0, true), 2, 128),
            (ProgramEnd::LogBroken { failed_jobs: 0 }, 2, 0),
            (ProgramEnd::LogBroken { failed_jobs: 2 }, 2, 2),
            (ProgramEnd::Ranks(2), 2, 2),
            (ProgramEnd::Judged, 1, 1),
            (ProgramEnd::Refused, 2, 1),
            (ProgramEnd::NotReported, 2, 1),
            (ProgramEnd::Bug, 2, 2),
        ];
        for (end, fathom, fio) in cases {
            assert_eq!(code(Dialect::Fathom, end), fathom, "{end:?}");
            assert_eq!(code(Dialect::Fio, end), fio, "{end:?}");
        }
    }
}
