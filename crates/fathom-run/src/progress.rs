//! How far each worker has come, for whoever watches: written by one thread with relaxed stores,
//! read by another.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use fathom_core::{Direction, PerDirection};
use fathom_setup::JobState;
use fathom_workload::{Phase, Progress};

use crate::interim::Mailbox;

/// One worker's progress, on cache lines of its own.
///
/// The counters are published one by one: a reader may see reads of one moment beside writes of
/// the next, which is fine for a status line and nothing else.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ProgressCell {
    ios: [AtomicU64; 3],
    bytes: [AtomicU64; 3],
    state: AtomicU8,
    /// For reports while it runs.
    pub(crate) mailbox: Mailbox,
}

impl ProgressCell {
    /// Shows how far the worker has come.
    pub(crate) fn publish(&self, progress: &Progress) {
        // Relaxed: nothing else is read on the strength of these values.
        for direction in Direction::ALL {
            let index = direction.index();
            self.ios[index].store(progress.ios[direction], Ordering::Relaxed);
            self.bytes[index].store(progress.bytes[direction], Ordering::Relaxed);
        }
        self.set(JobState::Working(progress.phase));
    }

    /// Shows what the thread is doing.
    pub(crate) fn set(&self, state: JobState) {
        self.state.store(encode(state), Ordering::Relaxed);
    }

    /// What was shown last.
    pub(crate) fn read(&self) -> (JobState, PerDirection<u64>, PerDirection<u64>) {
        let load = |cells: &[AtomicU64; 3]| {
            PerDirection::from_fn(|direction| cells[direction.index()].load(Ordering::Relaxed))
        };
        (
            decode(self.state.load(Ordering::Relaxed)),
            load(&self.ios),
            load(&self.bytes),
        )
    }
}

const PHASES: [Phase; 6] = [
    Phase::Delayed,
    Phase::Ramp,
    Phase::Running,
    Phase::Verifying,
    Phase::Syncing,
    Phase::Finished,
];

fn encode(state: JobState) -> u8 {
    match state {
        JobState::NotStarted => 0,
        JobState::SettingUp => 1,
        JobState::Ended => 2,
        JobState::Failed => 3,
        JobState::Working(phase) => {
            let place = (4_u8..).zip(PHASES).find(|(_, known)| *known == phase);
            place.map_or(1, |(code, _)| code)
        }
    }
}

fn decode(code: u8) -> JobState {
    match code {
        0 => JobState::NotStarted,
        1 => JobState::SettingUp,
        2 => JobState::Ended,
        3 => JobState::Failed,
        _ => {
            let phase = PHASES.get(usize::from(code - 4)).copied();
            phase.map_or(JobState::SettingUp, JobState::Working)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_the_crossing() {
        let working = PHASES.map(JobState::Working);
        let others = [
            JobState::NotStarted,
            JobState::SettingUp,
            JobState::Ended,
            JobState::Failed,
        ];
        for state in working.into_iter().chain(others) {
            assert_eq!(decode(encode(state)), state);
        }
    }

    #[test]
    fn what_is_published_is_read() {
        let cell = ProgressCell::default();
        assert_eq!(cell.read().0, JobState::NotStarted);
        cell.publish(&Progress {
            ios: PerDirection::new(1, 2, 3),
            bytes: PerDirection::new(4, 5, 6),
            phase: Phase::Ramp,
        });
        let expected = (
            JobState::Working(Phase::Ramp),
            PerDirection::new(1, 2, 3),
            PerDirection::new(4, 5, 6),
        );
        assert_eq!(cell.read(), expected);
    }
}
