//! Requests for buffers.

/// Request for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Identifies the request among those of its thread that wait.
    pub id: u64,
    /// Index of the device, below [`Sharing::devices`](crate::Sharing).
    pub device: u32,
    /// Bytes that the request moves, at most those of a buffer.
    pub bytes: u32,
    /// Order among requests.
    pub class: AdmissionClass,
}

/// Class of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionClass {
    /// The target decides when the data move: a read, or a write that waits for an R2T.
    Paced,
    /// The data are in the stream already, and whatever is behind them waits with them.
    Unpaced,
}
