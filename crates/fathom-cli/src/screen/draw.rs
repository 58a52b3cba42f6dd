//! The figures on the cells of a screen.
//!
//! ```text
//! running  12.5 s  40 %  …                  header
//! ops per second    ▁▃▅█                    course
//! read  last second  812k …  p50 p90 p99    latencies
//! latency           ░▒▓█                    heat map
//! job  state  in flight …                   jobs
//! vda  87 % busy …                          disks
//! warnings, keys
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::graphs::{self, SHADES};
use super::keys::ViewState;
use super::units::{bytes, count, time};
use crate::live::{DirectionRow, Figures, LatencyRow, Row, RunPhase, SHOWN_PERCENTILES};

/// Draws everything.
pub(super) fn draw(buffer: &mut Buffer, figures: &Figures, view: &ViewState, glyphs: Glyphs) {
    let all = buffer.area;
    if all.width < WIDTH_MIN || all.height < HEIGHT_MIN {
        put(buffer, all, 0, "too small for --live:", Style::new());
        let size = format!(
            "{}x{}, needs {WIDTH_MIN}x{HEIGHT_MIN}",
            all.width, all.height
        );
        put(buffer, all, 1, &size, Style::new());
        return;
    }
    let (row, members) = selected(figures, view);
    let rates = rates(row);
    let warnings = warnings(figures);
    let parts = Parts::of(all, rates.len(), members.len(), warnings.len());
    put(
        buffer,
        all,
        0,
        &header(figures, view, all.width),
        reversed(),
    );
    put(buffer, parts.course, 0, "ops per second, by second", bold());
    let track = figures.tracks.get(view.track).or(figures.tracks.first());
    if let Some(track) = track {
        graphs::course(buffer, below(parts.course), track, glyphs);
    }
    table(buffer, parts.rates, RATES_HEAD, &rates, 0);
    put(
        buffer,
        parts.heat,
        0,
        "latency by second; denser: a larger share of its ops",
        bold(),
    );
    if let Some(track) = track {
        graphs::heat(buffer, below(parts.heat), track, glyphs);
    }
    let first = view.first_row.min(members.len().saturating_sub(1));
    table(buffer, parts.jobs, JOBS_HEAD, &members, first);
    put(buffer, parts.disks, 0, &disks(figures), Style::new());
    for (y, text) in (0..parts.warnings.height).zip(&warnings) {
        put(buffer, parts.warnings, y, text, bold());
    }
    let last = Rect {
        y: all.bottom() - 1,
        height: 1,
        ..all
    };
    put(buffer, last, 0, &keys_line(figures, view), reversed());
    if view.help {
        help(buffer, all);
    }
}

/// Areas of the screen.
struct Parts {
    course: Rect,
    rates: Rect,
    heat: Rect,
    jobs: Rect,
    disks: Rect,
    warnings: Rect,
}

impl Parts {
    /// Divides a screen. Tables get what they need, graphs what is left.
    fn of(all: Rect, rates: usize, jobs: usize, warnings: usize) -> Self {
        let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        // Header, keys, disks; titles of course and heat map; heads of two tables.
        let rates = lines(rates).min(6) + 1;
        let warnings = lines(warnings).clamp(1, if all.height < 40 { 1 } else { 4 });
        let free = all.height.saturating_sub(3 + 2 + 1 + rates + warnings);
        let jobs = lines(jobs).clamp(1, (free * 2 / 5).max(1));
        let course = ((free - jobs) / 3).max(1);
        let heat = free - jobs - course;
        let mut y = all.y + 1;
        let mut next = |height: u16| {
            let area = Rect { y, height, ..all };
            y += height;
            area
        };
        Self {
            course: next(course + 1),
            rates: next(rates),
            heat: next(heat + 1),
            jobs: next(jobs + 1),
            disks: next(1),
            warnings: next(warnings),
        }
    }
}

/// Returns the number of rows of the table of jobs: one for each direction of a group or job.
pub(super) fn job_rows(figures: &Figures, view: &ViewState) -> usize {
    selected(figures, view).1.len()
}

/// Returns the row of the selected jobs, and those of its groups and jobs.
fn selected<'a>(figures: &'a Figures, view: &ViewState) -> (&'a Row, Vec<Vec<String>>) {
    let group = view.track.checked_sub(1);
    let group = group.and_then(|place| figures.groups.get(place));
    let rows: Vec<&Row> = match group {
        None => figures.groups.iter().chain(&figures.jobs).collect(),
        Some(group) => {
            let jobs = figures.jobs.iter();
            jobs.filter(|job| job.group == group.group).collect()
        }
    };
    let mut members: Vec<Vec<String>> = rows.into_iter().flat_map(member).collect();
    if group.is_none() && figures.more_jobs > 0 {
        members.push(vec![format!("{} more jobs", figures.more_jobs)]);
    }
    (group.unwrap_or(&figures.total), members)
}

/// Returns the lines of a group or job: one for each direction.
fn member(row: &Row) -> Vec<Vec<String>> {
    let in_flight = row
        .in_flight
        .map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
    let first = || {
        let depth = format!("{in_flight}/{}", row.depth);
        vec![row.name.clone(), row.state.clone(), depth]
    };
    if row.directions.is_empty() {
        return vec![first()];
    }
    let line = |one: &DirectionRow| {
        let mut line = first();
        line.extend([
            one.direction.to_owned(),
            count(one.iops),
            bytes(one.bytes_per_s),
        ]);
        let [p50, _p90, p99, p999] = percentiles(one.last.as_ref());
        line.extend([p50, p99, p999]);
        line
    };
    row.directions.iter().map(line).collect()
}

/// Returns two lines for each direction: the last second, and the run.
fn rates(row: &Row) -> Vec<Vec<String>> {
    let of_direction = |one: &DirectionRow| {
        let mut last = vec![format!("{} last second", one.direction), count(one.iops)];
        last.push(bytes(one.bytes_per_s));
        last.extend(percentiles(one.last.as_ref()));
        let mut run = vec![format!("{} whole run", one.direction)];
        run.extend([format!("{} ops", count(one.ios)), bytes(one.bytes)]);
        run.extend(percentiles(one.run.as_ref()));
        [last, run]
    };
    row.directions.iter().flat_map(of_direction).collect()
}

fn percentiles(row: Option<&LatencyRow>) -> [String; SHOWN_PERCENTILES.len()] {
    let none = LatencyRow::default();
    row.unwrap_or(&none).percentiles_ns.map(time)
}

/// Draws a table from a row on. Numbers are at the right of their columns; names get the room that
/// is left.
fn table(
    buffer: &mut Buffer,
    area: Rect,
    head: &[(&str, usize)],
    rows: &[Vec<String>],
    first: usize,
) {
    let room = usize::from(area.width).saturating_sub(80).min(28);
    let heads: Vec<String> = head.iter().map(|(name, _)| (*name).to_owned()).collect();
    let lines = std::iter::once(&heads).chain(rows.iter().skip(first));
    for (y, line) in (0..area.height).zip(lines) {
        let mut text = String::new();
        for (at, (cell, (_, width))) in line.iter().zip(head).enumerate() {
            let width = if at == 0 { width + room } else { *width };
            let cell: String = cell.chars().take(width).collect();
            text += &match at {
                0 => format!("{cell:<width$}"),
                _ => format!(" {cell:>width$}"),
            };
        }
        put(
            buffer,
            area,
            y,
            &text,
            if y == 0 { bold() } else { Style::new() },
        );
    }
}

fn header(figures: &Figures, view: &ViewState, width: u16) -> String {
    let mut parts = vec![format!("fathom run: {}", figures.phase.name())];
    // First: a narrow screen has no room for all.
    parts.extend(view.paused.then(|| "PAUSED".to_owned()));
    parts.push(format!("{:.1} s", figures.elapsed_ms as f64 / 1000.0));
    parts.extend(figures.percent.map(|percent| format!("{percent:.0} %")));
    let eta = figures.eta_s.filter(|_| figures.phase == RunPhase::Running);
    parts.extend(eta.map(|seconds| format!("about {seconds} s left")));
    parts.push(format!(
        "{} of {} jobs run",
        figures.running, figures.planned
    ));
    let track = figures.tracks.get(view.track);
    parts.push(track.map_or_else(|| "all".to_owned(), |track| track.name.clone()));
    format!(" {:<width$}", parts.join("  "), width = usize::from(width))
}

fn disks(figures: &Figures) -> String {
    let each = figures.disks.iter().map(|disk| {
        format!(
            "{}: {:.0} % busy, {:.1} queued, {}/s, {}/s",
            disk.name,
            disk.util_percent,
            disk.queue,
            count(disk.iops),
            bytes(disk.bytes_per_s)
        )
    });
    let each: Vec<String> = each.collect();
    match each.is_empty() {
        true => "disks: none under the files of these jobs".to_owned(),
        false => each.join("   "),
    }
}

/// Returns the latest warnings first.
fn warnings(figures: &Figures) -> Vec<String> {
    let count = figures.warnings.len() as u64 + figures.more_warnings;
    let latest = figures.warnings.iter().rev();
    let numbered = (0_u64..).zip(latest);
    numbered
        .map(|(at, text)| format!("warning {} of {count}: {text}", count - at))
        .collect()
}

fn keys_line(figures: &Figures, view: &ViewState) -> String {
    let stop = match (figures.phase, view.stopped) {
        (RunPhase::Stopping, _) | (_, true) => "stopping; Ctrl-C again aborts without a report",
        _ => "q stop",
    };
    format!(" p pause  g group  j/k jobs  ? help  {stop}{:200}", "")
}

fn help(buffer: &mut Buffer, all: Rect) {
    let area = Rect {
        x: all.x + 2,
        y: all.y + 2,
        width: all.width - 4,
        height: cell(HELP.len()).min(all.height - 4),
    };
    for (y, line) in (0..area.height).zip(HELP) {
        let line = format!(" {line:<width$}", width = usize::from(area.width));
        put(buffer, area, y, &line, reversed());
    }
}

/// Characters of the graphs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glyphs {
    /// Bars of rising height; the last one fills a cell.
    pub(super) bars: &'static [char],
    /// Shades of rising density.
    pub(super) shades: [char; SHADES],
}

impl Glyphs {
    /// Blocks, for terminals with UTF-8.
    pub(super) const BLOCKS: Self = Self {
        bars: &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        shades: ['·', '░', '▒', '▓', '█'],
    };
    /// Characters that every terminal has.
    pub(super) const ASCII: Self = Self {
        bars: &['#'],
        shades: ['.', ':', '+', '*', '#'],
    };

    /// Returns those that the locale allows.
    pub(super) fn of_locale() -> Self {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"];
        let mut values = names.iter().filter_map(std::env::var_os);
        let locale = values.find(|value| !value.is_empty()).unwrap_or_default();
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        match locale.contains("utf-8") || locale.contains("utf8") {
            true => Self::BLOCKS,
            false => Self::ASCII,
        }
    }
}

/// Writes text on a line of an area, cut at its end.
pub(super) fn put(buffer: &mut Buffer, area: Rect, y: u16, text: &str, style: Style) {
    if y < area.height {
        buffer.set_stringn(area.x, area.y + y, text, usize::from(area.width), style);
    }
}

/// Returns an area without its first line.
const fn below(area: Rect) -> Rect {
    Rect {
        x: area.x,
        y: area.y + 1,
        width: area.width,
        height: area.height - 1,
    }
}

fn cell(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

const fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

const fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// Heads of the columns, and their widths: 80 characters in all.
const RATES_HEAD: &[(&str, usize)] = &[
    ("rates and latencies", 20),
    ("IOPS", 11),
    ("bytes/s", 11),
    ("p50", 8),
    ("p90", 8),
    ("p99", 8),
    ("p99.9", 8),
];
const JOBS_HEAD: &[(&str, usize)] = &[
    ("job", 12),
    ("state", 10),
    ("in flight", 9),
    ("", 5),
    ("IOPS", 6),
    ("bytes/s", 8),
    ("p50", 7),
    ("p99", 7),
    ("p99.9", 7),
];

const HELP: &[&str] = &[
    "p, blank   pause and resume the view; the run goes on",
    "g, Tab     next group; G, Shift-Tab: the one before",
    "j, k       move the table of jobs",
    "q, Ctrl-C  stop the run: ops in flight are awaited, and the report is printed",
    "           a second Ctrl-C ends it at once, without a report",
    "Ctrl-Z     stop the whole process; `fg` continues it",
    "?          this help",
    "",
    "last second: rates and latencies since about a second ago; latencies within 1/16.",
    "A percentile with fewer than ten ops beyond it is not shown.",
    "These figures are for watching. The report at the end has the numbers to use.",
];

/// Smallest screen that holds the tables.
const WIDTH_MIN: u16 = 60;
const HEIGHT_MIN: u16 = 18;

#[cfg(test)]
mod tests;
