//! Many hosts as one run: their ranks start together, and their clocks are compared.
//!
//! Nothing here does I/O or reads a clock: messages and `now` go in, messages come out, and a
//! transport, such as MPI, carries them.
#![forbid(unsafe_code)]

mod offset;

// Public items, listed once.
pub use offset::{
    ALIGNMENTS_MAX, Alignment, DRIFT_MAX_PPM, Offset, PingPong, RemoteClock, WANDER_PPM,
};
