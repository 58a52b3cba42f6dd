//! Layers that stack over any block device, and the table that lists them.
//!
//! A layer is a device over another one: it passes commands down and completions up, and changes
//! what it is for. It works over models in virtual time and over real devices alike. To add one,
//! write its file here, with the device and a [`Layer`] that makes it, and add a row to
//! [`LAYERS`].

mod delay;
mod fault;
mod split;
mod zoned;

use std::fmt;
use std::sync::Arc;

use fathom_core::{BlockDevice, Tick, ZoneReport};

use crate::Parameters;

pub use delay::{Delay, DelayConfig, DelayTime};
pub use fault::{Faults, Faulty, Stall};
pub use split::{Part, split};
pub use zoned::{ZoneEvents, Zoned, ZonedConfig};

/// Configuration of a layer, which makes one over each device that it is given.
pub trait Layer: fmt::Debug + Send + Sync {
    /// Creates the layer over `device`, at the time `opened`, in which its own times begin.
    fn over(&self, device: Box<dyn BlockDevice>, opened: Tick) -> Box<dyn BlockDevice>;

    /// Returns the size of the layer over a device of `below` bytes.
    fn bytes(&self, below: u64) -> u64 {
        below
    }

    /// Returns the zones into which the layer divides the device, as they are before the first
    /// command; `None` if it divides it into none.
    fn zones(&self) -> Option<ZoneReport> {
        None
    }
}

/// Row of the table of layers.
#[derive(Clone, Copy, Debug)]
pub struct LayerInfo {
    /// Name in files.
    pub name: &'static str,
    /// Purpose, in one line.
    pub help: &'static str,
    /// Keys in files, those of inner tables left out.
    pub keys: &'static [&'static str],
    /// Constructor: reads the keys, for a layer over a device of this many bytes. `None` if they
    /// were refused.
    pub read: fn(&dyn Parameters, u64) -> Option<Arc<dyn Layer>>,
}

/// All layers.
pub const LAYERS: &[LayerInfo] = &[
    LayerInfo {
        name: "delay",
        help: "Adds a latency to each command, fixed or drawn, by direction",
        keys: &[
            "read_us", "write_us", "trim_us", "read", "write", "trim", "seed",
        ],
        read: delay::read,
    },
    LayerInfo {
        name: "fault",
        help: "Fails, shortens, delays or loses commands, at random or in a range of addresses",
        keys: fault::KEYS,
        read: fault::read,
    },
    LayerInfo {
        name: "split",
        help: "Shows a part of the device below as a device",
        keys: &["from_gib", "size_gib"],
        read: split::read,
    },
    LayerInfo {
        name: "zoned",
        help: "Divides the device below into zones that are written at their write pointers only",
        keys: zoned::KEYS,
        read: zoned::read,
    },
];

/// Reads the layers of a device, the lowest first, from each `[[…layer]]` of its table. `bytes` is
/// the size of the device before, and that of the topmost layer after.
pub fn read_layers(device: &dyn Parameters, bytes: &mut u64) -> Vec<NamedLayer> {
    let mut layers = Vec::new();
    for fields in device.tables("layer") {
        let Some(kind) = fields.text("kind") else {
            continue;
        };
        let Some(info) = layer(kind) else {
            let names: Vec<&str> = LAYERS.iter().map(|layer| layer.name).collect();
            let why = format!("unknown layer `{kind}`");
            fields.refuse("kind", &why, &format!("layers: {}", names.join(", ")));
            continue;
        };
        let layer = (info.read)(&*fields, *bytes);
        fields.finish();
        if let Some(layer) = layer {
            *bytes = layer.bytes(*bytes);
            layers.push((info.name, layer));
        }
    }
    layers
}

/// Layer with its name in files.
pub type NamedLayer = (&'static str, Arc<dyn Layer>);

/// Looks up a layer by its name.
#[must_use]
pub fn layer(name: &str) -> Option<&'static LayerInfo> {
    LAYERS.iter().find(|layer| layer.name == name)
}
