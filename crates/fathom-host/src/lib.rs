//! The host under a run: block devices, mounts, files and their cached or allocated extents,
//! limits of control groups, and the checks that keep a run from writing what is in use.
#![forbid(unsafe_code)]

pub mod allocated_extents;
pub mod backing;
pub mod block_tree;
pub mod control_groups;
pub mod disks;
mod error;
mod file_identity;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod machine;
pub mod output_file;
pub mod page_cache;
pub mod probe;
pub mod processors;
pub mod safety;
pub mod storage;
mod storage_identity;
pub mod target_kind;

// Public items, listed once.
pub use error::HostError;
pub use file_identity::FileIdentity;
pub use storage_identity::storage_identity;
