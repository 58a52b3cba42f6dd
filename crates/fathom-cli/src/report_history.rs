//! Pages of what the history has: runs, labs, trends.

#[cfg(feature = "history")]
pub(crate) use kept::{lab_named, lab_of_file, run, trend};
#[cfg(not(feature = "history"))]
pub(crate) use missing::{lab_named, lab_of_file, run, trend};

#[cfg(feature = "history")]
mod kept {
    use std::path::Path;

    use anyhow::{Context, Result, anyhow};
    use fathom_lab::{History, KeptLab, KeptLabError, LabAbout, LabId, PageRun, RunId, lab_page};
    use fathom_record::{MetricName, Record};
    use fathom_report::Page;

    use crate::environment::Process;
    use crate::failure::with_hint;
    use crate::history::{self, SeriesArguments};
    use crate::history_keep::{reader, with_its_hint};
    use crate::saved_runs;

    /// Reads a run by its number.
    pub(crate) fn run(name: &str) -> Result<PageRun> {
        let run: i64 = name.parse().with_context(|| format!("run {name}"))?;
        let history = reader()?;
        let row = history.show(RunId(run)).map_err(with_its_hint)?;
        let text = history.record_of(row.id).map_err(with_its_hint)?;
        let text = text.with_context(|| format!("run {name} has no record"))?;
        let record = Record::from_json(&text).with_context(|| format!("run {name}"))?;
        Ok(PageRun {
            record,
            percentiles: Vec::new(),
        })
    }

    /// Writes the page of the last lab of a name.
    pub(crate) fn lab_named(name: &str) -> Result<Page> {
        let history = reader()?;
        let found = history.lab_named(name);
        let lab = found.map_err(|error| no_such_lab(&history, name, error))?;
        lab_of(history, lab)
    }

    /// States which labs there are, or that one side of a comparison was named.
    fn no_such_lab(
        history: &History,
        name: &str,
        error: fathom_lab::HistoryError,
    ) -> anyhow::Error {
        let names = history.lab_names().unwrap_or_default();
        if let Some((lab, variant)) = name.rsplit_once('/')
            && names.iter().any(|one| one == lab)
        {
            let why = format!("lab:{name}: the variant `{variant}` is one side of a comparison");
            let hint = format!("name the other side, too, or the whole lab: lab:{lab}");
            return with_hint(why, Some(hint));
        }
        match names.is_empty() {
            true => with_its_hint(error),
            false => with_hint(error, Some(format!("labs there: {}", names.join(", ")))),
        }
    }

    /// Writes the page of the last lab that a lab file's text began.
    pub(crate) fn lab_of_file(file: &str) -> Result<Page> {
        let text = saved_runs::text(Path::new(file))?;
        let history = reader()?;
        if let Some(lab) = history.lab_of_text(&text).map_err(with_its_hint)? {
            return lab_of(history, lab);
        }
        let earlier = history.lab_of_file(file).map_err(with_its_hint)?;
        let earlier = earlier.map(|lab| history.lab_entry(lab)).transpose();
        Err(match earlier.map_err(with_its_hint)? {
            Some(entry) => with_hint(
                format!(
                    "{file}: it was changed since its lab `{}` was run",
                    entry.name
                ),
                Some(format!("lab:{} is the lab as it was run", entry.name)),
            ),
            None => with_hint(
                format!("{file}: the history has no lab of this file"),
                Some(format!("run it: `fathom lab {file}`")),
            ),
        })
    }

    fn lab_of(history: History, lab: LabId) -> Result<Page> {
        let kept = KeptLab::read(history, lab, &Process::new()).map_err(|error| match error {
            KeptLabError::History(error) => with_its_hint(error),
            KeptLabError::Text { .. } => {
                let hint = "files that it names are read where it was run: give the command there";
                with_hint(error, Some(hint))
            }
            error => anyhow!(error),
        })?;
        let about = LabAbout {
            begun: kept.entry.begun,
            circumstances: kept.circumstances,
        };
        Ok(lab_page(&kept.plan, &kept.outcome, &about))
    }

    /// Writes the page of a metric's trends.
    pub(crate) fn trend(metric: &str, series: SeriesArguments) -> Result<Page> {
        let metric = MetricName::parse(metric);
        let metric = metric.map_err(|error| anyhow!("trend:{}", error.message))?;
        history::trend_page_of(&metric, series)
    }
}

#[cfg(not(feature = "history"))]
mod missing {
    use anyhow::Result;
    use fathom_lab::PageRun;
    use fathom_report::Page;

    use crate::failure::with_hint;
    use crate::history::SeriesArguments;

    pub(crate) fn run(name: &str) -> Result<PageRun> {
        Err(refusal(name))
    }

    pub(crate) fn lab_named(name: &str) -> Result<Page> {
        Err(refusal(name))
    }

    pub(crate) fn lab_of_file(file: &str) -> Result<Page> {
        Err(refusal(file))
    }

    pub(crate) fn trend(metric: &str, _series: SeriesArguments) -> Result<Page> {
        Err(refusal(metric))
    }

    fn refusal(what: &str) -> anyhow::Error {
        let why = format!("{what}: this program was built without the history");
        let hint = "build it with the feature `history`, or name a run's file";
        with_hint(why, Some(hint))
    }
}
