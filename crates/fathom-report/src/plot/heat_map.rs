//! Heat maps: two axes, and a colour for the value of each cell.

use super::canvas::{Anchor, Canvas, Medium, SIZE};
use super::palette::{self, LEVELS};
use super::panel::{self, Frame, TICK_GAP};
use super::raster::{Raster, whole};
use super::scale::Ruler;
use super::{Draw, MARGIN, PANEL_GAP, Scale, WIDTH, text};

/// Picture of a value that depends on two quantities, as ops on time and latency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// Title, wrapped to the width of the picture.
    pub title: String,
    /// Horizontal axis.
    pub across: HeatAxis,
    /// Vertical axis.
    pub up: HeatAxis,
    /// Values of the cells by column, from left to right, in each from the bottom to the top;
    /// `None`, and what is missing: nothing there, which shows as the page's own colour.
    pub cells: Vec<Vec<Option<f64>>>,
    /// Quantity of a cell, with its unit: the title of the colours.
    pub quantity: String,
    /// Distances between the colours of two values.
    pub colours: Scale,
}

/// Axis of a heat map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatAxis {
    /// Quantity and unit.
    pub label: String,
    /// Cells.
    pub cells: HeatCells,
}

/// Cells along an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum HeatCells {
    /// Ranges of a quantity: the ends of all cells, ascending, one more than there are cells.
    Ranges(Vec<f64>, Scale),
    /// Values that are not quantities, or whose distances mean nothing: cells of equal width.
    Names(Vec<String>),
}

impl Default for HeatCells {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl HeatAxis {
    /// Creates an axis of ranges.
    #[must_use]
    pub fn ranges(label: impl Into<String>, ends: Vec<f64>, scale: Scale) -> Self {
        Self {
            label: label.into(),
            cells: HeatCells::Ranges(ends, scale),
        }
    }

    /// Creates an axis of names.
    #[must_use]
    pub fn names(
        label: impl Into<String>,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            label: label.into(),
            cells: HeatCells::Names(names.into_iter().map(Into::into).collect()),
        }
    }

    /// Returns the number of cells.
    #[must_use]
    pub fn count(&self) -> usize {
        match &self.cells {
            HeatCells::Ranges(ends, _) => ends.len().saturating_sub(1),
            HeatCells::Names(names) => names.len(),
        }
    }

    fn ruler(&self) -> Ruler {
        match &self.cells {
            HeatCells::Ranges(ends, scale) => Ruler::along(*scale, ends),
            HeatCells::Names(names) => Ruler::names(names),
        }
    }

    /// Returns the ends of a cell on the ruler.
    fn ends(&self, cell: usize) -> Option<(f64, f64)> {
        match &self.cells {
            HeatCells::Ranges(ends, _) => Some((*ends.get(cell)?, *ends.get(cell + 1)?)),
            HeatCells::Names(_) => Some((panel::count(cell), panel::count(cell + 1))),
        }
    }
}

impl Draw for HeatMap {
    fn title(&self) -> &str {
        &self.title
    }

    fn drawn(&self, medium: Medium) -> (Canvas, f64) {
        let mut canvas = Canvas::new(medium);
        let mut bottom = super::title(&mut canvas, &self.title);
        let values: Vec<f64> = self.values().map(|(.., value)| value).collect();
        let colours = Ruler::along(self.colours, &values);
        let frame = self.frame(&colours, bottom + PANEL_GAP);
        self.begin(&mut canvas, &frame, &colours);
        panel::axes(&mut canvas, &frame, (&self.across.label, &self.up.label));
        let raster = self.raster(&frame, &colours);
        canvas.begin("cells", &[]);
        canvas.image(frame.corners(), &raster, &palette::heat);
        canvas.end();
        self.texts(&mut canvas, &frame, &colours);
        if !values.is_empty() {
            let low = self.legend(&mut canvas, &frame, &colours);
            bottom = low;
        }
        canvas.end();
        (
            canvas,
            bottom.max(frame.bottom + panel::LABEL_BELOW + 4.0) + MARGIN,
        )
    }
}

impl HeatMap {
    /// Returns column, row and value of each cell that has a finite one.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let (columns, rows) = (self.across.count(), self.up.count());
        let all = self.cells.iter().take(columns).enumerate();
        all.flat_map(move |(column, cells)| {
            let cells = cells.iter().take(rows).enumerate();
            cells.filter_map(move |(row, value)| {
                Some((column, row, value.filter(|value| value.is_finite())?))
            })
        })
    }

    /// Begins the group of the map, with what a script needs to tell values from colours.
    fn begin(&self, canvas: &mut Canvas, frame: &Frame, colours: &Ruler) {
        let values = colours.description();
        let names = [("x-names", &self.across), ("y-names", &self.up)].map(|(key, axis)| {
            let names = match &axis.cells {
                HeatCells::Ranges(..) => None,
                HeatCells::Names(names) => Some(names),
            };
            names.map(|names| (key, names.join(SEPARATOR)))
        });
        let mut facts = vec![
            ("heat", ""),
            ("values", &*values),
            ("quantity", &*self.quantity),
        ];
        let names = names.iter().flatten();
        facts.extend(names.map(|(key, names)| (*key, &**names)));
        panel::begin(canvas, frame, (&self.across.label, &self.up.label), &facts);
    }

    fn frame(&self, colours: &Ruler, top: f64) -> Frame {
        let up = self.up.ruler();
        let widest = |labels: &mut dyn Iterator<Item = String>| {
            labels.fold(0.0, |widest: f64, label| {
                widest.max(text::width(&label, SIZE))
            })
        };
        let ticks = widest(&mut up.ticks.iter().map(|tick| up.label(*tick)));
        let labels = widest(&mut colours.ticks.iter().map(|tick| colours.label(*tick)));
        let title = widest(&mut text::wrapped(&self.quantity, SIZE, QUANTITY_WIDTH).into_iter());
        let legend = title.max(BAR + TICK_GAP + labels);
        let height = match &self.up.cells {
            HeatCells::Names(names) => (panel::count(names.len()) * NAME_HEIGHT).clamp(44.0, 2e3),
            HeatCells::Ranges(..) => panel::HEIGHT,
        };
        Frame {
            left: MARGIN + ticks + TICK_GAP,
            right: WIDTH - MARGIN - legend - panel::LEGEND_GAP,
            top,
            bottom: top + height,
            inset: 0.0,
            across: self.across.ruler(),
            up,
        }
    }

    /// Returns the cells as pixels.
    fn raster(&self, frame: &Frame, colours: &Ruler) -> Raster {
        let ((left, top), (right, bottom)) = frame.corners();
        let mut raster = Raster::over(right - left, bottom - top);
        let sides = (f64::from(raster.width()), f64::from(raster.height()));
        for (column, row, value) in self.values() {
            let corners = self.across.ends(column).zip(self.up.ends(row));
            let places = corners.and_then(|((left, right), (low, high))| {
                let (left, low) = (frame.across.place(left)?, frame.up.place(low)?);
                let (right, high) = (frame.across.place(right)?, frame.up.place(high)?);
                Some((
                    left * sides.0,
                    right * sides.0,
                    low * sides.1,
                    high * sides.1,
                ))
            });
            if let Some((left, right, low, high)) = places {
                let upper_left = (left.round(), (sides.1 - high).round());
                let lower_right = (right.round(), (sides.1 - low).round());
                raster.raise(upper_left, lower_right, level(colours, value));
            }
        }
        raster
    }

    /// Writes the values into the cells of names, if all have room.
    fn texts(&self, canvas: &mut Canvas, frame: &Frame, colours: &Ruler) {
        let is_table = |axis: &HeatAxis| matches!(axis.cells, HeatCells::Names(_));
        if !is_table(&self.across) || !is_table(&self.up) {
            return;
        }
        let cell = (frame.right - frame.left) / panel::count(self.across.count().max(1));
        let has_room = |value| text::width(&short(value), SIZE) + 4.0 <= cell;
        if !self.values().all(|(.., value)| has_room(value)) {
            return;
        }
        for (column, row, value) in self.values() {
            let middle = (panel::count(column) + 0.5, panel::count(row) + 0.5);
            if let Some((x, y)) = frame.place(middle.0, middle.1) {
                canvas.label((x, y + 4.0), level(colours, value), &short(value));
            }
        }
    }

    /// Draws the colours beside the frame and returns the lower end.
    fn legend(&self, canvas: &mut Canvas, frame: &Frame, colours: &Ruler) -> f64 {
        let left = frame.right + panel::LEGEND_GAP;
        let mut top = frame.top + 4.0;
        for line in text::wrapped(&self.quantity, SIZE, QUANTITY_WIDTH) {
            canvas.text((left, top), Anchor::Start, &line);
            top += panel::LEGEND_LINE;
        }
        let bottom = frame.bottom.max(top + BAR_HEIGHT_MIN);
        let mut bar = Raster::new(1, u32::from(LEVELS));
        for level in 1..=LEVELS {
            let row = f64::from(LEVELS - level);
            bar.raise((0.0, row), (1.0, row), level);
        }
        canvas.begin("bar", &[]);
        canvas.image(((left, top), (left + BAR, bottom)), &bar, &palette::heat);
        canvas.end();
        let place = |value| Some(bottom - colours.place(value)? * (bottom - top));
        let room = (bottom - top) / panel::count(colours.ticks.len().max(1));
        let every = panel::step(&|every| room * panel::count(every) >= SIZE * 1.3);
        for tick in colours.ticks.iter().step_by(every) {
            if let Some(y) = place(*tick) {
                canvas.line((left + BAR, y), (left + BAR + 3.0, y), "axis");
                let at = (left + BAR + TICK_GAP - 2.0, y + 4.0);
                canvas.text(at, Anchor::Start, &colours.label(*tick));
            }
        }
        bottom
    }
}

/// Returns the level of a value's colour; the lowest is not the absence of a value.
fn level(colours: &Ruler, value: f64) -> u8 {
    let place = colours.place(value).unwrap_or(0.0).clamp(0.0, 1.0);
    let steps = f64::from(LEVELS - 1);
    u8::try_from(whole(place * steps)).map_or(LEVELS, |step| step.min(LEVELS - 1) + 1)
}

/// Formats a value with three digits.
fn short(value: f64) -> String {
    super::scale::number(value)
}

/// Mark between names in one attribute; a name that has it is cut there, in the reading alone.
const SEPARATOR: &str = "␟";
/// Height of a cell with a name.
const NAME_HEIGHT: f64 = 22.0;
/// Width of the bar of colours.
const BAR: f64 = 14.0;
const BAR_HEIGHT_MIN: f64 = 60.0;
/// Width at which the title of the colours is wrapped.
const QUANTITY_WIDTH: f64 = 110.0;

#[cfg(test)]
mod tests {
    use super::super::faults;
    use super::*;

    fn map(columns: u32, rows: u32) -> HeatMap {
        let ends = |count: u32| (0..=count).map(|at| f64::from(at + 1)).collect();
        HeatMap {
            title: "t <b>".into(),
            across: HeatAxis::ranges("time, s", ends(columns), Scale::Linear),
            up: HeatAxis::ranges("latency, µs", ends(rows), Scale::Logarithmic),
            cells: vec![vec![Some(1.0); rows as usize]; columns as usize],
            quantity: "ops in a cell".into(),
            colours: Scale::Auto,
        }
    }

    #[track_caller]
    fn drawn(map: &HeatMap) -> String {
        for svg in [map.document(), map.drawing()] {
            assert_eq!(faults(&svg), [""; 0], "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        map.drawing()
    }

    fn frame(map: &HeatMap) -> (Frame, Ruler) {
        let values: Vec<f64> = map.values().map(|(.., value)| value).collect();
        let colours = Ruler::along(map.colours, &values);
        (map.frame(&colours, 0.0), colours)
    }

    #[test]
    fn one_large_cell_among_many_is_seen() {
        let mut map = map(10_000, 3);
        map.cells[4321][1] = Some(1e6);
        let (frame, colours) = frame(&map);
        let raster = map.raster(&frame, &colours);
        assert!(raster.has(LEVELS) && raster.has(1));
        drawn(&map);
    }

    #[test]
    fn pictures_have_one_image_for_paper_and_two_for_screens() {
        let map = map(3, 3);
        // The cells, and the bar of colours.
        assert_eq!(map.drawing().matches("<image").count(), 2);
        assert_eq!(map.figure().matches("<image").count(), 4);
        assert!(map.figure().contains("t &lt;b&gt;"));
    }

    #[test]
    fn cells_of_names_have_their_values_if_there_is_room() {
        let names = |count: u32| (0..count).map(|at| format!("a rather long name {at}"));
        let mut map = HeatMap {
            across: HeatAxis::names("depth", names(3)),
            up: HeatAxis::names("size", names(30)),
            ..map(3, 30)
        };
        map.cells[2][7] = Some(123_456.0);
        map.cells[0][0] = None;
        assert!(drawn(&map).contains(">123.46k</text>"));
        map.across = HeatAxis::names("depth", names(100));
        assert!(!drawn(&map).contains(">123.46k</text>"));
    }

    #[test]
    fn maps_may_be_empty_or_odd() {
        drawn(&HeatMap::default());
        let mut odd = map(2, 2);
        odd.cells = vec![
            vec![Some(f64::NAN), Some(f64::INFINITY), Some(-1.0)],
            vec![],
        ];
        drawn(&odd);
        odd.cells = vec![vec![Some(0.0), Some(-5.0)]];
        drawn(&odd);
        odd.across = HeatAxis::ranges("", vec![2.0], Scale::Linear);
        drawn(&odd);
        odd.up = HeatAxis::ranges("", vec![0.0, 0.0, f64::NAN], Scale::Logarithmic);
        drawn(&odd);
    }

    #[test]
    fn levels_go_from_the_least_to_the_largest_value() {
        let mut map = map(1, 3);
        map.cells[0] = vec![Some(1.0), Some(10.0), Some(1e4)];
        let (_, colours) = frame(&map);
        let levels = [1.0, 10.0, 1e4].map(|value| level(&colours, value));
        assert_eq!(levels, [1, 17, LEVELS]);
    }
}
