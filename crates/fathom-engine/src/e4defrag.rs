//! `e4defrag`: a write exchanges the blocks of a file with those of a donor file, on ext4.
//!
//! ```text
//!  file   ── data ──► blocks A        file   ── data ──► blocks B
//!  donor  ──────────► blocks B   ─►   donor  ──────────► blocks A
//! ```
//!
//! With `inplace=0` the donor is as long as the largest file from the start; with `inplace=1` each
//! op allocates its range of the donor and frees it again.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use fathom_core::{
    Direction, EngineError, EngineInfo, EngineOption, EngineStep, Errno, Op, OpKind, OptionEffect,
    Work,
};
use fathom_sys::extents::{self, RangeChange};
use fathom_sys::file_io;
use fathom_sys::files::{self, Allocation, NOFOLLOW};

use crate::files::Files;
use crate::serial::{Performer, Serial, whole};
use crate::{AnyEngine, EngineConfig};

/// Facts about `e4defrag`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    work: Work::Allocation,
    directions: &[Direction::Write],
    always_writes: true,
    bypasses_cache: false,
    options: &[DONORNAME, INPLACE],
    ..EngineInfo::new(
        "e4defrag",
        "EXT4_IOC_MOVE_EXT: a write exchanges a file's blocks with a donor's",
    )
};

/// File that gives its blocks.
pub const DONORNAME: EngineOption = EngineOption::text(
    "donorname",
    "Donor of blocks: a file of the same file system, created if missing; its data are lost",
    "donorname=file.def",
)
.effect(OptionEffect::WrittenFile);

/// Allocation of the donor's blocks.
pub const INPLACE: EngineOption = EngineOption::int(
    "inplace",
    0,
    1,
    "Allocate and free the donor's blocks in each op",
    "inplace=1",
)
.default("0");

/// Performer of `e4defrag`.
struct E4defrag {
    files: Files,
    donor: File,
    /// Block of the file system, bytes.
    block: u64,
    inplace: bool,
}

pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    // The ioctl takes a file that is open for reading, too.
    let mut readable = config.clone();
    for file in &mut readable.files {
        file.read = true;
    }
    let inplace = config.options.flag(&INPLACE);
    let bytes = config.files.iter().map(|file| file.bytes).max();
    let allocated = bytes.filter(|_| !inplace).unwrap_or(0);
    let (donor, block) = open_donor(config, allocated)?;
    let performer = E4defrag {
        files: Files::new(&readable),
        donor,
        block,
        inplace,
    };
    Ok(Serial::start(config, performer))
}

impl E4defrag {
    /// Exchanges the blocks of an op's range and returns its result.
    fn exchange(&self, op: &Op) -> i32 {
        let file = self.files.descriptor(op.file);
        let donor = Some(self.donor.as_fd());
        if self.inplace {
            let allocated = extents::change_range(donor, RangeChange::Extend, op.offset, op.length);
            if allocated < 0 {
                return allocated;
            }
        }
        let first = op.offset / self.block;
        let end = (op.offset + u64::from(op.length)).div_ceil(self.block);
        let moved = extents::exchange_blocks(file, &self.donor, first, end - first);
        let freed = if self.inplace {
            extents::truncate(donor, 0)
        } else {
            0
        };
        match moved {
            Ok(blocks) if freed == 0 => self.result(op, first, blocks),
            Ok(_moved) => freed,
            Err(failed) => failed,
        }
    }

    /// Returns the bytes of an op in the blocks exchanged.
    fn result(&self, op: &Op, first: u64, blocks: u64) -> i32 {
        let end = (first + blocks) * self.block;
        let bytes = end.saturating_sub(op.offset).min(op.length.into());
        u32::try_from(bytes).map_or(0, |length| whole(&Op { length, ..*op }))
    }
}

impl Performer for E4defrag {
    fn files(&mut self) -> Option<&mut Files> {
        Some(&mut self.files)
    }

    fn perform(&mut self, op: &Op) -> i32 {
        match op.kind {
            OpKind::Data(Direction::Write) => self.exchange(op),
            OpKind::Data(Direction::Read | Direction::Trim) => Errno::EINVAL.result(),
            OpKind::Sync(_) => {
                let file = self.files.descriptor(op.file);
                file_io::perform_dataless(file, self.files.kind(op.file), op)
            }
        }
    }
}

/// Opens the donor, allocates its first `bytes`, and returns it with the file system's block size.
fn open_donor(config: &EngineConfig, bytes: u64) -> Result<(File, u64), EngineError> {
    let Some(path) = config.options.text(&DONORNAME) else {
        return Err(EngineError {
            step: EngineStep::Option(DONORNAME.name),
            target: format!("engine `{}` needs a donor file", INFO.name),
            errno: None,
            hint: "name a file of the same file system: `donorname=file.def`".into(),
        });
    };
    let failed = |step, error: &io::Error, hint: &str| EngineError {
        step: EngineStep::Call(step),
        target: path.into(),
        errno: Errno::of(error),
        hint: hint.into(),
    };
    let donor = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .mode(0o600)
        .custom_flags(NOFOLLOW)
        .open(path)
        .map_err(|error| failed("open", &error, "name a regular file, not a link"))?;
    let found = donor.metadata();
    let found = found.map_err(|error| failed("fstat", &error, ""))?;
    if !found.is_file() {
        let error = io::Error::from(Errno::EINVAL);
        return Err(failed("open", &error, "name a regular file"));
    }
    if bytes > 0 {
        let allocated = files::allocate(&donor, Allocation::Native, 0, bytes);
        let hint = "use a file system with extents, as ext4";
        allocated.map_err(|error| failed("fallocate", &error, hint))?;
    }
    Ok((donor, found.blksize().max(1)))
}
