//! Texts shared by `fathom lint`, which warns about a plan, and the validity checks of a run.

/// Caveat about direct I/O with `ioengine=mmap`.
pub const DIRECT_MMAP: &str = "ioengine=mmap always uses the page cache: direct=1 \
                                      only writes each op back and drops its pages";
