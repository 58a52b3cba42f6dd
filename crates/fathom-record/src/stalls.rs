//! Stalls of a job, and their causes.

use serde::{Deserialize, Serialize};

/// Time in which ops of a job took far longer than is usual for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallRecord {
    /// Index of its host in [`Record::hosts`](crate::Record::hosts); `None` in a run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u32>,
    /// Number of the job ([`JobRecord::number`](crate::JobRecord::number)).
    pub number: u32,
    /// Due time of the slowest op, or its start if it had none, from the job's start of measuring.
    pub at_ns: u64,
    /// Time from then until the op completed.
    pub duration_ns: u64,
    /// Direction of the slowest op: `read`, `write` or `trim`.
    pub direction: String,
    /// Ops that were late.
    #[serde(rename = "late_ios")]
    pub ops: u64,
    /// Time in it for which the job's thread was ready to run, but waited for a processor.
    pub waited_ns: u64,
    /// Time in it for which the whole process did not run, though it was not waiting.
    pub stopped_ns: u64,
    /// The job's engine has no storage (`null`, `cpuio`…), so that no device can have been late.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_no_device: bool,
}

/// Cause of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallCause {
    /// The ops completed late: the device, or the kernel above it.
    Device,
    /// The ops completed late, and there is no device.
    Unknown,
    /// The job's thread waited for a processor for at least half of the time.
    NoProcessor,
    /// The process was stopped, or its machine was, for at least half of the time.
    Stopped,
}

impl StallRecord {
    /// Returns the cause: this process, if it did not run for at least half of the time.
    #[must_use]
    pub const fn cause(&self) -> StallCause {
        let half = self.duration_ns / 2;
        if self.stopped_ns.saturating_add(self.waited_ns) < half {
            match self.has_no_device {
                true => StallCause::Unknown,
                false => StallCause::Device,
            }
        } else if self.stopped_ns > self.waited_ns {
            StallCause::Stopped
        } else {
            StallCause::NoProcessor
        }
    }
}

impl StallCause {
    /// Returns the name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Unknown => "unknown",
            Self::NoProcessor => "no_processor",
            Self::Stopped => "stopped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(waited_ns: u64, stopped_ns: u64, want: StallCause) {
        let stall = StallRecord {
            duration_ns: 100,
            waited_ns,
            stopped_ns,
            ..StallRecord::default()
        };
        assert_eq!(stall.cause(), want);
    }

    #[test]
    fn half_the_time_decides() {
        check(0, 0, StallCause::Device);
        check(20, 20, StallCause::Device);
        check(50, 0, StallCause::NoProcessor);
        check(100, 60, StallCause::NoProcessor);
        check(0, 50, StallCause::Stopped);
        check(20, 80, StallCause::Stopped);
    }

    #[test]
    fn without_a_device_it_is_not_the_cause() {
        let check = |waited_ns, want| {
            let stall = StallRecord {
                duration_ns: 100,
                waited_ns,
                has_no_device: true,
                ..StallRecord::default()
            };
            assert_eq!(stall.cause(), want);
        };
        check(20, StallCause::Unknown);
        check(60, StallCause::NoProcessor);
    }
}
