//! What is logged, in 32 bytes.

use fathom_core::Direction;

/// One thing that is logged. What the fields hold depends on the kind:
///
/// | kind | `value` | `clat`, `slat` | `length` |
/// |---|---|---|---|
/// | `Op`, `EarlyOp` | byte offset | ns, low halves | bytes |
/// | `High` | | high halves, for the op that follows | |
/// | `Window` | the value | low and high half of the maximum | |
/// | `HistogramBegin` | | | |
/// | `HistogramBin` | count | | bucket |
/// | `HistogramEnd` | ops in it | | bytes of the last op |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When: ns since measuring began.
    pub time_ns: u64,
    /// See above.
    pub value: u64,
    /// See above.
    pub clat: u32,
    /// See above.
    pub slat: u32,
    /// See above.
    pub length: u32,
    /// The kernel's I/O priority (`ioprio`).
    pub priority: u16,
    /// Which way data went.
    pub direction: Direction,
    /// What it is.
    pub kind: EntryKind,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            time_ns: 0,
            value: 0,
            clat: 0,
            slat: 0,
            length: 0,
            priority: 0,
            direction: Direction::Read,
            kind: EntryKind::Op,
        }
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryKind {
    /// An op that has completed.
    #[default]
    Op,
    /// One that was issued before measuring began: its slat is not counted.
    EarlyOp,
    /// The high halves of the next op's latencies.
    High,
    /// The end of a window.
    Window(Series),
    /// A histogram begins; its bins follow.
    HistogramBegin,
    /// One bucket of it.
    HistogramBin,
    /// It is whole if its bins add up to `value`.
    HistogramEnd,
}

/// What is averaged over windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// KiB/s.
    Bandwidth,
    /// Ops a second.
    Iops,
    /// ns.
    Lat,
    /// ns.
    Clat,
    /// ns.
    Slat,
}

const _: () = assert!(size_of::<Entry>() == 32);
