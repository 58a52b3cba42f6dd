//! Devices of a target, and the table of their kinds.
//!
//! To add a kind, write its file here, with a [`Storage`] and the reader of its keys, and add a row
//! to [`DEVICES`].

mod file;
mod memory;
mod model;
mod null;
mod part;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use fathom_block::{NamedLayer, Parameters, Rouse, read_layers};
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_toml::Fields;

use crate::error::DeviceError;
use crate::host::Host;
use crate::sizes::{read_size, show_size};

pub use file::{FileDevice, FileWishes};
pub use memory::MemoryDevice;
pub use null::NullDevice;

/// Base of a device, which each thread of the target opens: a file, memory, a part of another one.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Returns size and limits of the device that each thread opens.
    fn geometry(&self) -> Geometry;

    /// Acquires what the storage holds as long as the target runs: creates and claims files. Called
    /// before any [`open`](Self::open), once for each user of the storage.
    ///
    /// # Errors
    /// The system call that failed.
    fn prepare(&self, _threads: &Threads) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Opens the device for the calling thread, which has this number.
    ///
    /// # Errors
    /// The system call that failed.
    fn open(&self, thread: u32, now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError>;

    /// Returns the memory that data may take, in bytes.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// Returns the part of another device that this one is.
    fn part(&self) -> Option<PartOf> {
        None
    }

    /// Returns a description for people: `null`, or the path of a file.
    fn describe(&self) -> String;
}

/// Threads of the target, as devices see them.
#[derive(Clone)]
pub struct Threads {
    /// Their number.
    pub count: u32,
    /// Wakes one: its devices are asked for completions.
    pub rouse: Rouse,
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({})", self.count)
    }
}

/// Part of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOf {
    /// Name of the device.
    pub of: String,
    /// Bytes of it.
    pub range: Range<u64>,
}

/// Device of a target: storage with its layers.
#[derive(Clone, Debug)]
pub struct Device {
    storage: Arc<dyn Storage>,
    /// The lowest first.
    layers: Vec<NamedLayer>,
    bytes: u64,
    is_protected: bool,
}

impl Device {
    /// Creates a device without layers.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self {
            bytes: storage.geometry().bytes,
            storage,
            layers: Vec::new(),
            is_protected: false,
        }
    }

    /// Refuses what changes data from now on.
    pub const fn protect(&mut self) {
        self.is_protected = true;
    }

    /// Returns size and limits, those of the topmost layer.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let geometry = self.storage.geometry();
        Geometry {
            bytes: self.bytes,
            read_only: self.is_protected || geometry.read_only,
            ..geometry
        }
    }

    /// As [`Storage::prepare`].
    ///
    /// # Errors
    /// The system call that failed.
    pub fn prepare(&self, threads: &Threads) -> Result<(), DeviceError> {
        self.storage.prepare(threads)
    }

    /// As [`Storage::open`], with the layers; their own times begin at `now`.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn open(&self, thread: u32, now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        let lowest = self.storage.open(thread, now)?;
        let layers = self.layers.iter();
        Ok(layers.fold(lowest, |below, (_, layer)| layer.over(below, now)))
    }

    /// As [`Storage::memory_bytes`].
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.storage.memory_bytes()
    }

    /// As [`Storage::part`].
    #[must_use]
    pub(crate) fn part(&self) -> Option<PartOf> {
        self.storage.part()
    }

    /// Returns a description for people: `8 GiB null + delay`.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("{} {}", show_size(self.bytes), self.storage.describe());
        for (name, _) in &self.layers {
            text.push_str(" + ");
            text.push_str(name);
        }
        text
    }
}

/// Row of the table of devices.
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// Name in files.
    pub name: &'static str,
    /// Purpose, in one line.
    pub help: &'static str,
    /// Keys in files, beside `name`, `kind` and `layer`.
    pub keys: &'static [&'static str],
    /// Constructor: reads the keys. `None` if they were refused.
    pub(crate) read: fn(&Fields<'_>, &Surroundings<'_>) -> Option<Arc<dyn Storage>>,
}

/// Context in which a device is read.
pub(crate) struct Surroundings<'a> {
    pub(crate) host: &'a dyn Host,
    /// Devices above in the file, by name; `Some(None)` for one that was refused.
    pub(crate) device: &'a dyn Fn(&str) -> Option<Option<Device>>,
    /// Largest transfer: the size of a buffer.
    pub(crate) transfer_bytes_max: u32,
}

/// All kinds of devices.
pub const DEVICES: &[DeviceInfo] = &[
    DeviceInfo {
        name: "null",
        help: "No data: reads return zeros, writes are discarded",
        keys: &["size", "block_size"],
        read: null::read,
    },
    DeviceInfo {
        name: "memory",
        help: "Data in memory, sparse, gone with the target",
        keys: &["size", "block_size"],
        read: memory::read,
    },
    DeviceInfo {
        name: "file",
        help: "A file or block device, through io_uring",
        keys: &["path", "size", "block_size", "read_only", "direct", "depth"],
        read: file::read,
    },
    DeviceInfo {
        name: "split",
        help: "A part of a device above in the file",
        keys: &["of", "from", "size"],
        read: part::read,
    },
    DeviceInfo {
        name: "model",
        help: "A disk model in real time, without data: reads return zeros",
        keys: &["size", "block_size", "model", "a table of the model's name"],
        read: model::read,
    },
];

/// Reads one `[[device]]`, its name left out.
pub(crate) fn read(fields: &Fields<'_>, around: &Surroundings<'_>) -> Option<Device> {
    let (kind, span) = fields.text("kind", false)?;
    let Some(info) = DEVICES.iter().find(|info| info.name == kind) else {
        let names: Vec<&str> = DEVICES.iter().map(|info| info.name).collect();
        let why = format!("unknown device kind `{kind}`");
        fields.refuse_at(&span, why, format!("devices: {}", names.join(", ")));
        return None;
    };
    let storage = (info.read)(fields, around);
    // The layers are read in any case, so that all their problems are found.
    let mut bytes = storage
        .as_ref()
        .map_or(u64::MAX, |storage| storage.geometry().bytes);
    let parameters: &dyn Parameters = fields;
    let layers = read_layers(parameters, &mut bytes);
    if layers.iter().any(|(_, layer)| layer.zones().is_some()) {
        let why = "a target has no commands for zones: hosts could not write them";
        parameters.refuse("layer", why, "remove the layer `zoned`");
    }
    fields.finish();
    Some(Device {
        storage: storage?,
        layers,
        bytes,
        is_protected: false,
    })
}

/// Reads the size of a device without storage that has one, and its block size.
fn size_and_block(fields: &Fields<'_>) -> Option<(u64, u32)> {
    let block = block_size(fields, Some(BLOCK_BYTES));
    // Read in any case, so that the key is known.
    let size = fields.parsed("size", false, SIZE, read_size);
    let (block, size) = (block?, size?);
    whole_blocks(fields, size, block).then_some((size, block))
}

/// Reads the block size.
fn block_size(fields: &Fields<'_>, default: Option<u32>) -> Option<u32> {
    let read = |text: &str| {
        let bytes = u32::try_from(read_size(text)?).ok()?;
        BLOCK_SIZES.contains(&bytes).then_some(bytes)
    };
    if !fields.has("block_size") {
        // Asked for, so that the key is known.
        let _absent = fields.parsed("block_size", true, "", read);
        return default;
    }
    fields.parsed("block_size", true, "512, 1k, 2k or 4k", read)
}

/// Checks the size of a device.
///
/// # Errors
/// The reason why none has it.
pub const fn check_size(bytes: u64) -> Result<(), &'static str> {
    match bytes {
        0 => Err("the size must be above 0"),
        SIZE_OVER.. => Err("no device is larger than 8 EiB"),
        _ => Ok(()),
    }
}

/// Returns whether a size is a whole number of blocks, and not zero; notes the problem otherwise.
fn whole_blocks(fields: &Fields<'_>, size: u64, block: u32) -> bool {
    if let Err(why) = check_size(size) {
        fields.refuse("size", why, "write a size such as \"8G\"");
        return false;
    }
    let is_whole = size.is_multiple_of(u64::from(block));
    if !is_whole {
        let why = format!("{size} B is not a whole number of blocks of {block} B");
        fields.refuse("size", why, "round it, or lower `block_size`");
    }
    is_whole
}

const SIZE: &str = "a size such as \"8G\"";
/// Block size of devices that have none of their own.
const BLOCK_BYTES: u32 = 512;
const BLOCK_SIZES: [u32; 4] = [512, 1024, 2048, 4096];
/// Offsets of the kernel are signed.
const SIZE_OVER: u64 = 1 << 63;
