//! Files of an engine, by index: open, close, invalidate.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use fathom_core::{
    Completion, Direction, EngineError, EngineStep, Errno, FileIndex, Op, OpKind, Zone, ZoneAction,
    without_zones,
};
use fathom_sys::file_io::{self, Descriptor};
use fathom_sys::files::{self, Access, Advice, AtomicWriteUnits, FileKind};
use fathom_sys::zones;

use crate::{EngineConfig, EngineFile, FileAdvice, FileCheck};

/// Files of a job, open or closed.
#[derive(Debug)]
pub(crate) struct Files {
    list: Vec<EngineFile>,
    /// Four bytes each: the lookup per op touches few cache lines.
    open: Vec<Option<File>>,
    kinds: Vec<FileKind>,
    /// Files that were opened before.
    used: Vec<bool>,
    direct: bool,
    sync: u8,
    advice: FileAdvice,
    keep_access_time: bool,
    write_hint: u8,
    atomic_write_bytes: u32,
    /// Check of each opened file by the engine.
    check: Option<FileCheck>,
}

impl Files {
    pub(crate) fn new(config: &EngineConfig) -> Self {
        Self {
            list: config.files.clone(),
            open: config.files.iter().map(|_| None).collect(),
            kinds: vec![FileKind::Other; config.files.len()],
            used: vec![false; config.files.len()],
            direct: config.direct,
            sync: config.sync_flag,
            advice: config.advice,
            keep_access_time: config.keep_access_time,
            write_hint: config.write_hint,
            atomic_write_bytes: config.atomic_write_bytes,
            check: (config.engine.file_check)(config),
        }
    }

    pub(crate) fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let asked = &self.list[file.index()];
        assert!(self.open[file.index()].is_none(), "{} is open", asked.path);
        if asked.recreate
            && self.used[file.index()]
            && self.kinds[file.index()] == FileKind::Regular
        {
            match std::fs::remove_file(&asked.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let hint = "leave `unlink_each_loop` out".into();
                    return Err(self.error(EngineStep::Call("unlink"), file, &error, hint));
                }
                Ok(()) | Err(_) => {}
            }
        }
        self.used[file.index()] = true;
        let access = Access {
            write_only: asked.write && !asked.read,
            read_write: asked.write && asked.read,
            create: asked.create && may_create(Path::new(&asked.path)),
            direct: self.direct,
            sync: self.sync,
            keep_access_time: self.keep_access_time || is_device(Path::new(&asked.path)),
            ..Access::default()
        };
        let opened = files::open(Path::new(&asked.path), access)
            .and_then(|opened| Ok((FileKind::of(&opened.metadata()?), opened)));
        match opened {
            Ok((kind, opened)) => {
                if matches!(kind, FileKind::Regular | FileKind::Block) {
                    // Best effort: not every file system takes advice.
                    let _advice = self
                        .advice_for(asked.random)
                        .map(|advice| files::advise(&opened, advice, 0, 0));
                    if asked.write && self.write_hint > 0 {
                        let hinted = files::set_write_hint(&opened, self.write_hint);
                        hinted.map_err(|error| {
                            let hint = "leave `write_hint` out".into();
                            self.error(EngineStep::Call("fcntl F_SET_RW_HINT"), file, &error, hint)
                        })?;
                    }
                }
                if let Some(refusal) = self.check.and_then(|check| check(&opened)) {
                    let error = io::Error::from(refusal.errno);
                    return Err(self.error(refusal.step, file, &error, refusal.hint.into()));
                }
                if asked.write && self.atomic_write_bytes > 0 {
                    self.check_atomic_writes(&opened, file)?;
                }
                self.kinds[file.index()] = kind;
                self.open[file.index()] = Some(opened);
                Ok(())
            }
            Err(error) => {
                let hint = open_hint(&error, asked, self.direct);
                Err(self.error(EngineStep::Open, file, &error, hint))
            }
        }
    }

    /// Refuses a file that does not store the job's writes whole or not at all.
    fn check_atomic_writes(&self, opened: &File, file: FileIndex) -> Result<(), EngineError> {
        let step = EngineStep::Option("atomic");
        let units = AtomicWriteUnits::of(opened)
            .map_err(|error| self.error(step, file, &error, String::new()))?;
        let hint = match units {
            Some(units) if units.allow(self.atomic_write_bytes.into()) => return Ok(()),
            Some(units) => format!(
                "choose a `bs` that is a power of two from {} to {}",
                units.min, units.max
            ),
            None => "remove `atomic`: the file's storage has no atomic writes".into(),
        };
        Err(self.error(step, file, &Errno::EOPNOTSUPP.into(), hint))
    }

    const fn advice_for(&self, random: bool) -> Option<Advice> {
        Some(match (self.advice, random) {
            (FileAdvice::None, _) => return None,
            (FileAdvice::Random, _) | (FileAdvice::ByOrder, true) => Advice::Random,
            (FileAdvice::Sequential, _) | (FileAdvice::ByOrder, false) => Advice::Sequential,
            (FileAdvice::NoReuse, _) => Advice::NoReuse,
        })
    }

    pub(crate) fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        match self.open[file.index()].take() {
            Some(_closed_by_dropping) => Ok(()),
            None => Err(self.not_open("close", file)),
        }
    }

    /// Drops the file's clean pages from the page cache.
    pub(crate) fn invalidate(&self, file: FileIndex) -> Result<(), EngineError> {
        let Some(opened) = &self.open[file.index()] else {
            return Err(self.not_open("invalidate", file));
        };
        let (call, done) = match self.kinds[file.index()] {
            FileKind::Regular => (
                "posix_fadvise",
                files::advise(opened, Advice::DontNeed, 0, 0),
            ),
            FileKind::Block => ("ioctl BLKFLSBUF", files::flush_block_device(opened)),
            FileKind::Character | FileKind::Directory | FileKind::Other => return Ok(()),
        };
        done.map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "only root may flush a block device's cache: run as root, or set invalidate=0"
                }
                _ => "",
            };
            self.error(EngineStep::Call(call), file, &error, hint.into())
        })
    }

    /// Changes the state of a zone, as [`Engine::manage_zone`](fathom_core::Engine::manage_zone).
    pub(crate) fn manage_zone(
        &self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        let Some(opened) = &self.open[file.index()] else {
            return Err(self.not_open(action.name(), file));
        };
        let call = match action {
            ZoneAction::Reset => "ioctl BLKRESETZONE",
            ZoneAction::Finish => "ioctl BLKFINISHZONE",
            // The block layer has no random write areas.
            ZoneAction::OpenWithArea => return Err(without_zones(action.name())),
            ZoneAction::Commit => return Ok(()),
        };
        let done = zones::manage_zone(opened, action, zone.start, zone.length);
        done.map_err(|error| self.error(EngineStep::Call(call), file, &error, String::new()))
    }

    /// Performs a trim or a sync of an open file, which most queues cannot take, and returns its
    /// result.
    ///
    /// # Panics
    /// If the op is a read or a write.
    pub(crate) fn perform_dataless(&self, op: &Op) -> i32 {
        let index = op.file.index();
        let file = self.open[index].as_ref();
        if let (Some(device), true) = (file, self.list[index].trims_reset_zones)
            && op.kind == OpKind::Data(Direction::Trim)
        {
            let length = u64::from(op.length);
            return match zones::manage_zone(device, ZoneAction::Reset, op.offset, length) {
                Ok(()) => op.length.min(Completion::BYTES_MAX).cast_signed(),
                Err(error) => Errno::of(&error).unwrap_or(Errno::EIO).result(),
            };
        }
        file_io::perform_dataless(file.map(File::as_fd), self.kinds[index], op)
    }

    /// Returns the state of a zone, as [`Engine::report_zone`](fathom_core::Engine::report_zone).
    pub(crate) fn report_zone(&self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        let Some(opened) = &self.open[file.index()] else {
            return Err(self.not_open("report zones", file));
        };
        let found = zones::zones(opened, offset, 1)
            .and_then(|zones| zones.first().copied().ok_or_else(|| Errno::EIO.into()));
        found.map_err(|error| {
            let step = EngineStep::Call("ioctl BLKREPORTZONE");
            self.error(step, file, &error, String::new())
        })
    }

    /// Returns true if all files are open.
    pub(crate) fn are_open(&self) -> bool {
        // From the end: files are opened in order, so a closed one is found at once.
        self.open.iter().rev().all(Option::is_some)
    }

    /// Returns the file if it is open.
    #[inline]
    pub(crate) fn descriptor(&self, file: FileIndex) -> Descriptor<'_> {
        self.open[file.index()].as_ref().map(File::as_fd)
    }

    /// Returns the file if it is open.
    pub(crate) fn get(&self, file: FileIndex) -> Option<&File> {
        self.open[file.index()].as_ref()
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, file: FileIndex) -> &str {
        &self.list[file.index()].path
    }

    /// Returns the kind of an open file.
    pub(crate) fn kind(&self, file: FileIndex) -> FileKind {
        self.kinds[file.index()]
    }

    pub(crate) fn error(
        &self,
        step: EngineStep,
        file: FileIndex,
        error: &io::Error,
        hint: String,
    ) -> EngineError {
        EngineError {
            step,
            target: self.list[file.index()].path.clone(),
            errno: Errno::of(error),
            hint,
        }
    }

    fn not_open(&self, call: &'static str, file: FileIndex) -> EngineError {
        let error = io::Error::from(Errno::EBADF);
        self.error(EngineStep::Call(call), file, &error, String::new())
    }
}

/// Returns true unless it is a regular file. Devices keep their access time alone, as in fio.
fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Returns true if a missing file may be created: not under /dev, where it would be a file in RAM
/// with a device's name. /dev/shm and /dev/hugepages are meant for files.
pub(crate) fn may_create(path: &Path) -> bool {
    // Opening a dangling link creates its target, so check that.
    let path = &files::creation_path(path).unwrap_or_else(|_circle| path.into());
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return false,
    };
    // Resolve the directory, to see through `../dev`, `//dev` and links. If it does not exist, the
    // open itself fails.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
    !folder.starts_with("/dev")
        || folder.starts_with("/dev/shm")
        || folder.starts_with("/dev/hugepages")
}

fn open_hint(error: &io::Error, file: &EngineFile, direct: bool) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput if direct => {
            "this filesystem does not take direct I/O: set direct=0, or use another filesystem"
                .into()
        }
        io::ErrorKind::NotFound if file.create && !may_create(Path::new(&file.path)) => {
            "no files are made under /dev: check the device's name".into()
        }
        io::ErrorKind::PermissionDenied if file.write => {
            "this user may not write to it: change its permissions, or run as its owner".into()
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not read it: change its permissions, or run as its owner".into()
        }
        io::ErrorKind::ExecutableFileBusy => {
            "it is a running program or swap space: choose another file".into()
        }
        _ if Errno::of(error) == Some(Errno::EMFILE) => {
            "too many open files: raise the limit with `ulimit -n`".into()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, want: bool) {
        assert_eq!(may_create(Path::new(path)), want, "{path}");
    }

    #[test]
    fn nothing_is_made_among_the_device_nodes() {
        check("job.0.0", true);
        check("/tmp/x", true);
        check("/dev/nvme7n1", false);
        check("//dev/nvme7n1", false);
        check("/tmp/../dev/nvme7n1", false);
        check("/dev/no-such-folder/x", false);
        check("/dev/shm/x", Path::new("/dev/shm").exists());
        check("/", false);
        let link = std::env::temp_dir().join(format!("fathom-engine-{}", std::process::id()));
        std::os::unix::fs::symlink("/dev/nvme7n1", &link).unwrap();
        let may = may_create(&link);
        std::fs::remove_file(&link).unwrap();
        assert!(!may);
    }
}
