//! One run: check, lay out files, start, watch, stop, collect.
#![forbid(unsafe_code)]

pub mod block_tree;
pub mod disks;
pub mod machine;
pub mod page_cache;
pub mod safety;
pub mod storage;
