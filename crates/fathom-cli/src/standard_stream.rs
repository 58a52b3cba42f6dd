//! Streams of the process that text goes to.

/// Stream to print to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardStream {
    /// Standard output.
    Data,
    /// Standard error.
    Error,
}
