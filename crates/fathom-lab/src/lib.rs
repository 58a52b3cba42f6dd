//! Experiments: published measurements, repeated on this machine and set beside the published
//! figures.
#![forbid(unsafe_code)]

mod log_entries;
mod micro;
mod plot;
mod table;
mod uring_irq;

// Public items, listed once.
pub use log_entries::{LogEntries, log_entries};
pub use micro::{Micro, micro_experiments, tags, task_list};
pub use plot::{Panel, Series, svg};
pub use table::{Cell, Experiment, Table, experiments};
pub use uring_irq::{UringIrq, uring_irq};
