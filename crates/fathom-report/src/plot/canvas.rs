//! SVG elements and their style sheet.

use std::fmt::Write as _;

use super::palette::{self, DARK, LIGHT, Palette, Scheme};
use super::raster::Raster;
use crate::markup::{attribute, escaped};

/// Place in the picture, in pixels from its upper left corner.
pub(super) type Place = (f64, f64);

/// End of a text at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Medium of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// In light or dark, as the reader prefers.
    Screen,
    /// Black and greys on white.
    Paper,
}

/// Elements drawn so far.
pub(crate) struct Canvas {
    medium: Medium,
    elements: String,
}

impl Canvas {
    pub(super) const fn new(medium: Medium) -> Self {
        Self {
            medium,
            elements: String::new(),
        }
    }

    /// Begins a group of elements with a class, and facts about it for the script of a page.
    pub(super) fn begin(&mut self, class: &str, facts: &[(&str, &str)]) {
        let facts = facts.iter();
        let facts = facts.map(|(name, value)| format!(" data-{name}=\"{}\"", attribute(value)));
        let facts: String = facts.collect();
        self.add(format_args!("<g class=\"{class}\"{facts}>"));
    }

    /// Ends the group that began last.
    pub(super) fn end(&mut self) {
        self.add(format_args!("</g>"));
    }

    /// Draws the title.
    pub(super) fn title(&mut self, at: Place, size: f64, text: &str) {
        self.add(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size}\">{}</text>",
            at.0,
            at.1,
            escaped(text)
        ));
    }

    /// Draws one line of text; `at` is the end of its base line that `anchor` names.
    pub(super) fn text(&mut self, at: Place, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escaped(text)
        ));
    }

    /// Draws one line of text on the colour of a level of a heat map, around its middle.
    pub(super) fn label(&mut self, at: Place, level: u8, text: &str) {
        let white = |scheme| u8::from(palette::is_white_on(level, scheme));
        let class = match self.medium {
            Medium::Paper => format!("on-light{}", white(Scheme::Paper)),
            Medium::Screen => {
                let (light, dark) = (white(Scheme::Light), white(Scheme::Dark));
                format!("on-light{light} on-dark{dark}")
            }
        };
        self.add(format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"{class}\">{}</text>",
            at.0,
            at.1,
            escaped(text)
        ));
    }

    /// Draws a raster between two corners, in the colours of each scheme.
    pub(super) fn image(
        &mut self,
        (from, to): (Place, Place),
        raster: &Raster,
        colours: &dyn Fn(Scheme) -> Vec<[u8; 4]>,
    ) {
        let schemes = match self.medium {
            Medium::Paper => &[("", Scheme::Paper)][..],
            Medium::Screen => &[("in-light", Scheme::Light), ("in-dark", Scheme::Dark)],
        };
        for (class, scheme) in schemes {
            self.add(format_args!(
                "<image class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 preserveAspectRatio=\"none\" href=\"{}\"/>",
                from.0,
                from.1,
                to.0 - from.0,
                to.1 - from.1,
                raster.address(&colours(*scheme))
            ));
        }
    }

    /// Shades the rectangle between two corners.
    pub(super) fn band(&mut self, from: Place, to: Place) {
        self.add(format_args!(
            "<rect class=\"band\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            from.0,
            from.1,
            to.0 - from.0,
            to.1 - from.1
        ));
    }

    /// Draws a straight line of a class of the style sheet.
    pub(super) fn line(&mut self, from: Place, to: Place, class: &str) {
        self.add(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{class}\"/>",
            Coordinate(from.0),
            Coordinate(from.1),
            Coordinate(to.0),
            Coordinate(to.1)
        ));
    }

    /// Draws lines through all places.
    pub(super) fn polyline(&mut self, places: &[Place], class: &str) {
        let places = places
            .iter()
            .map(|(x, y)| format!("{},{}", Coordinate(*x), Coordinate(*y)));
        let places: Vec<String> = places.collect();
        let places = places.join(" ");
        self.add(format_args!(
            "<polyline class=\"{class}\" points=\"{places}\"/>"
        ));
    }

    /// Draws a marker of the shape of a style.
    pub(super) fn marker(&mut self, at: Place, style: usize, class: &str) {
        let (outline, (x, y)) = (MARKERS[style % MARKERS.len()], at);
        self.add(format_args!(
            "<path class=\"{class}\" transform=\"translate({} {})\" d=\"{outline}\"/>",
            Coordinate(x),
            Coordinate(y)
        ));
    }

    /// Returns whether markers have to tell lines apart.
    pub(super) const fn is_paper(&self) -> bool {
        matches!(self.medium, Medium::Paper)
    }

    /// Returns the document.
    pub(super) fn finish(self, width: f64, height: f64) -> String {
        let Self { medium, elements } = self;
        let style = match medium {
            Medium::Screen => style_sheet(),
            Medium::Paper => paper_style_sheet(),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width} {height:.0}\" font-family=\"sans-serif\" font-size=\"{SIZE}\">\n\
             <style>\n{style}</style>\n\
             <rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{elements}</svg>\n",
        )
    }

    /// Returns an element of a page, which is named by its title.
    pub(super) fn figure(self, width: f64, height: f64, title: &str) -> String {
        let Self { elements, .. } = self;
        format!(
            "<svg viewBox=\"0 0 {width} {height:.0}\" role=\"img\" font-family=\"sans-serif\" \
             font-size=\"{SIZE}\">\n<title>{}</title>\n{elements}</svg>\n",
            escaped(title)
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let _infallible = writeln!(self.elements, "{element}");
    }
}

/// Coordinate to a hundredth of a pixel, from which values are read off again.
struct Coordinate(f64);

impl std::fmt::Display for Coordinate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", (self.0 * 100.0).round() / 100.0)
    }
}

/// Returns the class of a style's colour.
pub(super) fn colour(style: usize) -> String {
    format!("c{}", style % LIGHT.colours.len())
}

/// Returns the classes of a style's colour and dashes.
pub(super) fn dashed(style: usize) -> String {
    let (colours, dashes) = (LIGHT.colours.len(), DASHES.len());
    // The dashes shift with each round of colours, so that no two of 21 styles are equal.
    format!("{} d{}", colour(style), (style + style / colours) % dashes)
}

/// Returns the rules for lines, markers and texts, in light and dark.
#[must_use]
pub fn style_sheet() -> String {
    let (shapes, light, dark) = (shapes(), LIGHT.rules(), DARK.rules());
    format!(
        "{shapes}{light}{ON_LIGHT}@media screen and (prefers-color-scheme:dark){{\n{dark}\
         .in-light{{display:none}}\n.in-dark{{display:inline}}\n\
         .on-dark0{{fill:#000}}\n.on-dark1{{fill:#fff}}\n}}\n"
    )
}

/// Returns the rules for paper.
fn paper_style_sheet() -> String {
    let paper = Palette::of(Scheme::Paper);
    let colours = paper.colours.iter().enumerate();
    let filled = colours.map(|(at, colour)| format!(".full.c{at}{{fill:{colour}}}\n"));
    let filled: String = filled.collect();
    format!("{}{}{filled}{ON_LIGHT}", shapes(), paper.rules())
}

/// Returns the rules that no scheme changes.
fn shapes() -> String {
    let dashes = DASHES.iter().enumerate().skip(1);
    let dashes = dashes.map(|(at, dash)| format!(".d{at}{{stroke-dasharray:{dash}}}\n"));
    format!(
        ".line{{fill:none;stroke-width:2}}\n.thin{{fill:none;stroke-width:1}}\n\
         .mark{{stroke-width:1.5}}\n.band{{fill:#888;fill-opacity:.25}}\n.grid,.axis{{fill:none}}\n\
         .in-dark{{display:none}}\n{}",
        dashes.collect::<String>()
    )
}

/// Texts on the colours of heat maps.
const ON_LIGHT: &str = ".on-light0{fill:#000}\n.on-light1{fill:#fff}\n";

/// Font size of all texts but the title, in pixels.
pub(super) const SIZE: f64 = 12.0;

/// Lengths of dashes and gaps; the first style has none.
const DASHES: [&str; 6] = ["none", "9 4", "2 3", "9 3 2 3", "5 3", "14 4"];

/// Outlines of markers, about ten pixels wide; none hides another one wholly: circle, square,
/// diamond, triangles, crosses.
const MARKERS: [&str; 7] = [
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "M-3.5,-3.5h7v7h-7z",
    "M0,-5l5,5l-5,5l-5,-5z",
    "M0,-5l4.5,8h-9z",
    "M0,5l4.5,-8h-9z",
    "M-4,-4l8,8m0,-8l-8,8",
    "M-5,0h10m-5,-5v10",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_paper_differ_without_their_greys() {
        let shape = |style: usize| {
            let dashes = dashed(style);
            (
                style % MARKERS.len(),
                dashes.split(' ').next_back().map(str::to_owned),
            )
        };
        let styles: std::collections::BTreeSet<_> = (0..21).map(shape).collect();
        assert_eq!(styles.len(), 21);
    }

    #[test]
    fn styles_differ() {
        let styles: std::collections::BTreeSet<_> = (0..21).map(dashed).collect();
        assert_eq!(styles.len(), 21);
    }
}
