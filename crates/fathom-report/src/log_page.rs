//! The page of I/O logs, of ours or of fio's.
//!
//! ```text
//! lines ─► LogReduction: sums, histograms, columns of time ─► log_page: tables and figures
//! ```
//!
//! The reduction takes one line after the other, and its memory does not depend on their number; no
//! value is lost on the way that a figure would show: each column of time keeps its smallest and
//! largest.

mod columns;
mod counted;
mod distributions;
mod heat;
mod kind;
mod oddities;
mod offset_figures;
mod offsets;
mod over_time;
mod reduction;
mod tables;
mod windows;

use std::collections::BTreeSet;

pub use counted::LogHistogram;
pub use kind::{KindSource, LogKind};
use reduction::{KindOfLogs, Log};
pub use reduction::{LogDescription, LogReduction, LogSample};

use crate::page::Page;

/// Returns the page of the logs that were read.
#[must_use]
pub fn log_page(reduction: &LogReduction, title: &str) -> Page {
    let mut page = Page::new(title);
    write(&mut page, reduction, "What to know about these numbers");
    page
}

/// Adds logs of a run to its page.
pub(crate) fn add_logs(page: &mut Page, reduction: &LogReduction) {
    page.heading(2, "I/O logs of this run");
    write(page, reduction, "What to know about the logs");
}

fn write(page: &mut Page, reduction: &LogReduction, caveats: &str) {
    page.paragraph(&tables::summary(reduction));
    page.heading(2, caveats);
    tables::caveats(page, reduction);
    tables::logs(page, reduction);
    let mut shown = BTreeSet::new();
    for (kind, of_kind) in LogKind::ALL.into_iter().zip(&reduction.kinds) {
        let section = Section::new(reduction, kind, of_kind);
        if section.logs.is_empty() {
            continue;
        }
        page.heading(2, kind.quantity());
        if section.lines() == 0 {
            page.paragraph("No line was logged.");
            continue;
        }
        tables::values(page, &section);
        tables::priorities(page, &section);
        distributions::figures(page, &section);
        over_time::values(page, &section);
        // The same ops stand in the logs of each kind.
        if section.has_ops() && shown.insert("rates") {
            over_time::rates(page, &section);
        }
        if section.has_offsets() && shown.insert("offsets") {
            offset_figures::figures(page, &section);
        }
    }
}

/// Logs of one kind.
struct Section<'a> {
    kind: LogKind,
    of_kind: &'a KindOfLogs,
    logs: Vec<&'a Log>,
    /// Names of the logs, as short as they can be told apart.
    names: Vec<String>,
    /// Time that figures begin to count from, ms.
    origin_ms: u64,
}

impl<'a> Section<'a> {
    fn new(reduction: &'a LogReduction, kind: LogKind, of_kind: &'a KindOfLogs) -> Self {
        let all = reduction.logs.iter();
        let logs: Vec<&Log> = all.filter(|log| log.description.kind == kind).collect();
        let first = reduction.logs.iter().filter_map(|log| Some(log.span_ms?.0));
        let first_ms = first.min().unwrap_or(0);
        Self {
            kind,
            of_kind,
            names: logs
                .iter()
                .map(|log| log.description.name.clone())
                .collect(),
            logs,
            origin_ms: if is_epoch(first_ms) { first_ms } else { 0 },
        }
    }

    fn lines(&self) -> u64 {
        self.logs.iter().map(|log| log.lines - log.unknown).sum()
    }

    /// Returns whether each line is the average of a window.
    fn is_averaged(&self) -> bool {
        let mut with_lines = self.logs.iter().filter(|log| log.lines > 0);
        with_lines.all(|log| log.is_averaged())
    }

    /// Returns whether single ops are logged.
    fn has_ops(&self) -> bool {
        self.logs
            .iter()
            .any(|log| log.lines > 0 && !log.is_averaged())
    }

    fn has_offsets(&self) -> bool {
        let mut directions = self.logs.iter().flat_map(|log| log.directions());
        directions.any(|(_, of_direction)| {
            let offsets = of_direction.offsets.as_ref();
            offsets.is_some_and(|offsets| offsets.seeks().ops > 0)
        })
    }

    /// Returns whether the values say nothing: fio logs a 1 for each op as its IOPS.
    fn is_count(&self) -> bool {
        self.kind == LogKind::Iops && !self.is_averaged()
    }

    const fn unit(&self, is_averaged: bool) -> (&'static str, f64) {
        self.kind.unit(is_averaged)
    }

    /// Returns a time for an axis, s.
    fn seconds(&self, time_ms: u64) -> f64 {
        time_ms.saturating_sub(self.origin_ms) as f64 / 1e3
    }

    /// Returns the label of a horizontal axis of times.
    const fn time_label(&self) -> &'static str {
        if self.origin_ms == 0 {
            "time since the start of the job, s"
        } else {
            "time since the first line, s"
        }
    }
}

/// Returns whether a log's times count from the epoch: no job runs for years.
const fn is_epoch(time_ms: u64) -> bool {
    const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
    time_ms > 10 * YEAR_MS
}

#[cfg(test)]
mod tests;
