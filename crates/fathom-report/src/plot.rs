//! Plots as plain SVG: no script, one style sheet for light and dark, panels one below the other.
//!
//! A [`Plot`] is data: panels of series in the units of their axes. [`Plot::svg`] chooses the
//! scales (`scale.rs`), places title, axes and legend by the estimated widths of their texts
//! (`text.rs`, `panel.rs`) and draws each series into the frame of its panel (`series.rs`). A
//! [`HeatMap`] (`heat_map.rs`) draws cells into the same frame, as pixels (`raster.rs`).

mod canvas;
mod decimate;
mod draw;
mod faults;
mod heat_map;
mod intervals;
mod palette;
mod panel;
mod raster;
mod scale;
mod series;
pub(crate) mod text;

pub use canvas::style_sheet;
pub use faults::faults;
pub use heat_map::{HeatAxis, HeatCells, HeatMap};
pub use intervals::{IntervalRow, Intervals};

pub(crate) use draw::Draw;

use canvas::{Canvas, Medium};
use panel::Columns;

/// Picture: a title above panels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Title, wrapped to the width of the picture.
    pub title: String,
    /// Panels, from top to bottom.
    pub panels: Vec<Panel>,
}

/// Pair of axes with series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Horizontal axis; it begins at the least value.
    pub across: Axis,
    /// Vertical axis; it begins at zero if it is linear.
    pub up: Axis,
    /// Series, in the order of the legend.
    pub series: Vec<Series>,
}

/// Axis of a panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Distances between values.
    pub scale: Scale,
}

/// Distances between the values of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Logarithmic if the values are positive and span more than two decades, else linear.
    #[default]
    Auto,
    /// Linear.
    Linear,
    /// Logarithmic if the values are positive, else linear.
    Logarithmic,
    /// Logarithmic, with ticks at powers of two.
    Doubling,
    /// As `Doubling`, for bytes: ticks are labelled in KiB, MiB, ….
    Bytes,
}

/// Values of one variant or source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Shape.
    pub shape: Shape,
    /// Number of the colour, dashes and marker. Series of one variant share it; published figures
    /// differ from measured ones by their markers.
    pub style: usize,
    /// Published figures: a hollow marker at each.
    pub is_published: bool,
    /// Points, ascending along the horizontal axis.
    pub points: Vec<Point>,
}

/// Shape of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Straight lines between neighbours; none across a missing point.
    #[default]
    Line,
    /// Horizontal lines: each value holds up to the next point, the last one there only.
    Step,
    /// Markers alone.
    Scatter,
}

/// Point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value; `None`: missing.
    pub y: Option<f64>,
    /// Ends of the interval of `y`.
    pub interval: Option<(f64, f64)>,
}

impl Plot {
    /// Draws the picture as a document of its own.
    #[must_use]
    pub fn svg(&self) -> String {
        self.document()
    }
}

impl Draw for Plot {
    fn title(&self) -> &str {
        &self.title
    }

    fn drawn(&self, medium: Medium) -> (Canvas, f64) {
        let columns = Columns::of(&self.panels);
        let mut canvas = Canvas::new(medium);
        let mut bottom = title(&mut canvas, &self.title);
        for panel in &self.panels {
            bottom = panel::draw(&mut canvas, panel, &columns, bottom + PANEL_GAP);
        }
        (canvas, bottom + MARGIN)
    }
}

/// Writes the title of a picture and returns its lower end.
fn title(canvas: &mut Canvas, title: &str) -> f64 {
    let mut bottom = MARGIN;
    for line in text::balanced(title, TITLE_SIZE, WIDTH - 2.0 * MARGIN) {
        bottom += TITLE_LINE;
        canvas.title((MARGIN, bottom - 4.0), TITLE_SIZE, &line);
    }
    bottom
}

impl Axis {
    /// Creates an axis.
    #[must_use]
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        let label = label.into();
        Self { label, scale }
    }
}

impl Series {
    /// Creates a series of measured or modelled figures, joined by lines.
    #[must_use]
    pub fn measured(
        name: impl Into<String>,
        style: usize,
        points: impl IntoIterator<Item = Point>,
    ) -> Self {
        Self {
            name: name.into(),
            style,
            points: points.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Creates a series of published figures.
    #[must_use]
    pub fn published(
        name: impl Into<String>,
        style: usize,
        points: impl IntoIterator<Item = Point>,
    ) -> Self {
        Self {
            is_published: true,
            ..Self::measured(name, style, points)
        }
    }

    /// Returns whether there is something to draw.
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.points.iter().any(|point| point.y.is_some())
    }
}

impl Point {
    /// Creates a point without an interval.
    #[must_use]
    pub const fn new(x: f64, y: Option<f64>) -> Self {
        let interval = None;
        Self { x, y, interval }
    }
}

/// Width of a picture, in pixels: what a page of text shows without scaling.
const WIDTH: f64 = 800.0;
const MARGIN: f64 = 12.0;
/// Space above a panel, with the label of its vertical axis.
const PANEL_GAP: f64 = 40.0;
const TITLE_SIZE: f64 = 14.0;
const TITLE_LINE: f64 = 18.0;

#[cfg(test)]
mod tests;
