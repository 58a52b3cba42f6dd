//! Check that the devices of a job with write streams (`dataplacement`) have them.

use std::path::Path;

use fathom_core::Direction;
use fathom_host::probe;
use fathom_job::Options;

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::translate::pattern::uses;
use crate::translate::{FileSetup, JobSetup};

/// Returns the handles under which an engine of devices places a job's writes, all if empty; `None`
/// if it does not. The engine asks the device which it has.
pub fn placement(setup: &JobSetup) -> Option<Vec<u8>> {
    let options = &setup.job.options;
    let places = options.has_devices() && wants(options);
    places.then(|| options.device.placement.clone())
}

/// Returns the numbers of the streams that a job's writes take in turn; empty for none.
pub fn write_streams(setup: &JobSetup) -> Vec<u8> {
    let options = &setup.job.options;
    if !wants(options) || options.has_devices() {
        return Vec::new();
    }
    let paths = setup.files.iter().map(|file| Path::new(&file.path));
    let most = paths.map(probe::write_streams).min().unwrap_or(0);
    // A placement identifier counts from 0, a stream from 1: stream 0 is none.
    let asked = options
        .device
        .placement
        .iter()
        .map(|id| id.saturating_add(1));
    match options.device.placement.is_empty() {
        true => (1..=most).collect(),
        false => asked.collect(),
    }
}

/// Returns the problem, if a file has no streams, or not those that the job names.
pub(super) fn check(options: &Options, file: &FileSetup) -> Option<RunProblem> {
    if !wants(options) {
        return None;
    }
    let path = &file.path;
    let most = probe::write_streams(Path::new(path));
    let largest = options.device.placement.iter().max().copied().unwrap_or(0);
    if most == 0 {
        let message = format!("no write streams: {path}: the kernel offers none for it");
        let hint = "use an NVMe block device with flexible data placement (Linux 6.16), or remove \
                    `dataplacement`";
        return Some(RunProblem::new(ProblemKind::NoWriteStreams, message).hint(hint));
    }
    (largest >= most).then(|| {
        let message = format!("no placement identifier {largest}: {path}: it has {most} of them");
        let hint = format!("name identifiers from 0 to {}", most - 1);
        RunProblem::new(ProblemKind::NoWriteStreams, message).hint(hint)
    })
}

/// Returns whether a job marks its writes with streams.
pub(crate) fn wants(options: &Options) -> bool {
    options.device.has_streams() && uses(options, Direction::Write)
}
