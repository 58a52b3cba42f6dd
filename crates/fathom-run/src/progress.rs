//! Progress of each worker, published by its thread with relaxed stores and read by the watcher.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use fathom_core::{Direction, PerDirection};
use fathom_setup::{JobSnapshot, JobState};
use fathom_workload::{Phase, WorkerProgress};

use crate::interim::Mailbox;

/// Progress of one worker, on cache lines of its own so that publishing never contends.
///
/// Each counter is published separately, so a reader may combine counters of two moments. That is
/// accurate enough for a status line; results are part of the job's outcome instead.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ProgressCell {
    ios: [AtomicU64; 3],
    bytes: [AtomicU64; 3],
    in_flight: AtomicU32,
    state: AtomicU8,
    /// Requests for, and answers with, interim results.
    pub(crate) mailbox: Mailbox,
}

impl ProgressCell {
    /// Publishes the worker's counters and phase.
    pub(crate) fn publish(&self, progress: &WorkerProgress) {
        // Relaxed: the reader uses these values alone; they guard no other memory.
        for direction in Direction::ALL {
            let index = direction.index();
            self.ios[index].store(progress.ios[direction], Ordering::Relaxed);
            self.bytes[index].store(progress.bytes[direction], Ordering::Relaxed);
        }
        self.in_flight.store(progress.in_flight, Ordering::Relaxed);
        self.set(JobState::Working(progress.phase));
    }

    /// Publishes the state of the thread.
    pub(crate) fn set(&self, state: JobState) {
        self.state.store(encode(state), Ordering::Relaxed);
    }

    /// Returns what was last published.
    pub(crate) fn read(&self) -> JobSnapshot {
        let load = |cells: &[AtomicU64; 3]| {
            PerDirection::from_fn(|direction| cells[direction.index()].load(Ordering::Relaxed))
        };
        let state = decode(self.state.load(Ordering::Relaxed));
        let in_flight = match state {
            JobState::Working(_) => self.in_flight.load(Ordering::Relaxed),
            _ => 0,
        };
        JobSnapshot {
            state,
            ios: load(&self.ios),
            bytes: load(&self.bytes),
            in_flight,
            ..JobSnapshot::default()
        }
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
    fn every_state_round_trips() {
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
    fn reader_sees_published_progress() {
        let cell = ProgressCell::default();
        assert_eq!(cell.read().state, JobState::NotStarted);
        cell.publish(&WorkerProgress {
            ios: PerDirection::new(1, 2, 3),
            bytes: PerDirection::new(4, 5, 6),
            in_flight: 7,
            phase: Phase::Ramp,
        });
        let read = cell.read();
        assert_eq!(read.state, JobState::Working(Phase::Ramp));
        assert_eq!(read.ios, PerDirection::new(1, 2, 3));
        assert_eq!(read.bytes, PerDirection::new(4, 5, 6));
        assert_eq!(read.in_flight, 7);
        // A job whose engine failed had ops in flight when it last told.
        cell.set(JobState::Failed);
        assert_eq!(cell.read().in_flight, 0);
    }
}
