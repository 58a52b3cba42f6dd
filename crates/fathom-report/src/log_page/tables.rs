//! Tables of logs, and what to know about them.

use std::collections::BTreeMap;

use fathom_core::{Direction, IoPriority};
use fathom_stats::Histogram;

use super::columns::Merge;
use super::oddities::seconds;
use super::reduction::{Log, LogReduction};
use super::windows::Envelope;
use super::{KindSource, LogKind, Section, is_epoch};
use crate::page::Page;
use crate::percentile_curve::has_enough_beyond;

/// Returns a sentence on what the page shows.
pub(super) fn summary(reduction: &LogReduction) -> String {
    let logs = match reduction.logs.len() {
        1 => "1 log".to_owned(),
        logs => format!("{logs} logs"),
    };
    let lines = match reduction.lines() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    format!("{logs}, {lines}.")
}

/// Writes what to know about the numbers, log by log.
pub(super) fn caveats(page: &mut Page, reduction: &LogReduction) {
    let mut all: Vec<String> = Vec::new();
    for log in &reduction.logs {
        let name = &log.description.name;
        all.extend(
            sentences(log)
                .into_iter()
                .map(|one| format!("{name}: {one}")),
        );
    }
    if reduction.logs.len() > 1 {
        all.push(several(reduction).to_owned());
    }
    all.extend(twice(reduction));
    if all.is_empty() {
        page.paragraph("Nothing is odd about this log: no time goes back, and no gap stands out.");
    } else {
        page.list("caveats", &all);
    }
}

fn sentences(log: &Log) -> Vec<String> {
    let mut all = Vec::new();
    let described = &log.description;
    if described.kind_source == KindSource::Guess {
        all.push(
            "neither the file's name nor a column states the kind of the log; it is taken for lat, \
             in ns. Hint: state it, as in --kind clat"
                .to_owned(),
        );
    }
    if log.lines == 0 {
        all.push("it has no line".to_owned());
    }
    if log.is_averaged() {
        let of = match described.has_max {
            true => "averages over windows of time, with the largest value of each",
            false => "averages (or largest values) over windows of time",
        };
        all.push(format!(
            "its lines are {of}, not single ops: percentiles are those of windows, and say nothing \
             of single ops"
        ));
    }
    if log.unknown > 0 {
        let count = log.unknown;
        all.push(format!(
            "{count} lines are neither reads nor writes nor trims; they are left out"
        ));
    }
    all.extend(log.order.sentences(log.rows(), log.span_length_ms()));
    all.extend(log.notes.iter().cloned());
    all
}

/// Returns how several logs stand to each other.
fn several(reduction: &LogReduction) -> &'static str {
    let firsts = reduction.logs.iter().filter_map(|log| Some(log.span_ms?.0));
    let (epoch, own): (Vec<u64>, Vec<u64>) = firsts.partition(|first| is_epoch(*first));
    match (epoch.is_empty(), own.is_empty()) {
        (false, false) => {
            "some logs count their times from the epoch and others from the start of their job: \
             over time they do not belong together"
        }
        (false, true) => "the logs lie over each other by their times, which count from the epoch",
        (true, _) => {
            "the logs lie over each other by their times, each of which counts from the start of \
             its job: jobs that did not begin together are shifted"
        }
    }
}

/// Returns a sentence for each histogram log beside a log of the same ops.
fn twice(reduction: &LogReduction) -> impl Iterator<Item = String> {
    let names = || reduction.logs.iter().map(|log| &log.description.name);
    let pairs = names().filter_map(move |name| {
        let (base, number) = numbered(name);
        let base = base.strip_suffix("_hist")?;
        let other = names().find(|other| numbered(other) == (base, number))?;
        Some((name, other))
    });
    pairs.map(|(name, other)| {
        format!(
            "{name} and {other} are of the same ops: rows and figures of all logs count each op \
             twice. Hint: give one of the two"
        )
    })
}

/// Splits the name of a log, without its end, into base and number: `a_clat.1.log` into `a_clat`
/// and 1.
fn numbered(name: &str) -> (&str, Option<u64>) {
    let end = LOG_ENDS.iter().find_map(|end| name.strip_suffix(end));
    let rest = end.unwrap_or(name);
    let split = rest.rsplit_once('.');
    let numbered = split.and_then(|(base, number)| Some((base, number.parse().ok()?)));
    numbered.map_or((rest, None), |(base, number)| (base, Some(number)))
}

/// Writes a row for each log.
pub(super) fn logs(page: &mut Page, reduction: &LogReduction) {
    let rows = reduction.logs.iter().map(|log| {
        let described = &log.description;
        let directions = log.directions().map(|(direction, _)| direction.name());
        let directions = directions.collect::<Vec<_>>().join(", ");
        let (first, span) = match log.span_ms {
            Some((first, _)) => (seconds(first), seconds(log.span_length_ms())),
            None => (MISSING.to_owned(), MISSING.to_owned()),
        };
        vec![
            described.name.clone(),
            described.kind.word().to_owned(),
            described.kind_source.sentence().to_owned(),
            described.format.to_owned(),
            log.lines.to_string(),
            directions,
            first,
            span,
        ]
    });
    let heads = [
        "log",
        "kind",
        "kind known",
        "format",
        "lines",
        "directions",
        "first time, s",
        "span, s",
    ];
    page.table("Logs", &heads, &rows.collect::<Vec<_>>());
}

/// Writes percentiles of each direction of each log, and of all logs.
pub(super) fn values(page: &mut Page, section: &Section<'_>) {
    let mut rows = Vec::new();
    let mut merged: BTreeMap<Direction, (Histogram, Envelope)> = BTreeMap::new();
    for (log, name) in section.logs.iter().zip(&section.names) {
        for (direction, of_direction) in log.directions() {
            let (histogram, envelope) = (&of_direction.histogram, of_direction.envelope);
            let (_, divisor) = section.unit(log.is_averaged());
            let name = format!("{name}, {}", direction.name());
            rows.push(row(section.kind, name, (histogram, &envelope), divisor));
            let all = merged.entry(direction).or_default();
            all.0.merge(histogram);
            all.1.merge(envelope);
        }
    }
    let (unit, divisor) = section.unit(section.is_averaged());
    if section.logs.len() > 1 {
        for (direction, (histogram, envelope)) in &merged {
            let name = format!("all logs, {}", direction.name());
            rows.push(row(section.kind, name, (histogram, envelope), divisor));
        }
    }
    let caption = match section.is_averaged() {
        true => format!("{} of windows, {unit}", section.kind.word()),
        false => format!("{} of ops, {unit}", section.kind.word()),
    };
    write(page, section.kind, &caption, "log and direction", &rows);
}

/// Writes percentiles of each priority, if there are several.
pub(super) fn priorities(page: &mut Page, section: &Section<'_>) {
    let mut rows = Vec::new();
    let (unit, divisor) = section.unit(section.is_averaged());
    let is_whole = section
        .logs
        .iter()
        .any(|log| log.description.has_priorities);
    let all = Direction::ALL.into_iter().zip(&section.of_kind.directions);
    for (direction, course) in
        all.filter_map(|(direction, course)| Some((direction, course.as_ref()?)))
    {
        let mut each: Vec<_> = course.priorities.each.iter().collect();
        if each.len() < 2 {
            continue;
        }
        each.sort_by_key(|(priority, ..)| *priority);
        for (priority, histogram, envelope) in each {
            let name = format!("{}, {}", direction.name(), named(*priority, is_whole));
            rows.push(row(section.kind, name, (histogram, envelope), divisor));
        }
        if course.priorities.more > 0 {
            let name = format!("{}, lines of further priorities", direction.name());
            let mut cells = vec![name, course.priorities.more.to_string()];
            cells.resize(heads(section.kind, "").len(), MISSING.to_owned());
            rows.push(cells);
        }
    }
    if !rows.is_empty() {
        let caption = format!("{} by priority, {unit}", section.kind.word());
        write(
            page,
            section.kind,
            &caption,
            "direction and priority",
            &rows,
        );
    }
}

fn write(page: &mut Page, kind: LogKind, caption: &str, first: &str, rows: &[Vec<String>]) {
    let heads = heads(kind, first);
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    page.table(caption, &heads, rows);
}

fn heads(kind: LogKind, first: &str) -> Vec<String> {
    let before = [first, "lines", "smallest", "mean"].map(str::to_owned);
    let percents = percents(kind).iter().map(|percent| format!("p{percent}"));
    before
        .into_iter()
        .chain(percents)
        .chain(["largest".to_owned()])
        .collect()
}

fn row(
    kind: LogKind,
    name: String,
    (histogram, envelope): (&Histogram, &Envelope),
    divisor: f64,
) -> Vec<String> {
    let value = |value: f64| match divisor > 1.0 {
        true => format!("{:.2}", value / divisor),
        false => format!("{value:.0}"),
    };
    let mut row = vec![
        name,
        envelope.count.to_string(),
        value(envelope.least as f64),
        envelope.mean().map_or_else(|| MISSING.to_owned(), value),
    ];
    let percents = percents(kind);
    let values = histogram.percentiles(percents).zip(percents);
    row.extend(values.map(
        |(found, percent)| match has_enough_beyond(*percent, envelope.count) {
            true => value(found as f64),
            false => MISSING.to_owned(),
        },
    ));
    row.push(value(envelope.most as f64));
    row
}

/// Returns the percentiles of a table: of latencies the slow ones matter, of rates the low ones.
const fn percents(kind: LogKind) -> &'static [f64] {
    if kind.is_latency() {
        &[50.0, 90.0, 99.0, 99.9, 99.99]
    } else {
        &[1.0, 5.0, 25.0, 50.0, 75.0, 95.0]
    }
}

/// Returns the name of a priority.
pub(super) fn named(priority: u16, is_whole: bool) -> String {
    let found = IoPriority::from_raw(priority);
    let class = match found.class {
        0 => "no class",
        1 => "real time",
        2 => "best effort",
        3 => "idle",
        _ => "unknown class",
    };
    match is_whole {
        false if found.class == 1 => class.to_owned(),
        false => "not real time".to_owned(),
        true => format!("{class}, level {} (0x{priority:04x})", found.level),
    }
}

const MISSING: &str = "–";
/// Ends of the names of logs, the longest first.
const LOG_ENDS: [&str; 4] = [".log.fz", ".log", ".csv", ".parquet"];
