//! Sentences that `fathom lint` says of a plan and the validity checks of a finished run.

/// Direct I/O by `ioengine=mmap`.
pub const DIRECT_MMAP: &str = "ioengine=mmap always uses the page cache: direct=1 \
                                      only writes each op back and drops its pages";
