//! The files and devices that are measured: looked at before anything is opened for good.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_host::block_tree::BlockTree;
use fathom_host::safety::{Guard, Refusal};
use fathom_host::storage::storage_under;
use fathom_sys::files::{self, Access, Kind};

use super::PeakConfig;
use crate::error::Problem;

/// One target that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// Whole blocks in it, ≥ 1.
    pub(super) blocks: u64,
}

/// Looks at every target.
pub(super) fn look_at(config: &PeakConfig) -> Result<Vec<Target>, Problem> {
    let tree = BlockTree::default();
    let guard = Guard::new(tree.clone());
    let targets = config.targets.iter();
    targets
        .map(|path| {
            let judged = guard.check(path, config.write, false);
            judged.map_err(|refusal| refused(&refusal))?;
            look_at_one(path, config, &tree)
        })
        .collect()
}

fn look_at_one(path: &Path, config: &PeakConfig, tree: &BlockTree) -> Result<Target, Problem> {
    let name = path.display();
    let metadata = fs::metadata(path).map_err(|error| {
        Problem::new("target", format!("target: {name}: {error}"))
            .hint("name a file that is there, or a block device")
    })?;
    match Kind::of(&metadata) {
        Kind::Regular | Kind::Block => {}
        Kind::Directory => {
            let what = format!("target: {name}: is a directory");
            return Err(Problem::new("target", what)
                .hint("name a file in it; `fathom run` can make one with size="));
        }
        Kind::Character | Kind::Other => {
            let what = format!("target: {name}: neither a file nor a block device");
            return Err(Problem::new("target", what).hint("choose one that has offsets"));
        }
    }
    let opened = files::open(path, Access::default());
    let size = opened.and_then(|opened| files::size(&opened));
    let bytes = size.map_err(|error| Problem::new("target", format!("open: {name}: {error}")))?;
    let block = u64::from(config.block_bytes);
    if bytes < block {
        let what = format!("target: {name}: {bytes} B, smaller than a block of {block} B");
        return Err(Problem::new("target", what).hint("choose a larger file, or lower --block"));
    }
    let logical = storage_under(path, tree).logical_block_bytes.max(1);
    if !config.buffered && block % logical != 0 {
        let what = format!(
            "--block: {block} B is not a multiple of the {logical} B logical block of {name}"
        );
        return Err(Problem::new("block", what).hint(format!(
            "set --block {}, or add --buffered",
            block.next_multiple_of(logical)
        )));
    }
    Ok(Target {
        path: path.to_owned(),
        blocks: bytes / block,
    })
}

/// The smallest block that direct I/O to `path` takes, as far as can be found out; 512 at least.
#[must_use]
pub fn block_of(path: &Path) -> u32 {
    let bytes = storage_under(path, &BlockTree::default()).logical_block_bytes;
    u32::try_from(bytes).unwrap_or(LEAST_BLOCK).max(LEAST_BLOCK)
}

fn refused(refusal: &Refusal) -> Problem {
    let problem = Problem::new(refusal.code(), format!("target: {refusal}"));
    match refusal {
        // Jobs can be told to do it all the same; a measurement of a maximum cannot.
        Refusal::InUse { .. } => {
            problem.hint("choose a device or file that nothing uses, or leave out --write")
        }
        refusal => problem.hint(refusal.hint()),
    }
}

/// A sector, as block layers count.
const LEAST_BLOCK: u32 = 512;
