//! Options on features of the device: atomic writes, write streams, preconditioning, errors of
//! blocks, trims.

/// Features of the device that a job uses or watches.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceOptions {
    /// `atomic`: each write is stored whole or not at all.
    pub atomic: bool,
    /// `dataplacement`, `fdp`: writes have streams.
    pub streams: bool,
    /// `dataplacement=streams`: by the streams directive of NVMe, not by flexible data placement.
    pub stream_directive: bool,
    /// `plids`: identifiers of the streams, from 0; empty for all.
    pub placement: Vec<u8>,
    /// `plid_select=random`.
    pub random_streams: bool,
    /// `block_error_percentiles`: follow the blocks until a write or trim fails.
    pub block_errors: bool,
    /// `sprandom`: write as in the steady state of random writes.
    pub sprandom: bool,
    /// `spr_num_regions`.
    pub spr_num_regions: u32,
    /// `spr_op`: physical capacity beyond the logical one, as a share of the latter.
    pub spr_op: f64,
    /// `spr_cs`: bytes in the device's write cache.
    pub spr_cs: u64,
}

/// Trims, and those of blocks that the job has written and verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimOptions {
    /// `num_range`: ranges of a trim, 1–256.
    pub ranges: u32,
    /// `trim_percentage`.
    pub percentage: u8,
    /// `trim_verify_zero`.
    pub verify_zero: bool,
    /// `trim_backlog`, writes; 0: none.
    pub backlog: u64,
    /// `trim_backlog_batch`; 0: as `trim_backlog`.
    pub batch: u32,
}

impl Default for TrimOptions {
    fn default() -> Self {
        Self {
            ranges: 1,
            percentage: 0,
            verify_zero: true,
            backlog: 0,
            batch: 0,
        }
    }
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self {
            atomic: false,
            streams: false,
            stream_directive: false,
            placement: Vec::new(),
            random_streams: false,
            block_errors: false,
            sprandom: false,
            spr_num_regions: 100,
            spr_op: 0.15,
            spr_cs: 0,
        }
    }
}
