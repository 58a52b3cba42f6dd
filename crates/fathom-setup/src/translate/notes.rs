//! Warnings about one job.

use fathom_host::target_kind::TargetKind;
use fathom_job::{Job, Options};

use super::{FileSetup, pattern, sizes};
use crate::plan_warning::{PlanWarning, PlanWarningKind};

/// Warnings about one job.
pub(super) struct Warnings<'a> {
    job: &'a str,
    pub(super) list: Vec<PlanWarning>,
}

impl<'a> Warnings<'a> {
    pub(super) const fn of(job: &'a Job) -> Self {
        Self {
            job: job.name.as_str(),
            list: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, kind: PlanWarningKind, message: impl Into<String>, hint: &str) {
        self.list.push(PlanWarning {
            kind,
            job: self.job.into(),
            message: message.into(),
            hint: hint.into(),
        });
    }
}

/// Warns about a size beyond the end of a device.
pub(super) fn cut_sizes(sizes: &sizes::ResolvedSizes, warnings: &mut Warnings<'_>) {
    if sizes.files.iter().any(|file| file.cut) {
        warnings.add(
            PlanWarningKind::SizeBeyondDevice,
            "`size` exceeds the device; the job uses the part that exists",
            "remove `size` to use the whole device",
        );
    }
}

/// Warns about the files of a job.
pub(super) fn files(options: &Options, files: &[FileSetup], warnings: &mut Warnings<'_>) {
    existing_files(options, files, warnings);
    ranges(options, files, warnings);
}

/// Warns about ranges of files that the ops of a pattern do not fit into.
fn ranges(options: &Options, files: &[FileSetup], warnings: &mut Warnings<'_>) {
    if options.replay.found.is_none() {
        pattern::note_shares(options, files, warnings);
        small_files(options, files, warnings);
    }
}

/// Warns about files without room for an op, if others have room: as in fio, they are skipped.
fn small_files(options: &Options, files: &[FileSetup], warnings: &mut Warnings<'_>) {
    let mut small = files
        .iter()
        .filter(|file| !file.has_room_for_an_op(options));
    let (Some(first), others) = (small.next(), small.count()) else {
        return;
    };
    if others + 1 < files.len() {
        warnings.add(
            PlanWarningKind::FilesTooSmall,
            format!(
                "{} of {} files have no room for a block and get no ops (the first: {})",
                others + 1,
                files.len(),
                first.path
            ),
            "reduce `bs`, or use larger files",
        );
    }
}

/// Warns of files that exist where ops are to create them.
fn existing_files(options: &Options, files: &[FileSetup], warnings: &mut Warnings<'_>) {
    let creates = options
        .engine
        .name_work()
        .is_some_and(|names| !names.laid_out);
    let existing = files
        .iter()
        .filter(|file| file.found != TargetKind::Missing);
    let count = existing.count();
    if creates && count > 0 {
        let message = format!(
            "{count} of {} files exist when the job starts: its ops create none of these",
            files.len()
        );
        let hint =
            "remove them first, and keep other jobs from laying them out (`create_on_open=1`)";
        warnings.add(PlanWarningKind::FilesExist, message, hint);
    }
}
