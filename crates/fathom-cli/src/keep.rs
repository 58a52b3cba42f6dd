//! Keeping a run: `--record FILE`, and the history (`--history`, `--tag`, `$FATHOM_HISTORY`).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use fathom_host::block_tree::BlockTree;
use fathom_host::output_file::Stop;
use fathom_host::storage::storage_under;
use fathom_job::{Dialect, Rank, Settings};
use fathom_record::{Record, StorageRecord, Warning};

use crate::failure::with_hint;
use crate::history_keep::HistoryKeeper;
use crate::output::Data;

/// Destinations of a run's record.
///
/// [`open`](Self::open) them before the run, so that a long one is not in vain.
pub(crate) struct Keeper {
    file: Option<Data>,
    history: Option<HistoryKeeper>,
}

impl Keeper {
    /// Opens what the settings ask for; under fio's name nothing is kept.
    pub(crate) fn open(settings: &Settings, dialect: Dialect) -> Result<Self> {
        let path = settings.record.as_deref();
        let path = path.map(|path| record_path(path, settings.rank));
        let path = path.transpose()?;
        let file = path.map(|path| Data::file(OPTION, &path));
        if let Some(file) = &file {
            file.check()?;
        }
        let is_asked = settings.history || std::env::var_os(VARIABLE).is_some();
        let is_kept = is_asked && dialect == Dialect::Fathom;
        if !is_kept && !settings.tags.is_empty() {
            let hint = format!("add --history, or set {VARIABLE}");
            let why = "--tag: this run is not kept in the history";
            return Err(with_hint(why, Some(hint)));
        }
        let history = is_kept.then(HistoryKeeper::open).transpose()?;
        Ok(Self { file, history })
    }

    /// Keeps the record of the run that ended; `model` is the text of its machine file.
    pub(crate) fn keep(
        self,
        record: &Record,
        settings: &Settings,
        model: Option<&str>,
        stop: &Stop,
    ) -> Result<()> {
        if let Some(mut file) = self.file {
            file.stop_when(stop);
            let json = record.to_json()?;
            let written = file.add(&format!("{json}\n")).and_then(|()| file.finish());
            written.context("cannot write the record")?;
        }
        match self.history {
            Some(history) => history.keep(record, &settings.tags, model),
            None => Ok(()),
        }
    }
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
    Ok(path.to_string_lossy().into_owned())
}

/// Returns the warning about records that lie on a device under test.
pub(crate) fn on_tested_device(settings: &Settings, record: &Record) -> Option<Warning> {
    let _rank = settings.rank?;
    let folder = settings.record.as_deref()?;
    let under = storage_under(Path::new(folder), &BlockTree::default()).device;
    let machine = record.machine.as_ref()?;
    let is_tested = |tested: &StorageRecord| !under.is_empty() && tested.device == under;
    machine.storage.iter().any(is_tested).then(|| Warning {
        code: "record_on_tested_device".to_owned(),
        message: format!(
            "the records of the ranks go to `{folder}`, on device {under}, which is under test: \
             a rank that ends early disturbs the others"
        ),
        hint: "name a folder on another device".to_owned(),
        ..Warning::default()
    })
}

const OPTION: &str = "--record";

const VARIABLE: &str = "FATHOM_HISTORY";
