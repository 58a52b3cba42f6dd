//! Options on reading back what was written.

use crate::plan::Size;

/// Options on reading back what was written, and on what is kept in memory for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadbackOptions {
    /// `verify_backlog`: number of writes after which some are read back; 0 for none.
    pub backlog: u64,
    /// `verify_backlog_batch`: number of writes read back then; 0 for all of the backlog.
    pub backlog_batch: u64,
    /// `verify_map_limit`; `None` for the default.
    pub map_limit: Option<Size>,
}
