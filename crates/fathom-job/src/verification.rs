//! Options on the verification of written data, beside its method.

use fathom_checksum::HeaderLayout;

use crate::workload::ReadWrite;

/// Places of verification headers and extent of their checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationOptions {
    /// `verify_header`.
    pub layout: HeaderLayout,
    /// `verify_interval`, bytes; `None` if not given.
    pub interval: Option<u32>,
    /// `verify_offset`, bytes.
    pub header_offset: u32,
    /// `verify_pattern_interval`.
    pub pattern_interval: u32,
    /// `verify_write_sequence`.
    pub checks_sequence: bool,
    /// `verify_header_seed`.
    pub checks_seed: bool,
    /// `verify_fatal`.
    pub is_fatal: bool,
    /// `verify_dump`.
    pub dumps: bool,
    /// `verify_state_save`.
    pub saves_state: bool,
    /// `verify_state_load`.
    pub loads_state: bool,
    /// `verify_policy=fsynced`: a saved state holds the writes that a completed sync covers.
    pub by_sync: bool,
    /// `verify_only`.
    pub only: bool,
    /// `rw` of a job with `verify_only` that would write. It draws these ops without issuing them;
    /// it only reads, so its own `rw` is that of a job that reads.
    pub dry_run: Option<ReadWrite>,
}

impl Default for VerificationOptions {
    fn default() -> Self {
        Self {
            layout: HeaderLayout::Fio3_42,
            interval: None,
            header_offset: 0,
            pattern_interval: 0,
            checks_sequence: true,
            checks_seed: true,
            is_fatal: false,
            dumps: false,
            saves_state: false,
            loads_state: false,
            by_sync: false,
            only: false,
            dry_run: None,
        }
    }
}
