//! Keeping a run: `--record FILE`, and the history (`--history`, `--tag`, `$FATHOM_HISTORY`).

use anyhow::{Context, Result};
use fathom_host::output_file::Stop;
use fathom_job::{Dialect, Settings};
use fathom_record::Record;

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
        let file = settings.record.as_deref();
        let file = file.map(|path| Data::file(OPTION, path));
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

const OPTION: &str = "--record";

const VARIABLE: &str = "FATHOM_HISTORY";
