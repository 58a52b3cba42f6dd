//! File or block device.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_engine::{EngineConfig, EngineDevice, EngineFile, built_in};
use fathom_host::target_kind::TargetKind;
use fathom_sys::clock::Clock;
use fathom_sys::files::{self, Access};
use fathom_toml::Fields;

use super::{BLOCK_BYTES, SIZE, Storage, Surroundings, Threads, block_size};
use crate::error::DeviceError;
use crate::host::{Host, Obstacle};
use crate::sizes::read_size;

/// Device on a file or a block device, through an `io_uring` of each thread.
#[derive(Debug)]
pub struct FileDevice {
    path: PathBuf,
    bytes: u64,
    block_bytes: u32,
    read_only: bool,
    direct: bool,
    depth: u32,
    transfer_bytes_max: u32,
    /// The file is missing and will be created.
    creates: bool,
    is_block_device: bool,
    /// Keeps other processes out.
    claim: Mutex<Option<File>>,
}

/// Wishes for the device of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileWishes {
    /// Size of the file, which is created if it is missing; `None`: it must exist.
    pub size: Option<u64>,
    /// Logical block; `None`: that of the block device, or 512 bytes.
    pub block_bytes: Option<u32>,
    /// Refuse writes.
    pub read_only: bool,
    /// Bypass the page cache; `None`: for block devices.
    pub direct: Option<bool>,
    /// Commands in flight per thread, each with a buffer of the largest transfer.
    pub depth: u32,
    /// Largest transfer.
    pub transfer_bytes_max: u32,
}

impl FileWishes {
    /// Creates wishes for a file that exists, with defaults for all else.
    #[must_use]
    pub const fn new(transfer_bytes_max: u32) -> Self {
        Self {
            size: None,
            block_bytes: None,
            read_only: false,
            direct: None,
            depth: DEPTH,
            transfer_bytes_max,
        }
    }
}

impl FileDevice {
    /// Judges a file or block device. It is opened, and created if it is missing, when the target
    /// starts.
    ///
    /// # Errors
    /// The obstacle.
    pub fn new(path: &Path, wishes: FileWishes, host: &dyn Host) -> Result<Self, Obstacle> {
        let obstacle = |why: String, hint: &str| Obstacle {
            why: format!("{}: {why}", path.display()),
            hint: hint.to_owned(),
        };
        let kind = host.file(path)?;
        let (bytes, logical) = match (kind, wishes.size) {
            (TargetKind::Missing, Some(size)) if !wishes.read_only => (size, BLOCK_BYTES),
            (TargetKind::Missing, _) => {
                return Err(obstacle("no such file".into(), "give a size to create it"));
            }
            (TargetKind::Regular(bytes), None) => (bytes, BLOCK_BYTES),
            (TargetKind::Regular(bytes), Some(size)) if size == bytes => (bytes, BLOCK_BYTES),
            (TargetKind::Regular(bytes), Some(size)) => {
                let why = format!("it has {bytes} B, not {size} B");
                return Err(obstacle(why, "leave the size out: the file has one"));
            }
            (
                TargetKind::Block {
                    bytes,
                    logical_block,
                },
                None,
            ) => (bytes, logical_block),
            (TargetKind::Block { .. }, Some(_)) => {
                let hint = "leave the size out: a device of kind `split` shows a part";
                return Err(obstacle("the size of a block device is fixed".into(), hint));
            }
            (TargetKind::Stream | TargetKind::Directory, _) => {
                let why = "neither a file nor a block device";
                return Err(obstacle(why.into(), "choose one that has offsets"));
            }
        };
        let is_block_device = matches!(kind, TargetKind::Block { .. });
        let block_bytes = wishes.block_bytes.unwrap_or(logical);
        if block_bytes < logical {
            let why = format!("its blocks have {logical} B, not {block_bytes} B");
            return Err(obstacle(why, "raise `block_size`, or leave it out"));
        }
        let bytes = bytes - bytes % u64::from(block_bytes);
        if bytes == 0 {
            let why = format!("it is smaller than a block of {block_bytes} B");
            return Err(obstacle(why, "choose a larger file"));
        }
        Ok(Self {
            path: path.to_owned(),
            bytes,
            block_bytes,
            read_only: wishes.read_only,
            direct: wishes.direct.unwrap_or(is_block_device),
            depth: wishes.depth,
            transfer_bytes_max: wishes.transfer_bytes_max,
            creates: kind == TargetKind::Missing,
            is_block_device,
            claim: Mutex::new(None),
        })
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(std::io::Error) -> DeviceError {
        let path = self.path.clone();
        move |source| DeviceError::File { what, path, source }
    }

    /// Opens the file so that no other target or file system can claim it.
    fn claimed(&self) -> Result<File, DeviceError> {
        let access = Access {
            read_write: !self.read_only,
            create: self.creates,
            exclusive: self.creates || self.is_block_device,
            ..Access::default()
        };
        let in_use = || DeviceError::Claimed {
            path: self.path.clone(),
        };
        let file = match files::open(&self.path, access) {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                return Err(in_use());
            }
            opened => opened.map_err(self.failed(if self.creates { "create" } else { "open" }))?,
        };
        if self.creates
            && let Err(error) = file.set_len(self.bytes)
        {
            // An empty one would be in the way of the next attempt.
            let _left = fs::remove_file(&self.path);
            return Err(self.failed("extend")(error));
        }
        if !self.is_block_device {
            // A lock that other targets respect: nothing keeps a file from being opened twice.
            file.try_lock().map_err(|_locked| in_use())?;
        }
        Ok(file)
    }
}

impl Storage for FileDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes,
            block_bytes: self.block_bytes,
            transfer_bytes_max: self.transfer_bytes_max,
            in_flight_max: self.depth,
            read_only: self.read_only,
            moves_data: true,
        }
    }

    fn prepare(&self, _threads: &Threads) -> Result<(), DeviceError> {
        let mut claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner);
        if claim.is_none() {
            *claim = Some(self.claimed()?);
        }
        Ok(())
    }

    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        let config = EngineConfig {
            depth: self.depth,
            buffer_bytes: self.transfer_bytes_max,
            files: vec![EngineFile {
                path: self.path.to_string_lossy().into_owned(),
                read: true,
                write: !self.read_only,
                bytes: self.bytes,
                random: true,
                ..EngineFile::default()
            }],
            direct: self.direct,
            ..EngineConfig::new(built_in("io_uring"), Clock::monotonic())
        };
        let opened = EngineDevice::open(config, self.bytes, self.block_bytes);
        Ok(Box::new(opened.map_err(DeviceError::Engine)?))
    }

    fn describe(&self) -> String {
        self.path.display().to_string()
    }
}

pub(super) fn read(fields: &Fields<'_>, around: &Surroundings<'_>) -> Option<Arc<dyn Storage>> {
    let path = fields.text("path", false);
    let wishes = FileWishes {
        size: fields.parsed("size", true, SIZE, read_size),
        block_bytes: block_size(fields, None),
        read_only: fields.flag("read_only", false),
        direct: fields.has("direct").then(|| fields.flag("direct", true)),
        depth: fields.count("depth", 1..=DEPTH_MAX, Some(DEPTH)),
        transfer_bytes_max: around.transfer_bytes_max,
    };
    let (path, span) = path?;
    if let (Some(size), block) = (wishes.size, wishes.block_bytes.unwrap_or(BLOCK_BYTES))
        && !super::whole_blocks(fields, size, block)
    {
        return None;
    }
    match FileDevice::new(Path::new(path), wishes, around.host) {
        Ok(device) => Some(Arc::new(device)),
        Err(Obstacle { why, hint }) => {
            fields.refuse_at(&span, why, hint);
            None
        }
    }
}

/// Commands in flight per thread: each takes a buffer of the largest transfer.
const DEPTH: u32 = 128;
const DEPTH_MAX: u32 = 1024;
