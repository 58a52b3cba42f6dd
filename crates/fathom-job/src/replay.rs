//! The options of recording and replaying I/O.

use fathom_core::PerDirection;

/// Recording and replay of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// `write_iolog`: file to record the job's ops in.
    pub record: Option<String>,
    /// `read_iolog`: logs to replay, the clones of the job in turn; empty for none.
    pub logs: Vec<String>,
    /// `merge_blktrace_file`: file for the logs merged into one, which is replayed.
    pub merge_to: Option<String>,
    /// `merge_blktrace_scalars`: percent of each log's times; empty for 100 each.
    pub merge_scalars: Vec<f64>,
    /// `merge_blktrace_iters`: repetitions of each log, ≥ 1; empty for 1 each.
    pub merge_iterations: Vec<u32>,
    /// `replay_no_stall`: ignore the times of the log.
    pub no_stall: bool,
    /// `replay_redirect`: file of all ops.
    pub redirect: Option<String>,
    /// `replay_scale`: divisor of offsets, ≥ 1.
    pub scale: u32,
    /// `replay_align`: power of two of which offsets become multiples; 0 for any offset.
    pub align: u32,
    /// `replay_time_scale`: percent of the recorded speed, ≥ 1.
    pub speed: u32,
    /// `replay_skip`: directions left out.
    pub skip: PerDirection<bool>,
    /// `replay_skip=sync`.
    pub skip_syncs: bool,
    /// Directions of a log's ops. The parser leaves it unset: the setup of a run reads the log.
    pub found: Option<PerDirection<bool>>,
}

impl ReplayOptions {
    /// Returns whether the job replays a log, so that its pattern does not count.
    #[must_use]
    pub const fn replays(&self) -> bool {
        !self.logs.is_empty()
    }
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            record: None,
            logs: Vec::new(),
            merge_to: None,
            merge_scalars: Vec::new(),
            merge_iterations: Vec::new(),
            no_stall: false,
            redirect: None,
            scale: 1,
            align: 0,
            speed: 100,
            skip: PerDirection::all(false),
            skip_syncs: false,
            found: None,
        }
    }
}
