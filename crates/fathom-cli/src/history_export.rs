//! `fathom history export`: runs in the formats of other programs.

use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write};
use std::path::Path;

use anyhow::Result;
use fathom_host::output_file::{OutputFile, Stop, is_same_file};
use fathom_lab::{
    ExportCell, ExportKind, ExportTable, History, HistoryError, MetricsExport, OtavaExport,
    RunSelection, StoredRuns, csv_line, otlp_line,
};
use fathom_log::{TableColumn, TableFile, TableKind};

use super::ExportFormat;
use crate::failure::with_hint;
use crate::history_keep::{reader, with_its_hint};
use crate::kept_output::{Kept, at, keep, with_place};
use crate::output::{self, StandardStream};

/// Writes the selected runs to a file or to standard output.
pub(crate) fn export(
    format: ExportFormat,
    to: Option<&Path>,
    selection: &RunSelection,
) -> Result<()> {
    if format == ExportFormat::Parquet && to.is_none() && io::stdout().is_terminal() {
        let hint = "name a file with `--output FILE`";
        return Err(with_hint(
            "history: Parquet is not for a terminal",
            Some(hint),
        ));
    }
    let history = reader()?;
    if to.is_some_and(|to| is_same_file(to, history.path())) {
        let hint = "name another file; `fathom history backup` makes a copy of the history";
        return Err(with_hint(
            "history: the export would replace the history",
            Some(hint),
        ));
    }
    let (name, outcome) = match to {
        None => {
            let to = BufWriter::new(io::stdout());
            let outcome = written(&history, format, selection, to);
            ("standard output".to_owned(), outcome)
        }
        Some(path) => (
            path.display().to_string(),
            to_file(&history, format, selection, path),
        ),
    };
    match outcome {
        Ok(()) => Ok(()),
        // Its reader has seen enough.
        Err(ExportError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(ExportError::Output(error)) => {
            let error = match to {
                Some(path) => at(path, error),
                None => anyhow::Error::new(error).context(name),
            };
            // A history may be gone tomorrow, and the command may be part of a nightly job.
            let kept = to.and_then(|path| {
                keep(path, EXPORT, &mut |file| {
                    let again = written(&history, format, selection, BufWriter::new(file));
                    again.map_err(|_| io::Error::other("told already"))
                })
            });
            Err(with_place(&error, EXPORT, kept))
        }
        Err(ExportError::History(error)) => Err(with_its_hint(error)),
        Err(ExportError::Refused(error)) => Err(error),
    }
}

fn to_file(
    history: &History,
    format: ExportFormat,
    selection: &RunSelection,
    path: &Path,
) -> Result<(), ExportError> {
    let file = OutputFile::create(path, &Stop::never());
    let mut file = file.map_err(io::Error::other)?;
    written(history, format, selection, BufWriter::new(&mut file))?;
    Ok(file.finish()?)
}

fn written(
    history: &History,
    format: ExportFormat,
    selection: &RunSelection,
    mut to: impl Write + Send,
) -> Result<(), ExportError> {
    if format == ExportFormat::Json {
        history.export(selection, |run| {
            writeln!(to, "{run}").map_err(ExportError::Output)
        })?;
        return Ok(to.flush()?);
    }
    let runs = history.stored_runs(selection)?;
    match format {
        ExportFormat::Json => {}
        ExportFormat::Csv => csv(&runs, &mut to)?,
        ExportFormat::Parquet => return parquet(&runs, to),
        ExportFormat::Openmetrics => openmetrics(&runs, &mut to)?,
        ExportFormat::Otlp => otlp(&runs, &mut to)?,
        ExportFormat::Otava => otava(&runs, &mut to)?,
    }
    Ok(to.flush()?)
}

fn table(runs: &StoredRuns<'_>) -> Result<ExportTable, HistoryError> {
    Ok(ExportTable::new(&runs.metrics()?, &runs.tag_names()?))
}

fn csv(runs: &StoredRuns<'_>, to: &mut impl Write) -> Result<(), ExportError> {
    let table = table(runs)?;
    let heading = |heading: &String| ExportCell::Text(Some(heading.clone()));
    let head = table
        .columns()
        .iter()
        .map(|column| heading(&column.heading));
    to.write_all(csv_line(&head.collect::<Vec<_>>()).as_bytes())?;
    runs.each(|run| Ok(to.write_all(csv_line(&table.row(&run)).as_bytes())?))
}

fn parquet(runs: &StoredRuns<'_>, to: impl Write + Send) -> Result<(), ExportError> {
    let table = table(runs)?;
    let columns = table.columns().iter().map(|column| {
        let kind = match column.kind {
            ExportKind::Whole => TableKind::Whole,
            ExportKind::Number => TableKind::Number,
            ExportKind::Text => TableKind::Text,
            ExportKind::Moment => TableKind::Moment,
        };
        (column.heading.as_str(), kind)
    });
    let mut file = TableFile::create(to, columns)?;
    let mut group = empty(&table);
    let mut rows = 0;
    runs.each(|run| {
        for (column, cell) in group.iter_mut().zip(table.row(&run)) {
            push(column, cell);
        }
        rows += 1;
        if rows == GROUP_ROWS {
            file.write(&group)?;
            (group, rows) = (empty(&table), 0);
        }
        Ok::<(), ExportError>(())
    })?;
    if rows > 0 {
        file.write(&group)?;
    }
    Ok(file.finish()?.flush()?)
}

/// Returns the columns of a table without rows.
fn empty(table: &ExportTable) -> Vec<TableColumn> {
    let columns = table.columns().iter().map(|column| match column.kind {
        ExportKind::Whole | ExportKind::Moment => TableColumn::Whole(Vec::new()),
        ExportKind::Number => TableColumn::Number(Vec::new()),
        ExportKind::Text => TableColumn::Text(Vec::new()),
    });
    columns.collect()
}

/// Adds a cell to a column, which is of its kind.
fn push(column: &mut TableColumn, cell: ExportCell) {
    match (column, cell) {
        (TableColumn::Whole(cells), ExportCell::Whole(number)) => cells.push(number),
        (TableColumn::Whole(cells), ExportCell::Moment(moment)) => {
            cells.push(moment.map(|(ms, _)| ms));
        }
        (TableColumn::Number(cells), ExportCell::Number(number)) => cells.push(number),
        (TableColumn::Text(cells), ExportCell::Text(text)) => cells.push(text),
        // A column that is too short is refused when it is written.
        _ => {}
    }
}

fn openmetrics(runs: &StoredRuns<'_>, to: &mut impl Write) -> Result<(), ExportError> {
    let mut export = MetricsExport::default();
    runs.each(|run| {
        export.add(&run);
        Ok::<(), ExportError>(())
    })?;
    left_out(export.undated(), UNDATED);
    left_out(
        export.at_once(),
        "began at the same millisecond as another one of their plan and machine",
    );
    Ok(to.write_all(export.page().as_bytes())?)
}

fn otlp(runs: &StoredRuns<'_>, to: &mut impl Write) -> Result<(), ExportError> {
    let mut undated = 0;
    runs.each(|run| {
        // Without a time its samples would be of 1970.
        if run.row.begun_ms.unwrap_or(0) == 0 {
            undated += 1;
            return Ok(());
        }
        let record = match runs.record(run.row.id) {
            Ok(record) => record,
            Err(error) => {
                note(&format!("{error}: exported without histograms"));
                None
            }
        };
        to.write_all(otlp_line(&run, record.as_ref()).as_bytes())?;
        Ok::<(), ExportError>(())
    })?;
    left_out(undated, UNDATED);
    Ok(())
}

fn otava(runs: &StoredRuns<'_>, to: &mut impl Write) -> Result<(), ExportError> {
    let metrics = runs.metrics()?;
    let mut export = OtavaExport::new(&metrics, runs.tag_names()?, runs.count());
    let mut text = export.head();
    runs.each(|run| {
        text.extend(export.line(&run));
        Ok::<(), ExportError>(())
    })?;
    let series = export.series();
    if series.len() > 1 {
        return Err(ExportError::Refused(several(&series)));
    }
    left_out(export.undated(), UNDATED);
    let missing = export.left_out(&metrics);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        note(&format!(
            "not exported, as some of the runs lack them: {missing}"
        ));
    }
    Ok(to.write_all(text.as_bytes())?)
}

/// Returns the refusal of runs that are not comparable with each other.
fn several(series: &[String]) -> anyhow::Error {
    let shown: Vec<&str> = series
        .iter()
        .take(SERIES_SHOWN)
        .map(String::as_str)
        .collect();
    let more = match series.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let message = format!(
        "history: Otava takes one series of comparable runs, and these are {}",
        series.len()
    );
    let hint = format!(
        "select one with `--plan P`, `--machine M` or `--tag KEY=VALUE`: {}{more}",
        fathom_lab::printable(&shown.join("; "))
    );
    with_hint(message, Some(hint))
}

fn left_out(runs: usize, why: &str) {
    if runs > 0 {
        let word = if runs == 1 { "run" } else { "runs" };
        note(&format!("{runs} {word} not exported: they {why}"));
    }
}

fn note(text: &str) {
    let text = fathom_lab::printable(text);
    output::print(StandardStream::Error, &format!("fathom: note: {text}\n"));
}

/// Failure of an export: of the history, or of the output.
enum ExportError {
    History(HistoryError),
    Output(io::Error),
    /// The runs do not fit the format.
    Refused(anyhow::Error),
}

impl From<HistoryError> for ExportError {
    fn from(error: HistoryError) -> Self {
        Self::History(error)
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Rows of a group of a Parquet file.
const GROUP_ROWS: usize = 4096;

/// Most series that a refusal names.
const SERIES_SHOWN: usize = 5;

const UNDATED: &str = "have no start time";

const EXPORT: Kept = Kept {
    words: "the export was",
    extension: "",
};
