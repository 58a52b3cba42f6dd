//! Graphs of the view: the rate by second, and the heat map.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::draw::{Glyphs, put};
use super::units::{count, time};
use crate::live::{Column, HeatRow, Track};

/// Draws ops per second, of all directions: a column for each second, the latest at the right.
pub(super) fn course(buffer: &mut Buffer, area: Rect, track: &Track, glyphs: Glyphs) {
    let columns = visible(track, area);
    let rates: Vec<u64> = columns.iter().map(|column| rate(column)).collect();
    let top = rates.iter().copied().max().unwrap_or(0);
    put(buffer, area, 0, &format!("{:>LABEL$}", count(top)), dim());
    if area.height > 1 {
        put(
            buffer,
            area,
            area.height - 1,
            &format!("{:>LABEL$}", 0),
            dim(),
        );
    }
    let steps = glyphs.bars.len();
    let cells = usize::from(area.height) * steps;
    for (x, rate) in rates.iter().enumerate() {
        let scaled = u128::from(*rate) * cells as u128;
        let filled = usize::try_from(scaled.div_ceil(u128::from(top.max(1)))).unwrap_or(cells);
        for row in 0..usize::from(area.height) {
            let part = filled.saturating_sub(row * steps).min(steps);
            if part > 0 {
                let y = area.bottom() - 1 - cell(row);
                set(
                    buffer,
                    (area.x + GRAPH_X + cell(x), y),
                    glyphs.bars[part - 1],
                );
            }
        }
    }
}

/// Draws latency by second: each row a range of latencies, the denser, the larger the share of the
/// second's ops.
pub(super) fn heat(buffer: &mut Buffer, area: Rect, track: &Track, glyphs: Glyphs) {
    let columns = visible(track, area);
    let rows = || {
        columns
            .iter()
            .flat_map(|column| &column.heat)
            .map(|(row, _)| row.number())
    };
    let (Some(low), Some(high)) = (rows().min(), rows().max()) else {
        put(buffer, area, 0, "no latencies yet", dim());
        return;
    };
    // Rows of the map that share a line of the screen.
    let merged = (high - low + 1).div_ceil(usize::from(area.height.max(1)));
    let lines = (high - low) / merged + 1;
    for line in 0..lines {
        let lower = HeatRow::from_number(low + line * merged).lower_ns();
        let y = cell(lines - 1 - line);
        put(
            buffer,
            area,
            y,
            &format!("{:>LABEL$}", time(Some(lower))),
            dim(),
        );
    }
    for (x, column) in columns.iter().enumerate() {
        let mut shares = vec![0_u64; lines];
        for (row, ops) in &column.heat {
            shares[(row.number() - low) / merged] += ops;
        }
        let all = shares.iter().sum::<u64>().max(1) as f64;
        for (line, ops) in shares.iter().enumerate().filter(|(_, ops)| **ops > 0) {
            let share = (*ops as f64 / all).sqrt() * glyphs.shades.len() as f64;
            let y = area.y + cell(lines - 1 - line);
            set(
                buffer,
                (area.x + GRAPH_X + cell(x), y),
                glyphs.shades[level(share)],
            );
        }
    }
}

/// Returns the level of a share that was scaled to the number of levels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 0, and at most the number of levels"
)]
fn level(share: f64) -> usize {
    (share.ceil() as usize).clamp(1, SHADES) - 1
}

/// Returns the latest seconds, as many as there is room for.
fn visible(track: &Track, area: Rect) -> Vec<&Column> {
    let room = usize::from(area.width.saturating_sub(GRAPH_X));
    let skipped = track.columns.len().saturating_sub(room);
    track.columns.iter().skip(skipped).collect()
}

fn rate(column: &Column) -> u64 {
    column.per_second(column.ios.iter().sum())
}

fn set(buffer: &mut Buffer, at: (u16, u16), glyph: char) {
    if let Some(cell) = buffer.cell_mut(at) {
        cell.set_char(glyph);
    }
}

fn cell(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

const fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Shades of the heat map.
pub(super) const SHADES: usize = 5;
/// Characters of a label, and of the gap after it.
const LABEL: usize = 8;
const GRAPH_X: u16 = 9;
