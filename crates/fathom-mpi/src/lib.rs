//! Messages between the ranks of a run, over the site's MPI.
//!
//! Empty without the feature `mpi`, so that a default build asks for no MPI. No other crate may
//! depend on the bindings.
#![forbid(unsafe_code)]

#[cfg(feature = "mpi")]
mod mpi_link;

// Public items, listed once.
#[cfg(feature = "mpi")]
pub use mpi_link::{MpiLink, StartError};
