//! Keeping a run: `--record FILE`, and the history (`--history`, `--tag`, `$FATHOM_HISTORY`).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fathom_host::block_tree::BlockTree;
use fathom_host::output_file::Stop;
use fathom_host::storage::storage_under;
use fathom_job::{Dialect, Rank, Settings};
use fathom_record::{Record, StorageRecord, Warning};

use crate::failure::{joined, with_hint};
use crate::history_keep::HistoryKeeper;
use crate::kept_output::{Kept, keep, with_place};
use crate::output::Data;
use crate::record_so_far::SoFar;

/// Destinations of a run's record.
///
/// [`open`](Self::open) them before the run, so that a long one is not in vain.
pub(crate) struct Keeper {
    file: Option<RecordFile>,
    so_far: Option<SoFar>,
    history: Option<HistoryKeeper>,
}

impl Keeper {
    /// Opens what the settings ask for; under fio's name nothing is kept.
    pub(crate) fn open(settings: &Settings, dialect: Dialect) -> Result<Self> {
        let path = settings.record.as_deref();
        let path = path.map(|path| record_path(path, settings.rank));
        let path = path.transpose()?;
        let so_far = path.clone().map(SoFar::new);
        let file = path.map(|path| RecordFile {
            data: Data::file(OPTION, &path),
            path: path.into(),
        });
        let is_asked = settings.history || std::env::var_os(VARIABLE).is_some();
        let is_kept = is_asked && dialect == Dialect::Fathom;
        if !is_kept && !settings.tags.is_empty() {
            let hint = format!("add --history, or set {VARIABLE}");
            let why = "--tag: this run is not kept in the history";
            return Err(with_hint(why, Some(hint)));
        }
        let history = is_kept.then(HistoryKeeper::open).transpose()?;
        // Last, as opening a new history creates it: the record must not replace it.
        if let Some(file) = &file {
            file.data.check()?;
        }
        Ok(Self {
            file,
            so_far,
            history,
        })
    }

    /// Keeps what the run has so far, in case it is killed. Does not wait for the storage.
    pub(crate) fn keep_so_far(&mut self, record: &Record) {
        if let Some(so_far) = &mut self.so_far {
            so_far.keep(record);
        }
    }

    /// Keeps the record of the run that ended; `model` is the text of its machine file. A file that
    /// cannot be written does not keep the run from the history.
    pub(crate) fn keep(
        mut self,
        record: &Record,
        settings: &Settings,
        model: Option<&str>,
        stop: &Stop,
    ) -> Result<()> {
        if let Some(so_far) = &mut self.so_far {
            so_far.wait();
        }
        let written = self.file.map_or(Ok(()), |file| file.write(record, stop));
        let kept = match self.history {
            Some(history) => history.keep(record, &settings.tags, model),
            None => Ok(()),
        };
        joined([written, kept], "fathom")
    }
}

/// File of the record.
struct RecordFile {
    data: Data,
    path: PathBuf,
}

impl RecordFile {
    /// Writes the record. If that fails, it is kept under another name, which the error states.
    fn write(mut self, record: &Record, stop: &Stop) -> Result<()> {
        self.data.stop_when(stop);
        let json = format!("{}\n", record.to_json()?);
        let Err(error) = self.data.add(&json).and_then(|()| self.data.finish()) else {
            return Ok(());
        };
        let error = error.context("cannot write the record");
        if stop.is_asked() {
            return Err(error);
        }
        let kept = keep(&self.path, RECORD, &mut |file| {
            file.write_all(json.as_bytes())
        });
        Err(with_place(&error, RECORD, kept))
    }
}

/// Returns the file of a rank's record, which can be written, whole and as far as it is.
#[cfg(feature = "mpi")]
pub(crate) fn rank_files(settings: &Settings) -> Result<(Data, SoFar)> {
    let folder = settings.record.as_deref().unwrap_or(".");
    let path = record_path(folder, settings.rank)?;
    let file = Data::file(OPTION, &path);
    file.check()?;
    Ok((file, SoFar::new(path)))
}

/// Returns the file of the record: as named, or with a rank in the folder of that name, which is
/// made if it is not there.
fn record_path(named: &str, rank: Option<Rank>) -> Result<String> {
    let Some(rank) = rank else {
        return Ok(named.to_owned());
    };
    fs::create_dir_all(named).map_err(|error| {
        let hint = "with --rank, name a folder: each rank writes a record of its own into it";
        with_hint(format!("{OPTION}: {named}: {error}"), Some(hint))
    })?;
    let path = Path::new(named).join(rank.record_name());
    // A record is read again, and written while jobs run: a pipe would hold the rank until a reader
    // comes. A folder is refused below.
    let there = fs::metadata(&path);
    if there.is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let shown = path.display();
        let why = format!("{OPTION}: {shown}: is a pipe or a device");
        return Err(with_hint(why, Some("remove it, or name another folder")));
    }
    Ok(path.to_string_lossy().into_owned())
}

/// Returns the warning about records that lie on a device under test.
pub(crate) fn on_tested_device(settings: &Settings, record: &Record) -> Option<Warning> {
    let _rank = settings.rank?;
    let folder = settings.record.as_deref()?;
    let under = storage_under(Path::new(folder), &BlockTree::default()).device;
    on_one_of(folder, &under, &record.machine.as_ref()?.storage)
}

/// Returns the warning if the device under the folder of the records is one of those under test.
fn on_one_of(folder: &str, device: &str, tested: &[StorageRecord]) -> Option<Warning> {
    let is_tested = |tested: &StorageRecord| !device.is_empty() && tested.device == device;
    tested.iter().any(is_tested).then(|| Warning {
        code: "record_on_tested_device".to_owned(),
        message: format!(
            "the records of the ranks go to `{folder}`, on device {device}, which is under test: \
             writing them while jobs run disturbs these"
        ),
        hint: "name a folder on another device, or add `--record-every=0`".to_owned(),
        ..Warning::default()
    })
}

const OPTION: &str = "--record";
const RECORD: Kept = Kept {
    words: "the record was",
    extension: "json",
};

const VARIABLE: &str = "FATHOM_HISTORY";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(device: &str, tested: &[&str], is_told: bool) {
        let storage = |device: &&str| StorageRecord {
            device: (*device).to_owned(),
            ..StorageRecord::default()
        };
        let tested: Vec<StorageRecord> = tested.iter().map(storage).collect();
        let warning = on_one_of("out", device, &tested);
        assert_eq!(warning.is_some(), is_told, "{device}");
    }

    #[test]
    fn records_on_a_tested_device_are_told_of() {
        check("vda", &["vdb", "vda"], true);
        check("vda", &["vdb"], false);
        check("vda", &[], false);
        // A file system without a device, such as tmpfs or NFS.
        check("", &["", "vda"], false);
    }
}
