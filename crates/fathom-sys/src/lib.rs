//! System calls, rings, mapped memory and the clock: all `unsafe` code of the program.
//!
//! Everything public here is a safe type or function over one kernel facility.
#![allow(unsafe_code, reason = "this crate exists to hold it")]

// Public modules, listed once.
pub mod aio;
pub mod allocation_counter;
pub mod anonymous;
pub mod cache_counters;
pub mod calendar;
pub mod child;
pub mod clock;
pub mod drained_pipe;
pub mod epoll;
mod errno;
pub mod exit;
pub mod extents;
pub mod file_io;
pub mod files;
pub mod in_flight;
pub mod integrity;
pub mod kept_mappings;
pub mod kernel_version;
pub mod lease;
pub mod libiscsi;
pub mod libnfs;
pub mod library;
pub mod map;
pub mod memory;
pub mod names;
pub mod numa;
pub mod nvme;
pub mod peak_allocation;
pub mod pinned;
pub mod program_text;
pub mod scsi;
pub mod shared_words;
pub mod signals;
pub mod socket_pipe;
pub mod sockets;
pub mod splice;
pub mod system;
pub mod terminal;
pub mod thread;
pub mod timer;
pub mod tracefs;
pub mod uring;
pub mod zones;
