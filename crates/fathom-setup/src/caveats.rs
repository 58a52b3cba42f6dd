//! Sentences that `fathom lint` says of a plan and the validity checks of a finished run.

/// Direct I/O by `ioengine=mmap`.
pub const DIRECT_MMAP: &str = "ioengine=mmap always works in the page cache: direct=1 \
                                      only has each op written out and its pages dropped";
