//! Modelled machines: machine files, and the placement of a plan's files on their devices.

mod changes;
mod lookup;
mod machine_file;
mod place;
mod queues;

pub use changes::MachineChange;
pub(crate) use lookup::is_device;
pub use machine_file::MachineModel;
pub(crate) use place::{Home, Placed, place};
