//! `mmap`: files mapped into memory; an op is a copy.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use fathom_core::{
    Direction, EngineError, EngineInfo, EngineOption, EngineStep, Errno, FileIndex, Op, OpKind,
    Slot,
};
use fathom_sys::files::{self, Advice, FileKind};
use fathom_sys::map::Map;
use fathom_sys::memory::Buffers;

use crate::error::no_memory;
use crate::files::Files;
use crate::options::U32;
use crate::serial::{Performer, Serial};
use crate::{AnyEngine, EngineConfig, EngineFile};

/// Facts about `mmap`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    bypasses_cache: false,
    maps_files: true,
    shares_buffers: true,
    options: &[THP],
    ..EngineInfo::new("mmap", "memory-mapped files")
};

/// Request for transparent huge pages.
pub const THP: EngineOption = EngineOption::int(
    "thp",
    0,
    U32,
    "Request transparent huge pages for the mapping (MADV_HUGEPAGE)",
    "thp=1",
);

/// `mmap`: the job's files, each mapped as a whole while it is open.
///
/// A mapping cannot bypass the page cache: with `direct`, each op is synced (`msync`) and its pages
/// are dropped instead, as in fio.
pub(crate) struct Mmap {
    buffers: Buffers,
    files: Files,
    writable: Vec<bool>,
    random: Vec<bool>,
    /// Size to which each file is extended before it is mapped, bytes; 0 if it is only read.
    bytes: Vec<u64>,
    /// `None` for a file that is closed or empty.
    maps: Vec<Option<Map>>,
    direct: bool,
    sync_writes: bool,
    huge_pages: bool,
}

impl Mmap {
    pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(|error| no_memory(config, &error))?;
        // A writable shared mapping needs a descriptor that is also readable.
        let mut readable = config.clone();
        for file in &mut readable.files {
            file.read = true;
        }
        let mmap = Self {
            buffers,
            files: Files::new(&readable),
            writable: config.files.iter().map(|file| file.write).collect(),
            random: config.files.iter().map(|file| file.random).collect(),
            bytes: config.files.iter().map(bytes).collect(),
            maps: config.files.iter().map(|_| None).collect(),
            direct: config.direct,
            sync_writes: config.syncs_writes(),
            huge_pages: config.options.flag(&THP),
        };
        Ok(Serial::start(config, mmap))
    }

    /// Extends a file to the size that the job needs, because a write to a mapping cannot, and
    /// returns its size.
    fn extend(&self, file: FileIndex, opened: &File) -> io::Result<u64> {
        let (size, needed) = (files::size(opened)?, self.bytes[file.index()]);
        if size >= needed || self.files.kind(file) != FileKind::Regular {
            return Ok(size);
        }
        opened.set_len(needed)?;
        Ok(needed)
    }

    fn map(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let Some(opened) = self.files.get(file) else {
            return Ok(());
        };
        let size = self.extend(file, opened);
        let size = size.map_err(|error| {
            self.files
                .error(EngineStep::Call("ftruncate"), file, &error, "".into())
        })?;
        let mapped = match size {
            0 => Ok(None),
            size => Map::new(opened.as_fd(), size, self.writable[file.index()]).map(Some),
        };
        match mapped {
            Ok(map) => {
                if let Some(map) = &map {
                    // posix_fadvise on the file does not affect page faults; madvise does.
                    let _advice = map.advise_order(self.random[file.index()]);
                    let refused = match self.huge_pages {
                        true => map.want_huge_pages(),
                        false => 0,
                    };
                    if refused < 0 {
                        let error = io::Error::from_raw_os_error(-refused);
                        let hint = "this kernel has no huge pages for files: leave out thp";
                        return Err(self.files.error(
                            EngineStep::Call("madvise"),
                            file,
                            &error,
                            hint.into(),
                        ));
                    }
                }
                self.maps[file.index()] = map;
                Ok(())
            }
            Err(error) => {
                let hint = "the file cannot be mapped: use another engine, such as psync";
                Err(self
                    .files
                    .error(EngineStep::Call("mmap"), file, &error, hint.into()))
            }
        }
    }
}

impl Performer for Mmap {
    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.open(file)?;
        let mapped = self.map(file);
        if mapped.is_err() {
            self.files.close(file)?;
        }
        mapped
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.maps[file.index()] = None;
        self.files.close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        if let Some(map) = &self.maps[file.index()] {
            // Unmap the pages first: the cache does not drop a mapped page.
            let _advice = map.drop_pages(0, map.length());
        }
        self.files.invalidate(file)
    }

    fn perform(&mut self, op: &Op) -> i32 {
        let Some(file) = self.files.descriptor(op.file) else {
            return Errno::EBADF.result();
        };
        let OpKind::Data(direction) = op.kind else {
            let map = &self.maps[op.file.index()];
            return map.as_ref().map_or(0, |map| map.sync(0, map.length()));
        };
        let write = match direction {
            Direction::Read => false,
            Direction::Write => true,
            Direction::Trim => {
                return self.files.perform_dataless(op);
            }
        };
        let Some(map) = &mut self.maps[op.file.index()] else {
            return if write { Errno::ENXIO.result() } else { 0 };
        };
        let part = self.buffers.part(op.slot, op.buffer_offset, op.length);
        let mut result = if write {
            if !self.writable[op.file.index()] {
                return Errno::EBADF.result();
            }
            map.write(file, op.offset, part)
        } else {
            map.read(file, op.offset, part)
        };
        if result > 0 && (self.direct || write && self.sync_writes) {
            let failed = map.sync(op.offset, op.length.into());
            result = if failed < 0 { failed } else { result };
        }
        if result > 0 && self.direct {
            // Best effort: a page that stays cached is not an error of the op.
            let _advice = map.drop_pages(op.offset, op.length.into());
            let _advice = files::advise(file, Advice::DontNeed, op.offset, op.length.into());
        }
        result
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    fn release(&mut self, slot: Slot) {
        self.buffers.release(slot);
    }
}

const fn bytes(file: &EngineFile) -> u64 {
    if file.write { file.bytes } else { 0 }
}
