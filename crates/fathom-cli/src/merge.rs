//! `fathom merge`: the records of ranks, added up into one report.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueHint};
use fathom_core::OutputFormat;
use fathom_host::output_file::Stop;
use fathom_hosts::{Mark, Spread};
use fathom_job::{Dialect, Settings};
use fathom_record::{HostResult, HostSum, Record, RecordError};
use fathom_report::ClientStats;
use fathom_stats::Improves;
use fathom_sys::signals::{self, Interrupts};

use crate::exit::ProgramEnd;
use crate::failure::with_hint;
use crate::output::{self, Data, StandardStream, printable_lines};
use crate::report::Report;
use crate::run_command;
use crate::spared_inputs;

/// Arguments of `fathom merge`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArguments {
    /// Folders of records (rank-0000.json…), and records
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Formats: normal, terse, json, json+; separated by commas [default: normal]
    #[arg(long, value_name = "FORMATS", value_delimiter = ',', value_parser = format)]
    output_format: Vec<OutputFormat>,
    /// Print JSON in the schema of `fio --client`: jobs by host, and their sum
    #[arg(long)]
    client_stats: bool,
    /// Write the report to a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<String>,
    /// Write the sum as a record
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  fathom run --rank=0/2 --start-at=17:30:00Z --record=out/ job.fio   # one host
  fathom run --rank=1/2 --start-at=17:30:00Z --record=out/ job.fio   # another
  fathom merge out/
  fathom merge --output-format=json out/rank-0000.json out/rank-0001.json";

/// Adds the records up and prints the report.
pub(crate) fn run(arguments: &MergeArguments) -> ProgramEnd {
    match merged(arguments) {
        Ok(end) => end,
        Err(error) => {
            let text = format!("fathom: merge: {error:#}\n");
            output::print(StandardStream::Error, &printable_lines(&text));
            ProgramEnd::NotReported
        }
    }
}

fn interrupts() -> Result<Interrupts> {
    Interrupts::install().context("signals")
}

fn merged(arguments: &MergeArguments) -> Result<ProgramEnd> {
    let interrupts = interrupts()?;
    let stop = Stop::when(move || interrupts.count() > 0);
    let settings = Settings {
        formats: arguments.output_format.clone(),
        output: arguments.output.clone(),
        ..Settings::default()
    };
    let data = Data::new(settings.output.as_deref());
    let mut report = Report::new(Dialect::Fathom, &settings, data);
    // The names in a record may come from any host.
    report.write_out_controls();
    report.check()?;
    report.stop_when(&stop);
    let file = arguments.record.as_deref();
    let mut file = file.map(|path| Data::file("--record", path));
    if let Some(file) = &mut file {
        file.check()?;
        file.stop_when(&stop);
    }
    let mut clients = clients(arguments)?;
    if interrupts.count() > 0 {
        bail!("interrupted before the first record");
    }
    // Nothing is written while the records are read, and a signal that is only counted would not
    // end the wait for a file that does not come.
    signals::restore_default_stop();
    let files = files(&arguments.paths)?;
    let outputs = [
        ("--output", &arguments.output),
        ("--record", &arguments.record),
    ];
    for (option, path) in outputs {
        let Some(path) = path else { continue };
        spared_inputs::check(option, Path::new(path), &files)?;
    }
    let files = in_order_of_rank(files)?;
    let sum = sum(&files, &mut clients)?;
    self::interrupts()?;
    let documents = clients.into_iter();
    report.replace(
        documents
            .map(|(format, stats)| (format, stats.document(&sum)))
            .collect(),
    );
    report.print_record(&sum);
    report.finish()?;
    if let Some(mut file) = file {
        let json = sum.to_json()?;
        file.add(&format!("{json}\n"))
            .and_then(|()| file.finish())?;
    }
    let is_missing = sum
        .warnings
        .iter()
        .any(|one| INCOMPLETE.contains(&one.code.as_str()));
    Ok(match run_command::ended(&sum, false) {
        ProgramEnd::Ran {
            failed_jobs: 0,
            tolerated_errors: 0,
            ..
        } if is_missing => ProgramEnd::Judged,
        end => end,
    })
}

/// Returns the reports in the schema of fio's client, by format.
fn clients(arguments: &MergeArguments) -> Result<Vec<(OutputFormat, ClientStats)>> {
    if !arguments.client_stats {
        return Ok(Vec::new());
    }
    let stats = client_stats(&arguments.output_format);
    if stats.is_empty() {
        let why = "--client-stats is about JSON, which is not among the formats";
        return Err(with_hint(why, Some("add --output-format=json")));
    }
    Ok(stats)
}

/// Returns an empty report in the schema of fio's client for each of the formats that are JSON.
pub(crate) fn client_stats(formats: &[OutputFormat]) -> Vec<(OutputFormat, ClientStats)> {
    let documents = formats.iter().filter(|format| format.is_document());
    let stats =
        documents.map(|&format| (format, ClientStats::new(format == OutputFormat::JsonPlus)));
    stats.collect()
}

/// Returns the files that the user names; of a folder, the records of ranks in it.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let shown = || path.display().to_string();
        let entries = fs::read_dir(path).with_context(shown)?;
        let entries = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut found: Vec<PathBuf> = entries.collect::<Result<_, _>>().with_context(shown)?;
        found.retain(|file| is_record_of_rank(file));
        if found.is_empty() {
            let hint = "`fathom run --rank=N/M --record=FOLDER` writes one per rank";
            let why = format!("{}: no record of a rank (rank-0000.json…)", shown());
            return Err(with_hint(why, Some(hint)));
        }
        files.append(&mut found);
    }
    Ok(files)
}

fn is_record_of_rank(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    let middle = name.and_then(|name| name.strip_prefix("rank-")?.strip_suffix(".json"));
    middle.is_some_and(|middle| middle.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Sorts the records by their ranks, so that names and order do not matter. Those without a rank
/// come last, where they are refused.
fn in_order_of_rank(files: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let ranked = files.into_iter().map(|path| {
        let shown = || path.display().to_string();
        // Not asked of the open file: opening a FIFO would wait for its writer.
        if !fs::metadata(&path).with_context(shown)?.is_file() {
            bail!("{}: not a regular file", shown());
        }
        let file = File::open(&path).with_context(shown)?;
        let head = BufReader::new(file.take(RECORD_BYTES_MAX));
        Ok((Record::rank_in(head).unwrap_or(u32::MAX), path))
    });
    let mut ranked: Vec<(u32, PathBuf)> = ranked.collect::<Result<_>>()?;
    ranked.sort();
    Ok(ranked.into_iter().map(|(_, path)| path).collect())
}

/// Reads, adds and drops one record after the other.
fn sum(files: &[PathBuf], clients: &mut [(OutputFormat, ClientStats)]) -> Result<Record> {
    let mut sum = HostSum::new();
    for (number, path) in files.iter().enumerate() {
        let record = read(path).with_context(|| path.display().to_string())?;
        for (_, stats) in &mut *clients {
            stats.add(&record);
        }
        sum.add(record).map_err(|error| {
            let before = number.checked_sub(1).and_then(|before| files.get(before));
            let before = before.map_or_else(String::new, |before| {
                format!(" (the one before is {})", before.display())
            });
            anyhow!("{}: {error}{before}", path.display())
        })?;
    }
    let mut sum = sum.finish().context("no record")?;
    mark(&mut sum);
    Ok(sum)
}

/// Marks the results of hosts that are slower or faster than the others of a section and direction:
/// by IOPS, or where these are even, as under a rate, by mean latency.
pub(crate) fn mark(sum: &mut Record) {
    type Figure = fn(&HostResult) -> f64;
    let figures: [(Figure, Improves); 2] = [
        (HostResult::iops, Improves::Upwards),
        (|result| result.mean_ns, Improves::Downwards),
    ];
    let section = |result: &HostResult| (result.job.clone(), result.direction.clone());
    let mut values: HashMap<_, [Vec<f64>; 2]> = HashMap::new();
    for result in sum.hosts.iter().flat_map(|host| &host.results) {
        let of_section = values.entry(section(result)).or_default();
        for (values, (figure, _)) in of_section.iter_mut().zip(figures) {
            values.push(figure(result));
        }
    }
    let spread = |values: [Vec<f64>; 2]| {
        let pairs = values.into_iter().zip(figures);
        let spreads = pairs.map(|(values, (_, improves))| Spread::of(&values, improves));
        spreads.collect::<Vec<_>>()
    };
    let spreads: HashMap<_, _> = values
        .into_iter()
        .map(|(section, values)| (section, spread(values)))
        .collect();
    for result in sum.hosts.iter_mut().flat_map(|host| &mut host.results) {
        let of_section = spreads.get(&section(result)).into_iter().flatten();
        let marks = of_section.zip(figures);
        let mut marks =
            marks.filter_map(|(spread, (figure, _))| spread.as_ref()?.mark(figure(result)));
        let word = marks.next().map(|mark| match mark {
            Mark::Slow => "slow",
            Mark::Fast => "fast",
        });
        result.mark = word.map(str::to_owned);
    }
}

fn read(path: &Path) -> Result<Record> {
    let file = File::open(path)?;
    let length = usize::try_from(file.metadata()?.len().min(RECORD_BYTES_MAX)).unwrap_or(0);
    let mut text = String::with_capacity(length + 1);
    let read = file.take(RECORD_BYTES_MAX + 1).read_to_string(&mut text);
    read.context("not a record of a run")?;
    if text.len() as u64 > RECORD_BYTES_MAX {
        bail!("more than {} MiB", RECORD_BYTES_MAX >> 20);
    }
    if let Some(record) = Record::if_known(&text) {
        return Ok(record);
    }
    Record::from_json(&text).map_err(|error| match &error {
        RecordError::Json { source, .. } if source.is_eof() && !text.trim().is_empty() => {
            anyhow!("a record that is cut short, after {} bytes", text.len())
        }
        // Its display has the source.
        _ => anyhow!("{error}"),
    })
}

fn format(name: &str) -> Result<OutputFormat, String> {
    OutputFormat::parse(name.trim()).ok_or_else(|| {
        let names = OutputFormat::NAMES.map(|(name, _)| name);
        format!("use {}", names.join(", "))
    })
}

/// Codes of warnings about sums that lack something.
const INCOMPLETE: [&str; 2] = ["ranks_missing", "ranks_cut"];

/// Largest record of a rank; one of 100 jobs has some 3 MiB.
const RECORD_BYTES_MAX: u64 = 64 << 20;
