//! Frame of a panel: axes, ticks, labels and legend.

use super::canvas::{Anchor, Canvas, Place, SIZE};
use super::scale::Ruler;
use super::{MARGIN, Panel, Series, Shape, WIDTH, series, text};

/// Horizontal places that all panels share, so that their axes stand in line.
pub(super) struct Columns {
    left: f64,
    right: f64,
}

impl Columns {
    /// Leaves room for the widest tick label on the left and the widest name on the right.
    pub(super) fn of(panels: &[Panel]) -> Self {
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.fold(0.0, |widest: f64, name| {
                widest.max(text::width(&name, SIZE))
            })
        };
        let mut ticks = panels.iter().flat_map(|panel| {
            let ruler = up(panel);
            let labels = ruler.ticks.iter().map(|tick| ruler.label(*tick));
            labels.collect::<Vec<_>>()
        });
        let mut names = panels.iter().flat_map(legend_lines);
        let legend = widest(&mut names);
        let legend = if legend > 0.0 {
            LEGEND_GAP + SAMPLE + legend
        } else {
            0.0
        };
        Self {
            left: MARGIN + widest(&mut ticks) + TICK_GAP,
            right: WIDTH - MARGIN - legend - LEGEND_GAP,
        }
    }
}

/// Rectangle between the axes of a panel, and their scales.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Distance of the first and the last point from the ends.
    pub(super) inset: f64,
    pub(super) across: Ruler,
    pub(super) up: Ruler,
}

impl Frame {
    /// Returns the place of a point; `None` if a logarithmic axis has none.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<Place> {
        Some((self.x(x)?, self.y(y)?))
    }

    /// Returns the column of pixels in which a horizontal value lies.
    #[expect(clippy::cast_possible_truncation, reason = "casts saturate")]
    pub(super) fn column(&self, value: f64) -> Option<i64> {
        Some(self.x(value)?.floor() as i64)
    }

    /// Returns the number of columns of pixels.
    pub(super) fn columns(&self) -> f64 {
        self.right - self.left
    }

    /// Returns the upper left and the lower right corner.
    pub(super) const fn corners(&self) -> (Place, Place) {
        ((self.left, self.top), (self.right, self.bottom))
    }

    fn x(&self, value: f64) -> Option<f64> {
        let place = self.across.place(value)?;
        let (left, right) = (self.left + self.inset, self.right - self.inset);
        Some(place.mul_add(right - left, left))
    }

    fn y(&self, value: f64) -> Option<f64> {
        let place = self.up.place(value)?;
        Some(place.mul_add(self.top - self.bottom, self.bottom))
    }
}

/// Draws a panel below `top` and returns its lower end.
pub(super) fn draw(canvas: &mut Canvas, panel: &Panel, columns: &Columns, top: f64) -> f64 {
    let height = HEIGHT.max(legend_height(panel));
    let xs: Vec<f64> = points(panel).map(|(x, _)| x).collect();
    let has_steps = panel.series.iter().any(|one| one.shape == Shape::Step);
    let frame = Frame {
        left: columns.left,
        right: columns.right,
        top,
        bottom: top + height,
        // A histogram fills its frame.
        inset: if has_steps { 0.0 } else { INSET },
        across: Ruler::along(panel.across.scale, &xs),
        up: up(panel),
    };
    begin(canvas, &frame, (&panel.across.label, &panel.up.label), &[]);
    axes(canvas, &frame, (&panel.across.label, &panel.up.label));
    let is_marked = has_marked_lines(canvas, panel);
    for (series, shift) in panel.series.iter().zip(shifts(panel)) {
        let shape = match series.shape {
            Shape::Step => "step",
            Shape::Line | Shape::Scatter => "line",
        };
        canvas.begin("series", &[("name", &series.name), ("shape", shape)]);
        series::draw(canvas, &frame, series, shift);
        if is_marked {
            series::mark_line(canvas, &frame, series);
        }
        canvas.end();
    }
    legend(canvas, panel, (frame.right + LEGEND_GAP, top + 6.0));
    canvas.end();
    frame.bottom + LABEL_BELOW + 4.0
}

/// Begins the group of a panel: with its frame and axes, a script can tell values from places.
pub(super) fn begin(
    canvas: &mut Canvas,
    frame: &Frame,
    (across, up): (&str, &str),
    more: &[(&str, &str)],
) {
    let Frame {
        left,
        right,
        top,
        bottom,
        inset,
        ..
    } = frame;
    let sides = format!("{left:.2} {top:.2} {right:.2} {bottom:.2} {inset}");
    let (x, y) = (frame.across.description(), frame.up.description());
    let mut facts = vec![("frame", &*sides), ("x", &*x), ("y", &*y)];
    facts.extend([("across", across), ("up", up)]);
    facts.extend(more);
    canvas.begin("panel", &facts);
}

/// Draws both axes with their labels.
pub(super) fn axes(canvas: &mut Canvas, frame: &Frame, (across, up): (&str, &str)) {
    canvas.text((MARGIN, frame.top - 12.0), Anchor::Start, up);
    canvas.begin("ticks-y", &[]);
    up_axis(canvas, frame);
    canvas.end();
    canvas.begin("ticks-x", &[]);
    across_axis(canvas, frame);
    canvas.end();
    let middle = f64::midpoint(frame.left, frame.right);
    canvas.text((middle, frame.bottom + LABEL_BELOW), Anchor::Middle, across);
}

fn up_axis(canvas: &mut Canvas, frame: &Frame) {
    let ticks = &frame.up.ticks;
    // Labels need a line's height each.
    let room = (frame.bottom - frame.top) / count(ticks.len());
    let every = step(&|every| room * count(every) >= SIZE * 1.3);
    for (at, &tick) in ticks.iter().enumerate() {
        let Some(y) = frame.y(tick) else { continue };
        canvas.line((frame.left, y), (frame.right, y), "grid");
        if at % every == 0 {
            let place = (frame.left - TICK_GAP + 2.0, y + 4.0);
            canvas.text(place, Anchor::End, &frame.up.label(tick));
        }
    }
    canvas.line((frame.left, frame.top), (frame.left, frame.bottom), "axis");
}

fn across_axis(canvas: &mut Canvas, frame: &Frame) {
    let bottom = frame.bottom;
    canvas.line((frame.left, bottom), (frame.right, bottom), "axis");
    let ticks: Vec<(f64, String)> = (frame.across.ticks.iter())
        .filter_map(|tick| Some((frame.x(*tick)?, frame.across.label(*tick))))
        .collect();
    let every = step(&|every| fits(&ticks, every));
    for (at, (x, label)) in ticks.iter().enumerate() {
        canvas.line((*x, bottom), (*x, bottom + 4.0), "axis");
        if at % every == 0 {
            canvas.text((*x, bottom + 18.0), Anchor::Middle, label);
        }
    }
}

/// Returns whether every n-th label has a gap to its neighbour.
fn fits(ticks: &[(f64, String)], every: usize) -> bool {
    let labelled: Vec<_> = ticks.iter().step_by(every).collect();
    labelled.windows(2).all(|pair| {
        let half = |label: &str| text::width(label, SIZE) / 2.0;
        pair[1].0 - pair[0].0 >= half(&pair[0].1) + half(&pair[1].1) + 6.0
    })
}

/// Returns the least step between labelled ticks for which there is room.
pub(super) fn step(fits: &dyn Fn(usize) -> bool) -> usize {
    (1..STEP_MAX).find(|every| fits(*every)).unwrap_or(STEP_MAX)
}

fn legend(canvas: &mut Canvas, panel: &Panel, at: Place) {
    let mut y = at.1;
    let is_marked = has_marked_lines(canvas, panel);
    for one in panel.series.iter().filter(|one| !one.name.is_empty()) {
        canvas.begin("key", &[("name", &one.name)]);
        series::sample(canvas, one, (at.0, y), SAMPLE - 8.0);
        if is_marked {
            series::mark_sample(canvas, one, (at.0, y), SAMPLE - 8.0);
        }
        for line in name_lines(one) {
            canvas.text((at.0 + SAMPLE, y + 4.0), Anchor::Start, &line);
            y += LEGEND_LINE;
        }
        canvas.end();
        y += LEGEND_SPACE;
    }
}

/// Returns whether the lines of a panel need markers: several, without colours.
fn has_marked_lines(canvas: &Canvas, panel: &Panel) -> bool {
    canvas.is_paper() && panel.series.len() > 1
}

fn legend_height(panel: &Panel) -> f64 {
    let lines = count(legend_lines(panel).len());
    lines * LEGEND_LINE + count(panel.series.len()) * LEGEND_SPACE
}

fn legend_lines(panel: &Panel) -> Vec<String> {
    panel.series.iter().flat_map(name_lines).collect()
}

fn name_lines(series: &Series) -> Vec<String> {
    text::wrapped(&series.name, SIZE, NAME_WIDTH)
}

/// Returns the horizontal shift of each series' intervals, which would cover each other.
fn shifts(panel: &Panel) -> Vec<f64> {
    let has_intervals = |one: &Series| one.points.iter().any(|point| point.interval.is_some());
    let bars = panel.series.iter().filter(|one| has_intervals(one)).count();
    let apart = BARS_APART.min(2.0 * SHIFT_MAX / count(bars.saturating_sub(1).max(1)));
    let mut shift = -apart * count(bars.saturating_sub(1)) / 2.0;
    let shifts = panel.series.iter().map(|one| {
        let own = shift;
        shift += if has_intervals(one) { apart } else { 0.0 };
        own
    });
    shifts.collect()
}

/// Returns the ruler of a panel's vertical axis.
fn up(panel: &Panel) -> Ruler {
    let values: Vec<f64> = points(panel).filter_map(|(_, y)| y).collect();
    Ruler::up(panel.up.scale, &values)
}

/// Returns all points of a panel, and the ends of their intervals.
fn points(panel: &Panel) -> impl Iterator<Item = (f64, Option<f64>)> {
    let points = panel.series.iter().flat_map(|series| &series.points);
    points.flat_map(|point| {
        let ends = point
            .interval
            .map_or([None; 2], |(low, high)| [Some(low), Some(high)]);
        let ends = ends.into_iter().flatten().map(|end| (point.x, Some(end)));
        std::iter::once((point.x, point.y)).chain(ends)
    })
}

#[expect(clippy::cast_precision_loss, reason = "a few lines")]
pub(super) const fn count(lines: usize) -> f64 {
    lines as f64
}

/// Least height of a frame, in pixels; a long legend makes it higher.
pub(super) const HEIGHT: f64 = 220.0;
/// Room between the ends of the horizontal axis and the first and last point: markers and
/// intervals would cover axis and labels.
const INSET: f64 = 16.0;
/// Distance between the intervals of two series.
const BARS_APART: f64 = 6.0;
/// Largest shift of an interval to either side; with its end it lies within the inset.
const SHIFT_MAX: f64 = 12.0;
/// Distance between the vertical axis and its labels.
pub(super) const TICK_GAP: f64 = 8.0;
/// Distance from the horizontal axis to its label's base line.
pub(super) const LABEL_BELOW: f64 = 36.0;
/// Distance between frame and legend: half the width of the last tick label.
pub(super) const LEGEND_GAP: f64 = 24.0;
/// Width of a sample in the legend, with the space after it.
const SAMPLE: f64 = 40.0;
pub(super) const LEGEND_LINE: f64 = 15.0;
const LEGEND_SPACE: f64 = 4.0;
/// Width at which a name is wrapped.
const NAME_WIDTH: f64 = 170.0;
/// More ticks than an axis has.
const STEP_MAX: usize = 64;
