//! Machines that are not there: files of devices, and where a plan's files lie on them.

mod fields;
mod lookup;
mod machine_file;
mod place;
mod queues;

pub(crate) use lookup::is_device;
pub use machine_file::Machine;
pub(crate) use place::{Home, Placed, place};
