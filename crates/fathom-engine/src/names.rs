//! The engines whose op is a system call on the name of a file: `filecreate`, `filestat`,
//! `filedelete`, `dircreate`, `dirstat`, `dirdelete`.
//!
//! An op is a file, whatever its length: a job gets one op per file and pass. No file is open
//! between ops, so a job may have more files than descriptors.

pub(crate) mod dircreate;
pub(crate) mod dirdelete;
pub(crate) mod dirstat;
pub(crate) mod filecreate;
pub(crate) mod filedelete;
pub(crate) mod filestat;

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::path::Path;

use fathom_core::{EngineError, EngineStep, Errno, FileIndex, Op, OpKind};
use fathom_sys::files::FileKind;

use crate::files::may_create;
use crate::serial::{Performer, Serial, whole_or};
use crate::{AnyEngine, EngineConfig, EngineFile};

/// System call of an engine, and what may stand under the names it is made on.
trait NameCall {
    /// Makes the call and returns 0 or a negated errno.
    fn call(&mut self, path: &CStr) -> i32;

    /// Checks what is there when the job's file is opened, before the first op on it. A link is not
    /// followed: it is [`FileKind::Other`].
    fn check(&self, path: &Path, found: Option<FileKind>) -> Result<(), Refusal>;

    /// Returns to the state before the last call, as far as it costs descriptors.
    fn forget(&mut self) {}

    /// Removes the file before it is created again (`unlink_each_loop`).
    fn remove(&self, path: &Path) -> io::Result<()> {
        let _kept = path;
        Ok(())
    }
}

/// Reason why no call is made on a name.
struct Refusal {
    errno: Errno,
    hint: &'static str,
}

/// Performer of all of these engines.
struct Names<C> {
    call: C,
    list: Vec<EngineFile>,
    /// Paths as the kernel takes them.
    paths: Vec<CString>,
    /// Files that were opened before.
    used: Vec<bool>,
}

fn start<C: NameCall + 'static>(config: &EngineConfig, call: C) -> Result<AnyEngine, EngineError> {
    let path = |file: &EngineFile| {
        CString::new(file.path.as_str()).map_err(|_nul| EngineError {
            step: EngineStep::Open,
            target: file.path.escape_debug().to_string(),
            errno: Some(Errno::EINVAL),
            hint: "a name cannot contain a nul byte".into(),
        })
    };
    let names = Names {
        call,
        list: config.files.clone(),
        paths: config.files.iter().map(path).collect::<Result<_, _>>()?,
        used: vec![false; config.files.len()],
    };
    Ok(Serial::start(config, names))
}

impl<C: NameCall> Performer for Names<C> {
    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let asked = &self.list[file.index()];
        let path = Path::new(&asked.path);
        let failed = |step, errno, hint: &str| EngineError {
            step,
            target: asked.path.clone(),
            errno,
            hint: hint.into(),
        };
        let found = match fs::symlink_metadata(path) {
            Ok(metadata) => Some(FileKind::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(EngineStep::Call("lstat"), Errno::of(&error), "")),
        };
        self.call
            .check(path, found)
            .map_err(|refusal| failed(EngineStep::Open, Some(refusal.errno), refusal.hint))?;
        if asked.recreate && self.used[file.index()] && found.is_some() {
            let removed = self.call.remove(path);
            removed.map_err(|error| {
                let hint = "leave `unlink_each_loop` out";
                failed(EngineStep::Call("unlink"), Errno::of(&error), hint)
            })?;
        }
        self.used[file.index()] = true;
        Ok(())
    }

    fn close(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        self.call.forget();
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        Ok(())
    }

    fn prepare(&mut self, _op: &Op) {
        self.call.forget();
    }

    fn perform(&mut self, op: &Op) -> i32 {
        match op.kind {
            OpKind::Data(_) => whole_or(self.call.call(&self.paths[op.file.index()]), op),
            // Nothing is open that could be synced.
            OpKind::Sync(_) => Errno::EINVAL.result(),
        }
    }
}

/// Difference of these engines from fio's.
const OP_PER_FILE: &str = "one op per file and pass, which all counters count; fio counts \
                           `filesize` / `bs` ops per file, and measures the first";

/// Refuses to create anything among the device nodes.
fn check_place(path: &Path) -> Result<(), Refusal> {
    match may_create(path) {
        true => Ok(()),
        false => Err(Refusal {
            errno: Errno::ENOENT,
            hint: "no files are made under /dev: check the device's name",
        }),
    }
}

/// Refuses a name whose file is of another kind than this.
fn check_kind(found: Option<FileKind>, kind: FileKind) -> Result<(), Refusal> {
    match (found, kind) {
        (Some(found), kind) if found == kind => Ok(()),
        (None, _) => Ok(()),
        (Some(_other), FileKind::Directory) => Err(Refusal {
            errno: Errno::ENOTDIR,
            hint: "name a directory, not a link to one",
        }),
        (Some(FileKind::Directory), _) => Err(Refusal {
            errno: Errno::EISDIR,
            hint: "name a regular file; `dircreate`, `dirstat` and `dirdelete` are for directories",
        }),
        (Some(_other), _) => Err(Refusal {
            errno: Errno::EINVAL,
            hint: "name a regular file, not a device or a link",
        }),
    }
}
