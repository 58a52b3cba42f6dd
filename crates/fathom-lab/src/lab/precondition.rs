//! Precondition: each device and file of a lab is written whole, once, before the first run.
//!
//! ```text
//! all files resolved and permitted ─► per file: resolved again ─► pass 1 … times_capacity ─► kept
//! ```
//!
//! A name under /dev/disk may lead to another device than it did when the lab began, so it is
//! resolved again right before it is written, and the job gets the device that was checked, not the
//! name that led to it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fathom_sys::files::{DeviceNumber, FileKind};

use super::devices::may_write;
use crate::lab_plan::{LabPlan, PreconditionFile};

/// Device or file, as the host has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Name, as the jobs have it.
    pub(crate) name: String,
    /// Path without links.
    pub(crate) path: PathBuf,
    /// Size of a regular file; `None` of a device.
    pub(crate) bytes: Option<u64>,
    identity: Identity,
}

/// Thing that two names can share.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    Device(DeviceNumber),
    /// Device and inode.
    File(u64, u64),
    /// Not there yet.
    New(PathBuf),
}

/// Resolves everything that is to be written and that is not prepared, each device and file once,
/// whatever its names.
///
/// # Errors
/// One of them may not be written, or cannot be.
pub(crate) fn resolve_all(plan: &LabPlan, prepared: &[String]) -> Result<Vec<Resolved>, String> {
    let mut all: Vec<Resolved> = Vec::new();
    let files = plan.precondition.iter().flat_map(|one| &one.files);
    let known: Vec<Identity> = prepared.iter().filter_map(|name| identity(name)).collect();
    for file in files.filter(|file| !prepared.contains(&file.name)) {
        if identity(&file.name).is_some_and(|identity| known.contains(&identity)) {
            continue;
        }
        let found = resolve(file, &plan.writes)?;
        let precondition = plan.precondition.as_ref();
        if let Some(why) = precondition.and_then(|one| one.rest_of(&found.name, found.bytes?)) {
            return Err(format!("{why}; set a `bs` that divides its size"));
        }
        match all.iter_mut().find(|one| one.identity == found.identity) {
            Some(same) => same.bytes = same.bytes.max(found.bytes),
            None => all.push(found),
        }
    }
    Ok(all)
}

/// Checks right before writing that a name leads to what it led to when the lab began.
///
/// # Errors
/// It does not, or it may no longer be written.
pub(crate) fn check_again(plan: &LabPlan, before: &Resolved) -> Result<(), String> {
    let mut files = plan.precondition.iter().flat_map(|one| &one.files);
    let Some(file) = files.find(|file| file.name == before.name) else {
        return Ok(());
    };
    let now = resolve(file, &plan.writes)?;
    match now.identity == before.identity && now.path == before.path {
        true => Ok(()),
        false => Err(format!(
            "{}: it led to {} when the lab began, and leads to {} now",
            before.name,
            before.path.display(),
            now.path.display()
        )),
    }
}

/// Returns what a name leads to; `None` if it is not there.
fn identity(name: &str) -> Option<Identity> {
    let metadata = fs::metadata(name).ok()?;
    Some(match FileKind::of(&metadata) {
        FileKind::Block => Identity::Device(DeviceNumber::of_node(&metadata)),
        _ => Identity::File(metadata.dev(), metadata.ino()),
    })
}

/// Resolves one name, and checks that it may be written.
fn resolve(file: &PreconditionFile, writes: &[String]) -> Result<Resolved, String> {
    let name = &file.name;
    let path = Path::new(name);
    let resolved = |path: PathBuf, bytes, identity| Resolved {
        name: name.clone(),
        path,
        bytes,
        identity,
    };
    let Ok(metadata) = fs::metadata(path) else {
        return missing(file).map(|(path, bytes)| {
            let identity = Identity::New(path.clone());
            resolved(path, Some(bytes), identity)
        });
    };
    let real = fs::canonicalize(path).map_err(|error| format!("{name}: {error}"))?;
    match FileKind::of(&metadata) {
        FileKind::Block => {
            let number = DeviceNumber::of_node(&metadata);
            match may_write(writes, number) {
                true => Ok(resolved(real, None, Identity::Device(number))),
                false => Err(format!(
                    "{name} is the device {}, which would be written, and `writes` does not name \
                     it; add it there if its data may be overwritten",
                    real.display()
                )),
            }
        }
        FileKind::Regular => {
            let own = Identity::File(metadata.dev(), metadata.ino());
            let has_leave = |leave: &String| identity(leave).as_ref() == Some(&own);
            let is_permitted = file.is_written || writes.iter().any(has_leave);
            if !is_permitted {
                return Err(format!(
                    "{name} exists, and the jobs only read it: it would be overwritten, and \
                     `writes` does not name it; add it there if its data may be overwritten"
                ));
            }
            let bytes = file.bytes.unwrap_or(metadata.len());
            if bytes == 0 {
                return Err(format!("{name} is empty, and the jobs give it no size"));
            }
            Ok(resolved(real, Some(bytes), own))
        }
        _ => Err(format!(
            "{name} is neither a block device nor a regular file"
        )),
    }
}

/// Returns place and size of a file that is not there yet.
fn missing(file: &PreconditionFile) -> Result<(PathBuf, u64), String> {
    let name = &file.name;
    if name.starts_with("/dev/") {
        return Err(format!("{name}: no such device"));
    }
    let Some(bytes) = file.bytes else {
        return Err(format!(
            "{name} does not exist, and the jobs give it no size"
        ));
    };
    let path = Path::new(name);
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")));
    let folder = folder.map_err(|error| format!("{name}: {error}"))?;
    Ok((folder.join(path.file_name().unwrap_or_default()), bytes))
}
