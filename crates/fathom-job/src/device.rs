//! Options on features of the device: atomic writes, write streams, preconditioning, errors of
//! blocks, trims.

/// Features of the device that a job uses or watches.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceOptions {
    /// `atomic`: each write is stored whole or not at all.
    pub atomic: bool,
    /// `fdp`.
    pub fdp: bool,
    /// `dataplacement`; `None`: not given.
    pub data_placement: Option<DataPlacement>,
    /// `plids`: identifiers of the streams, from 0; empty for all.
    pub placement: Vec<u8>,
    /// `plid_select`.
    pub stream_choice: StreamChoice,
    /// `dp_scheme`: path of the file that [`StreamChoice::Scheme`] reads.
    pub scheme: Option<String>,
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

/// Feature of a device that keeps written data apart by streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPlacement {
    /// None.
    None,
    /// Flexible data placement of NVMe.
    Fdp,
    /// The streams directive of NVMe.
    StreamsDirective,
}

/// Choice of a write's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamChoice {
    /// The one after that of the last write.
    #[default]
    RoundRobin,
    /// Drawn.
    Random,
    /// By the place of the write, as `dp_scheme` says.
    Scheme,
}

impl DeviceOptions {
    /// Returns the feature that places the writes.
    #[must_use]
    pub const fn data_placement(&self) -> DataPlacement {
        match self.data_placement {
            Some(given) => given,
            None if self.fdp => DataPlacement::Fdp,
            None => DataPlacement::None,
        }
    }

    /// Returns whether writes have streams.
    #[must_use]
    pub const fn has_streams(&self) -> bool {
        !matches!(self.data_placement(), DataPlacement::None)
    }
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
            fdp: false,
            data_placement: None,
            placement: Vec::new(),
            stream_choice: StreamChoice::default(),
            scheme: None,
            block_errors: false,
            sprandom: false,
            spr_num_regions: 100,
            spr_op: 0.15,
            spr_cs: 0,
        }
    }
}
