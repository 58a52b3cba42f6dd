//! Table of the modelled devices, and how a file names one.
//!
//! To add a model, write its file, with the device, a [`Model`] that makes it and the reader of its
//! keys, and add a row to [`MODELS`].

use std::fmt;
use std::sync::Arc;

use fathom_block::Parameters;
use fathom_core::{BlockDevice, PerDirection};

use crate::{array, constant, distribution, hdd, ssd};

/// Configuration of a model, which makes any number of equal devices.
pub trait Model: fmt::Debug + Send + Sync {
    /// Creates the device with this number, 0 if there is only one. The numbers tell random draws
    /// apart: of the members of an array, and of the runs of an experiment.
    fn device(&self, number: u64) -> Box<dyn BlockDevice>;

    /// Returns which directions have latencies, if the model draws them: it can do nothing else.
    fn drawn(&self) -> Option<PerDirection<bool>> {
        None
    }

    /// Returns the number of erase blocks that the model keeps a map of; each takes memory.
    fn erase_blocks(&self) -> u64 {
        0
    }
}

/// Row of the table of models.
#[derive(Clone, Copy, Debug)]
pub struct ModelInfo {
    /// Name in files: of the model, and of the table with its keys.
    pub name: &'static str,
    /// Purpose, in one line.
    pub help: &'static str,
    /// It may be the member of an array.
    pub is_member: bool,
    /// Constructor: reads the keys, for a device of this many bytes. `None` if they were refused.
    pub read: fn(&dyn Parameters, u64) -> Option<Arc<dyn Model>>,
}

/// All models.
pub const MODELS: &[ModelInfo] = &[
    ModelInfo {
        name: "constant",
        help: "The same latency for every op, any number of them in parallel",
        is_member: true,
        read: constant::read,
    },
    ModelInfo {
        name: "distribution",
        help: "Latencies drawn: recorded on a real device, or exponential",
        is_member: true,
        read: distribution::read,
    },
    ModelInfo {
        name: "hdd",
        help: "Hard disk: arm, platter, command queue and write cache",
        is_member: true,
        read: hdd::read,
    },
    ModelInfo {
        name: "ssd",
        help: "Flash drive: channels, dies, write buffer and garbage collection",
        is_member: true,
        read: ssd::read,
    },
    ModelInfo {
        name: "array",
        help: "Several devices of one model, striped",
        is_member: false,
        read: array::read,
    },
];

/// Reads the model that `device` names by its key `model`, from the table of that name; returns it
/// with its name. `None` if something was refused.
pub fn read_model(
    device: &dyn Parameters,
    capacity: u64,
) -> Option<(&'static str, Arc<dyn Model>)> {
    read_one_of(|_| true, device, capacity)
}

/// Reads the model of an array's members.
pub(crate) fn read_member(array: &dyn Parameters, capacity: u64) -> Option<Arc<dyn Model>> {
    let member = read_one_of(|model| model.is_member, array, capacity);
    member.map(|(_, model)| model)
}

fn read_one_of(
    fits: fn(&ModelInfo) -> bool,
    device: &dyn Parameters,
    capacity: u64,
) -> Option<(&'static str, Arc<dyn Model>)> {
    let name = device.text("model")?;
    let named = MODELS.iter().find(|model| model.name == name);
    let Some(model) = named.filter(|model| fits(model)) else {
        let why = match named {
            Some(_) => format!("there is no `{name}` of this one"),
            None => format!("unknown model `{name}`"),
        };
        let names = MODELS.iter().filter(|model| fits(model));
        let names: Vec<&str> = names.map(|model| model.name).collect();
        device.refuse("model", &why, &format!("models: {}", names.join(", ")));
        return None;
    };
    refuse_others(device, model.name);
    let fields = device.table(model.name, false)?;
    let read = (model.read)(&*fields, capacity);
    if read.is_some() {
        fields.finish();
    }
    Some((model.name, read?))
}

/// Refuses tables of models that the device is not of.
fn refuse_others(device: &dyn Parameters, model: &str) {
    for other in MODELS.iter().map(|model| model.name) {
        if other != model && device.has(other) {
            let why = format!("there is a table of `{other}`, and the model is `{model}`");
            let hint = match model {
                "array" => format!("that of the members is `[device.array.{other}]`"),
                _ => format!("remove it, or write `model = \"{other}\"`"),
            };
            device.refuse(other, &why, &hint);
        }
    }
}
