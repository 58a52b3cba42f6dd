//! Checks of the measured files and devices before any engine opens them.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_engine::{EngineConfig, EngineFile, built_in};
use fathom_host::block_tree::BlockTree;
use fathom_host::safety::Guard;
use fathom_host::storage::storage_under;
use fathom_sys::clock::Clock;
use fathom_sys::files::{self, Access, FileKind};
use fathom_sys::nvme;

use crate::limits::explain;
use crate::{PeakConfig, PeakEngine, PeakError};

/// A checked target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckedTarget {
    pub(crate) path: PathBuf,
    /// Number of whole blocks, ≥ 1.
    pub(crate) blocks: u64,
}

/// Checks every target.
pub(crate) fn check(config: &PeakConfig) -> Result<Vec<CheckedTarget>, PeakError> {
    let tree = BlockTree::default();
    let guard = Guard::new(tree.clone());
    let targets = config.targets.iter();
    targets
        .map(|path| {
            if config.engine == PeakEngine::Passthrough {
                return check_namespace(path, config, &guard);
            }
            let judged = guard.check(path, config.write, false);
            judged.map_err(PeakError::Refused)?;
            check_one(path, config, &tree)
        })
        .collect()
}

/// Checks the character device of a namespace.
fn check_namespace(
    path: &Path,
    config: &PeakConfig,
    guard: &Guard,
) -> Result<CheckedTarget, PeakError> {
    let judged = guard.check_passthrough(path, config.write, false);
    judged.map_err(PeakError::Refused)?;
    let (bytes, block_bytes) = namespace_size(path, config)?;
    let block = u64::from(config.block_bytes);
    if block % block_bytes != 0 {
        return Err(PeakError::Config {
            message: format!(
                "--block: {block} B is not a multiple of the {block_bytes} B block of {}",
                path.display()
            ),
            hint: format!("set --block {}", block.next_multiple_of(block_bytes)),
        });
    }
    if bytes < block {
        return Err(PeakError::Unsuitable {
            path: path.to_path_buf(),
            why: format!("{bytes} B, smaller than a block of {block} B"),
            hint: "choose a larger namespace, or lower --block",
        });
    }
    Ok(CheckedTarget {
        path: path.to_owned(),
        blocks: bytes / block,
    })
}

/// Returns the size of a namespace and of its blocks, in bytes.
fn namespace_size(path: &Path, config: &PeakConfig) -> Result<(u64, u64), PeakError> {
    let engine = built_in(config.engine.name());
    let file = EngineFile {
        path: path.to_string_lossy().into_owned(),
        read: true,
        ..EngineFile::default()
    };
    let own = EngineConfig {
        files: vec![file],
        ..EngineConfig::new(engine, Clock::stopped())
    };
    let look_up = engine.remote_file.ok_or_else(|| PeakError::Config {
        message: format!("engine `{}` has no devices", own.name()),
        hint: String::new(),
    })?;
    let found = look_up(&own).map_err(|error| explain(error, config))?;
    Ok((found.bytes, found.block_bytes.into()))
}

fn check_one(
    path: &Path,
    config: &PeakConfig,
    tree: &BlockTree,
) -> Result<CheckedTarget, PeakError> {
    let path_buf = || path.to_path_buf();
    let unsuitable = |why: &str, hint| {
        Err(PeakError::Unsuitable {
            path: path_buf(),
            why: why.to_owned(),
            hint,
        })
    };
    let metadata = fs::metadata(path).map_err(|source| PeakError::Missing {
        path: path_buf(),
        source,
    })?;
    match FileKind::of(&metadata) {
        FileKind::Regular | FileKind::Block => {}
        FileKind::Directory => {
            let hint = "name a file in it; `fathom run` can make one with size=";
            return unsuitable("is a directory", hint);
        }
        FileKind::Character | FileKind::Other => {
            let why = "neither a file nor a block device";
            return unsuitable(why, "choose one that has offsets");
        }
    }
    let opened = files::open(path, Access::default());
    let size = opened.and_then(|opened| files::size(&opened));
    let bytes = size.map_err(|source| PeakError::Open {
        path: path_buf(),
        source,
    })?;
    let block = u64::from(config.block_bytes);
    if bytes < block {
        let why = format!("{bytes} B, smaller than a block of {block} B");
        let hint = match bytes {
            0 if metadata.is_file() => "write the file first, or choose another",
            0 => "give the device a size first, as in `zramctl --size 1G /dev/zram0`",
            _ => "choose a larger file, or lower --block",
        };
        return unsuitable(&why, hint);
    }
    let logical = storage_under(path, tree).logical_block_bytes.max(1);
    if !config.buffered && block % logical != 0 {
        return Err(PeakError::Config {
            message: format!(
                "--block: {block} B is not a multiple of the {logical} B logical block of {}",
                path.display()
            ),
            hint: format!(
                "set --block {}, or add --buffered",
                block.next_multiple_of(logical)
            ),
        });
    }
    Ok(CheckedTarget {
        path: path.to_owned(),
        blocks: bytes / block,
    })
}

/// Returns the smallest block size for direct I/O to `path`, if known, and at least 512.
#[must_use]
pub fn block_of(path: &Path) -> u32 {
    let block = fs::metadata(path)
        .ok()
        .and_then(|node| nvme::block_device_of(&node));
    let path = block.map_or_else(|| path.to_owned(), |block| Path::new("/dev").join(block));
    let bytes = storage_under(&path, &BlockTree::default()).logical_block_bytes;
    u32::try_from(bytes)
        .unwrap_or(BLOCK_BYTES_MIN)
        .max(BLOCK_BYTES_MIN)
}

/// The block layer's sector.
const BLOCK_BYTES_MIN: u32 = 512;
