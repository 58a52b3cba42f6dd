//! Sides of `fathom compare`, as the user names them.

use std::collections::HashMap;
#[cfg(feature = "history")]
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use fathom_lab::CompareSide;

use crate::output::{self, StandardStream};
use crate::saved_runs;

/// Reads a side: a file or directory if there is one of that name, else runs of the history.
pub(crate) fn read(name: &str) -> Result<CompareSide> {
    let path = Path::new(name);
    if !path.exists() && selects(name) {
        return of_history(name);
    }
    let (mut runs, mut files) = (Vec::new(), Vec::new());
    let mut counts = HashMap::new();
    for (file, run) in saved_runs::read(path)? {
        for note in &run.notes {
            output::print(
                StandardStream::Error,
                &format!("fathom: {file}: note: {note}\n"),
            );
        }
        files.push(place(&file, &mut counts));
        runs.push(run);
    }
    let name = name.to_owned();
    Ok(CompareSide { name, runs, files })
}

/// Returns the place of a run: its file, without links, and its number there if it is not the
/// first; `counts` has the number of runs of each file so far.
fn place(file: &str, counts: &mut HashMap<String, usize>) -> String {
    let found = fs::canonicalize(file);
    let file = found.map_or_else(|_| file.to_owned(), |path| path.display().to_string());
    let count = counts.entry(file.clone()).or_default();
    *count += 1;
    match count {
        1 => file,
        number => format!("{file} #{number}"),
    }
}

/// Returns whether a name selects runs of the history.
fn selects(name: &str) -> bool {
    let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b',' | b'-');
    name.starts_with("tag:") || name.starts_with("lab:") || name.bytes().all(is_number)
}

#[cfg(not(feature = "history"))]
fn of_history(name: &str) -> Result<CompareSide> {
    let why = format!("{name}: this program was built without the history");
    let hint = "build it with the feature `history`, or name files";
    Err(crate::failure::with_hint(why, Some(hint)))
}

#[cfg(feature = "history")]
fn of_history(name: &str) -> Result<CompareSide> {
    use fathom_lab::RunEnd;

    use crate::history_keep::{reader, with_its_hint};

    let history = reader()?;
    let labs = history.lab_names().map_err(with_its_hint)?;
    let selection = selection(name, &labs)?;
    if !selection.runs.is_empty() {
        let rows = history.list(&selection).map_err(with_its_hint)?;
        refuse_unknown(name, &rows)?;
    }
    let runs = history.measured(&selection).map_err(with_its_hint)?;
    if runs.iter().all(|run| run.run.end != RunEnd::Done) {
        let why = format!("{name}: no runs that measured anything in the history");
        let hint = "`fathom history list` shows runs with their numbers, labs and tags";
        return Err(crate::failure::with_hint(why, Some(hint)));
    }
    Ok(CompareSide {
        name: name.to_owned(),
        runs,
        files: Vec::new(),
    })
}

#[cfg(feature = "history")]
fn selection(name: &str, labs: &[String]) -> Result<fathom_lab::RunSelection> {
    use anyhow::bail;
    use fathom_lab::{RunId, RunSelection};

    let mut selection = RunSelection::default();
    if let Some(tag) = name.strip_prefix("tag:") {
        let Some((key, value)) = tag.split_once('=') else {
            bail!("{name}: a tag is KEY=VALUE");
        };
        selection.tags.push((key.to_owned(), value.to_owned()));
    } else if let Some(lab) = name.strip_prefix("lab:") {
        // Both names may have slashes: the longest name of a lab that there is.
        let ends = lab.rmatch_indices('/').map(|(at, _)| at);
        let mut ends = std::iter::once(lab.len()).chain(ends);
        let is_lab = |end: &usize| labs.iter().any(|known| *known == lab[..*end]);
        let (lab, variant) = lab.split_at(ends.find(is_lab).unwrap_or(lab.len()));
        selection.lab = Some(lab.to_owned());
        selection.variant = variant.strip_prefix('/').map(str::to_owned);
    } else {
        for part in name.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) else {
                bail!("{name}: numbers of runs are 12, 12-19 or 12,14");
            };
            if last < first || last - first >= RUNS_MAX {
                bail!("{name}: a range from {first} to {last}");
            }
            selection.runs.extend((first..=last).map(RunId));
        }
    }
    Ok(selection)
}

/// Refuses a number that no run of the history has, also as the end of a range: the side would be
/// another one than was meant. Runs within a range may have been removed.
#[cfg(feature = "history")]
fn refuse_unknown(name: &str, rows: &[fathom_lab::RunRow]) -> Result<()> {
    let known: HashSet<i64> = rows.iter().map(|row| row.id.0).collect();
    let mut numbers = name.split([',', '-']).filter_map(|part| part.parse().ok());
    let Some(unknown) = numbers.find(|number| !known.contains(number)) else {
        return Ok(());
    };
    let why = format!("{name}: no run {unknown} in the history");
    let hint = "`fathom history list` shows runs with their numbers, labs and tags";
    Err(crate::failure::with_hint(why, Some(hint)))
}

/// Most runs in a range.
#[cfg(feature = "history")]
const RUNS_MAX: i64 = 10_000;
