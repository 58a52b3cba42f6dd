//! Intervals one below the other: a row for each comparison, its estimate, the ends of its
//! interval, and the changes that are too small to matter shaded.
//!
//! ```text
//! iodepth=4, fair   |░░░░|░░░░|    ├──◇──┤     better
//! iodepth=8, fair   |░░░├┼○┤░░|                 same
//!                  -2    0    +2   +4   +6   change, %
//! ```

use super::canvas::{Anchor, Canvas, Medium, SIZE, colour};
use super::scale::Ruler;
use super::{Draw, MARGIN, Scale, WIDTH, text, title};

/// Picture of intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals {
    /// Title, wrapped to the width of the picture.
    pub title: String,
    /// Quantity and unit of the horizontal axis.
    pub label: String,
    /// Value at which a line stands, such as no change.
    pub zero: Option<f64>,
    /// Rows, from top to bottom.
    pub rows: Vec<IntervalRow>,
}

/// Row of a picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalRow {
    /// Name on the left.
    pub name: String,
    /// Words on the right, such as the verdict.
    pub note: String,
    /// Estimate; `None`: missing.
    pub value: Option<f64>,
    /// Ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// Values that are too near to each other to matter.
    pub band: Option<(f64, f64)>,
    /// Number of the colour and marker.
    pub style: usize,
}

impl Draw for Intervals {
    fn title(&self) -> &str {
        &self.title
    }

    fn drawn(&self, medium: Medium) -> (Canvas, f64) {
        let mut canvas = Canvas::new(medium);
        let top = title(&mut canvas, &self.title);
        let frame = Frame::of(self, top + GAP);
        frame.bands(&mut canvas, &self.rows);
        frame.axis(&mut canvas, self);
        for (at, row) in self.rows.iter().enumerate() {
            frame.row(&mut canvas, row, at);
        }
        (canvas, frame.bottom + LABEL_BELOW + MARGIN)
    }
}

/// Rectangle of the values, and its scale.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    across: Ruler,
    ends: (f64, f64),
}

impl Frame {
    fn of(picture: &Intervals, top: f64) -> Self {
        let rows = &picture.rows;
        let widest = |texts: &mut dyn Iterator<Item = &String>, most: f64| {
            let widths = texts.map(|name| text::width(name, SIZE));
            widths.fold(0.0, f64::max).min(most)
        };
        let names = widest(&mut rows.iter().map(|row| &row.name), NAME_WIDTH);
        let notes = widest(&mut rows.iter().map(|row| &row.note), NOTE_WIDTH);
        let ends = ends(picture);
        Self {
            left: MARGIN + names + GAP,
            right: WIDTH - MARGIN - notes - GAP,
            top,
            bottom: top + ROW * count(rows.len()),
            across: Ruler::along(Scale::Linear, &[ends.0, ends.1]),
            ends,
        }
    }

    /// Returns the place of a value, within the frame.
    fn x(&self, value: f64) -> f64 {
        let value = value.clamp(self.ends.0, self.ends.1);
        let place = self.across.place(value).unwrap_or(0.0);
        place.mul_add(self.right - self.left, self.left)
    }

    /// Shades each row's band; those of equal neighbours are one.
    fn bands(&self, canvas: &mut Canvas, rows: &[IntervalRow]) {
        let mut from = 0;
        for part in rows.chunk_by(|one, other| one.band == other.band) {
            let top = ROW.mul_add(count(from), self.top);
            from += part.len();
            if let Some((low, high)) = part[0].band {
                let bottom = ROW.mul_add(count(from), self.top);
                canvas.band((self.x(low), top), (self.x(high), bottom));
            }
        }
    }

    fn axis(&self, canvas: &mut Canvas, picture: &Intervals) {
        for &tick in &self.across.ticks {
            let x = self.x(tick);
            canvas.line((x, self.top), (x, self.bottom), "grid");
        }
        if let Some(zero) = picture.zero {
            let x = self.x(zero);
            canvas.line((x, self.top), (x, self.bottom), "axis");
        }
        canvas.line((self.left, self.bottom), (self.right, self.bottom), "axis");
        let mut free = f64::NEG_INFINITY;
        for &tick in &self.across.ticks {
            let (x, label) = (self.x(tick), self.across.label(tick));
            canvas.line((x, self.bottom), (x, self.bottom + 4.0), "axis");
            let half = text::width(&label, SIZE) / 2.0;
            if x - half >= free {
                canvas.text((x, self.bottom + 18.0), Anchor::Middle, &label);
                free = x + half + 6.0;
            }
        }
        let middle = f64::midpoint(self.left, self.right);
        let place = (middle, self.bottom + LABEL_BELOW);
        canvas.text(place, Anchor::Middle, &picture.label);
    }

    fn row(&self, canvas: &mut Canvas, row: &IntervalRow, at: usize) {
        let y = ROW.mul_add(count(at) + 0.5, self.top);
        let name = text::cut(&row.name, SIZE, NAME_WIDTH);
        canvas.text((self.left - GAP, y + 4.0), Anchor::End, &name);
        let note = text::cut(&row.note, SIZE, NOTE_WIDTH);
        canvas.text((self.right + GAP, y + 4.0), Anchor::Start, &note);
        let class = format!("thin {}", colour(row.style));
        let is_known = |(low, high): &(f64, f64)| !low.is_nan() && !high.is_nan();
        if let Some((low, high)) = row.interval.filter(is_known) {
            canvas.line((self.x(low), y), (self.x(high), y), &class);
            for (end, inwards) in [(low, 1.0), (high, -1.0)] {
                self.end(canvas, end, (y, inwards), &class);
            }
        }
        if let Some(value) = row.value.filter(|value| value.is_finite()) {
            let class = format!("mark {}", colour(row.style));
            canvas.marker((self.x(value), y), row.style, &class);
        }
    }

    /// Draws the end of an interval: a bar, or the tip of an arrow if it lies beyond the frame.
    fn end(&self, canvas: &mut Canvas, value: f64, (y, inwards): (f64, f64), class: &str) {
        let x = self.x(value);
        if value < self.ends.0 || value > self.ends.1 {
            let back = 5.0_f64.mul_add(inwards, x);
            canvas.polyline(&[(back, y - 4.0), (x, y), (back, y + 4.0)], class);
        } else {
            canvas.line((x, y - 4.0), (x, y + 4.0), class);
        }
    }
}

/// Returns the ends of the axis. Values far beyond the others, as of a cell that is hardly known,
/// are cut off: they would press all others together.
fn ends(picture: &Intervals) -> (f64, f64) {
    let zero = picture.zero.into_iter();
    let bands = picture.rows.iter().filter_map(|row| row.band);
    let needed = zero.chain(bands.flat_map(|(low, high)| [low, high]));
    let estimates = picture.rows.iter().filter_map(|row| row.value);
    let inner: Vec<f64> = needed
        .chain(estimates)
        .filter(|one| one.is_finite())
        .collect();
    let least = inner.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let most = inner.iter().copied().reduce(f64::max).unwrap_or(1.0);
    let room = ((most - least) * BEYOND).max(f64::MIN_POSITIVE);
    let intervals = picture.rows.iter().filter_map(|row| row.interval);
    let (mut low, mut high) = (least, most);
    for (from, to) in intervals.filter(|(from, to)| from.is_finite() && to.is_finite()) {
        low = low.min(from.max(least - room));
        high = high.max(to.min(most + room));
    }
    let pad = ((high - low) * 0.03).max(1e-9);
    (low - pad, high + pad)
}

#[expect(clippy::cast_precision_loss, reason = "a few rows")]
const fn count(rows: usize) -> f64 {
    rows as f64
}

/// Height of a row.
const ROW: f64 = 18.0;
/// Distance between the parts of a row.
const GAP: f64 = 10.0;
/// Distance from the horizontal axis to its label's base line.
const LABEL_BELOW: f64 = 36.0;
/// Most room for names and notes: a picture is 800 wide.
const NAME_WIDTH: f64 = 280.0;
const NOTE_WIDTH: f64 = 150.0;
/// Room beyond the estimates for intervals, relative to the range of the estimates.
const BEYOND: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::faults;

    fn row(name: &str, value: f64, (low, high): (f64, f64)) -> IntervalRow {
        IntervalRow {
            name: name.into(),
            note: "unclear".into(),
            value: Some(value),
            interval: Some((low, high)),
            band: Some((-2.0, 2.0)),
            style: 0,
        }
    }

    fn picture(rows: Vec<IntervalRow>) -> Intervals {
        Intervals {
            title: "write.bw".into(),
            label: "change, %".into(),
            zero: Some(0.0),
            rows,
        }
    }

    #[test]
    fn rows_stay_apart_and_within_the_picture() {
        let long =
            "a name that is far too long for the room on the left of a picture of this width";
        let rows = (0..30).map(|at| row(long, f64::from(at) - 9.0, (-12.0, 22.0)));
        let svg = picture(rows.collect()).drawing();
        assert_eq!(faults(&svg), [""; 0], "{svg}");
        assert_eq!(
            svg.matches("class=\"band\"").count(),
            1,
            "equal bands are one"
        );
        let other = IntervalRow {
            band: Some((-5.0, 5.0)),
            ..row("b", 1.0, (0.0, 2.0))
        };
        let svg = picture(vec![row("a", 1.0, (0.0, 2.0)), other]).drawing();
        assert_eq!(svg.matches("class=\"band\"").count(), 2);
    }

    #[test]
    fn an_interval_far_beyond_the_others_ends_in_an_arrow() {
        let rows = vec![row("a", 1.0, (0.5, 1.5)), row("b", 2.0, (-90.0, 900.0))];
        let picture = picture(rows);
        assert!(ends(&picture).1 < 20.0 && ends(&picture).0 > -20.0);
        assert_eq!(picture.figure().matches("<polyline").count(), 2);
    }

    #[test]
    fn nothing_is_drawn_of_values_that_are_none() {
        let mut none = row("a", f64::NAN, (f64::NEG_INFINITY, f64::INFINITY));
        none.band = None;
        let mut missing = row("b", 0.0, (0.0, 0.0));
        (missing.value, missing.interval) = (None, None);
        let svg = picture(vec![none, missing]).figure();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!picture(Vec::new()).figure().contains("NaN"));
    }
}
