//! Subcommands of `fathom history`.

use anyhow::{Context, Result};
use fathom_lab::{ImportedRun, Prune, RunId, RunSelection};
use fathom_sys::clock;
use serde_json::{Map, Value};

use super::{
    CheckArguments, HistoryArguments, HistoryCommand, ListArguments, SelectArguments, checks,
    exports, trends,
};
use crate::exit::ProgramEnd;
use crate::history_keep::{reader, with_its_hint, writer};
use crate::history_text;
use crate::output::{self, Data, StandardStream};
use crate::saved_runs;

/// Runs the subcommand.
pub(super) fn run(arguments: &HistoryArguments) -> ProgramEnd {
    let list = HistoryCommand::List(arguments.list.clone());
    match execute(arguments.command.as_ref().unwrap_or(&list)) {
        Ok(end) => end,
        Err(error) => {
            output::print(StandardStream::Error, &format!("fathom: {error:#}\n"));
            ProgramEnd::Refused
        }
    }
}

fn execute(command: &HistoryCommand) -> Result<ProgramEnd> {
    let done = match command {
        HistoryCommand::Check(check) => return checked(check),
        HistoryCommand::Trend(trend) => print(&trends::trend(trend)?),
        HistoryCommand::List(list) => print(&listed(list)?),
        HistoryCommand::Show { run, json, record } => print(&shown(*run, *json, *record)?),
        HistoryCommand::Sql { query, json } => print(&answered(query, *json)?),
        HistoryCommand::Import { files, tags } => import(files, tags),
        HistoryCommand::Export {
            format,
            output,
            select,
        } => exports::export(*format, output.as_deref(), &selection(select, 0)),
        HistoryCommand::Prune {
            older_than,
            records_only,
            dry_run,
        } => {
            let age_ms = u64::from(*older_than) * 86_400_000;
            prune(&Prune {
                before_ms: clock::wall_ms().saturating_sub(age_ms),
                records_only: *records_only,
                dry_run: *dry_run,
            })
        }
        HistoryCommand::Backup { file } => reader()?.backup(file).map_err(with_its_hint),
    };
    done.map(|()| ProgramEnd::Printed)
}

fn checked(check: &CheckArguments) -> Result<ProgramEnd> {
    let (text, is_worse) = checks::check(check)?;
    print(&text)?;
    Ok(match is_worse {
        true => ProgramEnd::Judged,
        false => ProgramEnd::Printed,
    })
}

fn print(text: &str) -> Result<()> {
    Data::Stdout.add(text)
}

fn selection(select: &SelectArguments, last: u32) -> RunSelection {
    RunSelection {
        lab: select.lab.clone(),
        tags: select.tags.clone(),
        plan: select.plan,
        machine: select.machine,
        last,
        ..RunSelection::default()
    }
}

fn listed(list: &ListArguments) -> Result<String> {
    let history = reader()?;
    let rows = history
        .list(&selection(&list.select, list.last))
        .map_err(with_its_hint)?;
    if list.json {
        let rows: Vec<Value> = rows.iter().map(history_text::json).collect();
        return Ok(serde_json::to_string_pretty(&rows)? + "\n");
    }
    let mut measured = Vec::new();
    for row in rows {
        let measures = history.measures_of_run(row.id).map_err(with_its_hint)?;
        measured.push((row, measures));
    }
    Ok(history_text::list(&measured))
}

fn shown(run: i64, json: bool, record: bool) -> Result<String> {
    let history = reader()?;
    let row = history.show(RunId(run)).map_err(with_its_hint)?;
    if record {
        let record = history.record_of(row.id).map_err(with_its_hint)?;
        return Ok(record.with_context(|| format!("history: run {run} has no record"))? + "\n");
    }
    let measures = history.measures_of_run(row.id).map_err(with_its_hint)?;
    if !json {
        return Ok(history_text::show(&row, &measures));
    }
    let mut value = history_text::json(&row);
    value["measures"] = measures.iter().map(history_text::measure_json).collect();
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn answered(query: &str, json: bool) -> Result<String> {
    let answer = reader()?.sql(query).map_err(with_its_hint)?;
    if !json {
        return Ok(history_text::answer(&answer));
    }
    let rows = answer.rows.into_iter().map(|row| {
        let pairs = answer.columns.iter().cloned().zip(row);
        Value::Object(pairs.collect::<Map<_, _>>())
    });
    Ok(serde_json::to_string_pretty(&rows.collect::<Vec<_>>())? + "\n")
}

fn import(files: &[std::path::PathBuf], tags: &[(String, String)]) -> Result<()> {
    // All of them are read before the first one is added.
    let mut runs: Vec<(String, ImportedRun)> = Vec::new();
    for file in files {
        runs.extend(saved_runs::read(file)?);
    }
    let mut history = writer()?;
    let (mut added, mut known) = (0_u64, 0_u64);
    for (file, mut run) in runs {
        for note in &run.notes {
            output::print(
                StandardStream::Error,
                &format!("fathom: {file}: note: {note}\n"),
            );
        }
        run.run.tags.extend(tags.iter().cloned());
        match history.add_imported(&run).map_err(with_its_hint)? {
            Some(_) => added += 1,
            None => known += 1,
        }
    }
    let known = match known {
        0 => String::new(),
        known => format!("; {known} were there already"),
    };
    let runs = if added == 1 { "run" } else { "runs" };
    output::print(
        StandardStream::Error,
        &format!("fathom: {added} {runs} added{known}\n"),
    );
    Ok(())
}

fn prune(prune: &Prune) -> Result<()> {
    // Not `writer` at once: it would create a history that is not there.
    let mut history = reader()?;
    if !prune.dry_run {
        drop(history);
        history = writer()?;
    }
    let pruned = history.prune(prune).map_err(with_its_hint)?;
    let what = match (prune.records_only, prune.dry_run) {
        (true, true) => "records of runs would be removed",
        (true, false) => "records of runs removed",
        (false, true) => "runs would be removed",
        (false, false) => "runs removed",
    };
    let mut text = format!("fathom: {} {what}\n", pruned.count);
    if pruned.kept_with_labs > 0 {
        text.push_str(&format!(
            "fathom: note: {} older ones stay: a lab's runs go together, when its newest is old \
             enough\n",
            pruned.kept_with_labs
        ));
    }
    if let Some(error) = pruned.not_shrunk {
        text.push_str(&format!(
            "fathom: note: {error}: their space could not be given back to the disk; later runs \
             will reuse it\n"
        ));
    }
    output::print(StandardStream::Error, &text);
    Ok(())
}
