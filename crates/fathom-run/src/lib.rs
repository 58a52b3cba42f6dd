//! One run: check, lay out files, start, watch, stop, collect.
#![forbid(unsafe_code)]

mod affinity;
mod agreed_start;
mod bandwidth;
mod calibration;
mod cgroup;
mod checked;
mod create_anew;
mod device_trace;
mod drive;
mod ended_run;
mod engine_config;
mod evidence;
mod file_locks;
mod gtod;
mod hooks;
mod idleness;
mod interim;
mod launch;
mod live;
mod merge;
mod mismatches;
mod offload;
mod pacing;
mod peer_access;
mod peer_times;
mod peers;
mod prepare;
mod process;
mod progress;
mod recording;
mod replay_reader;
mod run;
mod run_files;
mod scheduler;
mod shared_layout;
mod stalls;
mod start_barrier;
#[cfg(test)]
mod testing;
mod thread_watch;
mod tracing_engine;
mod validity;
mod verify_state;
mod verify_threads;

pub mod layout;

// Public items, listed once.
pub use idleness::unit_of_work;
pub use merge::merge_traces;
pub use peers::{Alone, Moment, PeerPlace, PeerTimes, Peers};
pub use prepare::Leftovers;
pub use run::{Finished, run, run_together};
pub use run_files::replayed_targets;
pub use scheduler::{SchedulerError, SchedulerGuard, why_no_scheduler};
