//! Errors that ended jobs, in Fathom's words and in fio's.

use std::path::Path;

use fathom_core::{Errno, FileIndex};
use fathom_host::block_tree::BlockTree;
use fathom_record::{FioError, errno_text};
use fathom_workload::{JobActivity, JobError, Results};

use crate::translate::{FileSetup, JobSetup};

/// Formats an error: `write: /tmp/x: offset 4096, length 4096: No space left on device`.
pub(super) fn error_text(error: &JobError, setup: &JobSetup) -> String {
    let system = std::io::Error::from(error.errno);
    let mut text = error.activity.name().to_owned();
    let path = path_of(setup, error.file);
    let is_mismatch = error.activity == JobActivity::Verify && error.errno == Errno::EILSEQ;
    if let (true, Some(detail)) = (is_mismatch, &error.detail) {
        // The detail has the place. A mismatch is not a failure of the system: that EILSEQ is about
        // characters would only confuse.
        let detail = detail.strip_prefix("verify: ").unwrap_or(detail);
        return format!("{text}: {path}: {detail}");
    }
    if error.length > 0 {
        text += &format!(": {path}: offset {}, length {}", error.offset, error.length);
    }
    text += &format!(": {system}");
    if let Some(detail) = &error.detail {
        text += &format!(": {detail}");
    }
    text + &end_of_file(error, setup) + &zoned_device(error, setup)
}

/// Returns an error in fio's words.
pub(super) fn fio_error(error: &JobError, results: &Results, setup: &JobSetup) -> FioError {
    let path = path_of(setup, error.file);
    let (offset, length) = (error.offset, error.length);
    let detail = error.detail.as_deref().unwrap_or_default();
    let activity = error.activity.name();
    let completes = match setup.job.options.is_synchronous(setup.worker.depth) {
        true => "io_u_sync_complete",
        false => "io_u_queued_complete",
    };
    match error.activity {
        JobActivity::Read | JobActivity::Write | JobActivity::Trim | JobActivity::Sync => {
            let why = errno_text(error.errno.unsigned());
            FioError {
                function: "io_u error",
                lines: format!(
                    "fio: io_u error on file {path}: {why}: {activity} offset={offset}, \
                     buflen={length}\n"
                ),
            }
        }
        JobActivity::MaxLatency(_) => FioError {
            function: "max latency exceeded",
            lines: format!("fio: {detail}: {path} {activity} {offset} {length}\n"),
        },
        JobActivity::Verify => {
            let kept = results.mismatches.kept.iter();
            let lines = kept.map(|found| found.error.describe(path_of(setup, found.file)) + "\n");
            FioError {
                function: completes,
                lines: lines.collect(),
            }
        }
        JobActivity::RateMin => FioError {
            function: "check_min_rate",
            lines: String::new(),
        },
        JobActivity::Reopen | JobActivity::Close | JobActivity::Replay | JobActivity::Record => {
            FioError {
                function: activity,
                lines: String::new(),
            }
        }
    }
}

/// Returns the path of a file of the job; empty if it has none of this number.
pub(super) fn path_of(setup: &JobSetup, file: FileIndex) -> &str {
    let file = setup.files.get(file.index());
    file.map_or("", |file| file.path.as_str())
}

/// Explains an EIO beyond the end of the file, which otherwise looks like a broken device. A write
/// there extends the file, so its EIO is the device's, unless the file was longer before.
fn end_of_file(error: &JobError, setup: &JobSetup) -> String {
    let file = setup.files.get(error.file.index());
    let Some(file) = file.filter(|_| error.errno == Errno::EIO && error.length > 0) else {
        return String::new();
    };
    let metadata = std::fs::metadata(&file.path).ok();
    let Some(now) = metadata.filter(std::fs::Metadata::is_file) else {
        return String::new();
    };
    let end = error.offset.saturating_add(error.length.into());
    let reads = error.activity == JobActivity::Read;
    if now.len() < end.min(length_before(file, setup, reads)) {
        format!(": file was truncated to {} B while the job ran", now.len())
    } else if now.len() < end && reads {
        format!(": the file ends at {} B", now.len())
    } else {
        String::new()
    }
}

/// Returns the length that a file of a job had for certain when the job began.
fn length_before(file: &FileSetup, setup: &JobSetup, reads: bool) -> u64 {
    let options = &setup.job.options;
    let is_laid_out = reads && !options.create_on_open && !options.verification.only;
    let laid_out = if is_laid_out { file.bytes } else { 0 };
    file.found.bytes().unwrap_or(0).max(laid_out)
}

/// Explains an EIO of a write that misses the write pointer of a zone.
fn zoned_device(error: &JobError, setup: &JobSetup) -> String {
    let missed = error.errno == Errno::EIO && error.activity == JobActivity::Write;
    let path = path_of(setup, error.file);
    if !missed || setup.worker.zoned.is_some() {
        return String::new();
    }
    match BlockTree::default().device_at(Path::new(path)) {
        Some(device) if device.whole_disk().has_zones() => {
            format!(": {path} is a zoned block device: consider --zonemode=zbd")
        }
        _ => String::new(),
    }
}
