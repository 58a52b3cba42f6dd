//! Experiments: published measurements, repeated on this machine and set beside the published
//! figures.
#![forbid(unsafe_code)]

mod aio_submit;
mod log_entries;
mod micro;
mod plot;
mod table;
mod throttle;
mod uring_irq;

// Public items, listed once.
pub use aio_submit::{AioSubmit, aio_submit};
pub use log_entries::{LogEntries, log_entries};
pub use micro::{Micro, micro_experiments, tags, task_list, task_list_table};
pub use plot::{Panel, Series, svg};
pub use table::{Cell, Experiment, Table, experiments};
pub use uring_irq::{UringIrq, uring_irq};
