//! Colours: of series, and of the values of heat maps.

use std::fmt::Write as _;

/// Setting of the reader, or paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Light,
    Dark,
    /// Black and greys on white.
    Paper,
}

/// Colours of one scheme.
pub(super) struct Palette {
    pub(super) paper: &'static str,
    pub(super) ink: &'static str,
    pub(super) grid: &'static str,
    pub(super) colours: [&'static str; 7],
}

impl Palette {
    pub(super) const fn of(scheme: Scheme) -> &'static Self {
        match scheme {
            Scheme::Light => &LIGHT,
            Scheme::Dark => &DARK,
            Scheme::Paper => &PAPER,
        }
    }

    /// Returns the colours as rules of a style sheet.
    pub(super) fn rules(&self) -> String {
        let Self {
            paper, ink, grid, ..
        } = self;
        let mut rules = format!(
            ".paper,.mark{{fill:{paper}}}\ntext{{fill:{ink}}}\n.axis{{stroke:{ink}}}\n\
             .grid{{stroke:{grid}}}\n"
        );
        for (at, colour) in self.colours.iter().enumerate() {
            // Writing to a string cannot fail.
            let _written = writeln!(rules, ".c{at}{{stroke:{colour}}}");
        }
        rules
    }
}

/// Returns red, green and blue of a colour in hexadecimal digits.
pub(super) fn channels(colour: &str) -> [u8; 3] {
    let channel = |from: usize| {
        let digits = colour.get(from..from + 2);
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
    };
    [1, 3, 5].map(|from| channel(from).unwrap_or(0))
}

/// Returns the colour of each level of a heat map, the lowest first, with its opacity.
///
/// Lightness alone orders them, so that colour-blind readers and grey paper keep the order; the
/// lowest stands out from the paper, because a single op must be seen.
pub(super) fn heat(scheme: Scheme) -> Vec<[u8; 4]> {
    let anchors = match scheme {
        Scheme::Light => HEAT_LIGHT,
        Scheme::Dark => HEAT_DARK,
        Scheme::Paper => HEAT_PAPER,
    };
    let last = anchors.len() - 1;
    let level = |level: u8| {
        let place = f64::from(level) / f64::from(LEVELS - 1) * index(last);
        let first = (0..last).rev().find(|at| index(*at) <= place).unwrap_or(0);
        let (from, to) = (channels(anchors[first]), channels(anchors[first + 1]));
        let share = place - index(first);
        let mixed = |at: usize| {
            let (from, to) = (f64::from(from[at]), f64::from(to[at]));
            rounded((to - from).mul_add(share, from))
        };
        [mixed(0), mixed(1), mixed(2), u8::MAX]
    };
    (0..LEVELS).map(level).collect()
}

/// Returns whether a text on the colour of a level, from 1, is to be white.
pub(super) fn is_white_on(level: u8, scheme: Scheme) -> bool {
    let colours = heat(scheme);
    let [r, g, b, _] = colours[usize::from(level.clamp(1, LEVELS)) - 1];
    luminance([r, g, b]) < WHITE_BELOW
}

/// Returns the relative luminance of a colour, as WCAG defines it.
pub(super) fn luminance(channels: [u8; 3]) -> f64 {
    let [red, green, blue] = channels.map(|value| {
        let value = f64::from(value) / 255.0;
        match value <= 0.039_28 {
            true => value / 12.92,
            false => ((value + 0.055) / 1.055).powf(2.4),
        }
    });
    0.0722_f64.mul_add(blue, 0.2126_f64.mul_add(red, 0.7152 * green))
}

#[expect(clippy::cast_precision_loss, reason = "a few anchors")]
const fn index(at: usize) -> f64 {
    at as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between two channels"
)]
fn rounded(channel: f64) -> u8 {
    channel.round() as u8
}

/// Colours in the hues of Okabe and Ito, which colour-blind readers can distinguish, as dark as
/// white paper needs: each has a contrast of 3 or more.
pub(super) const LIGHT: Palette = Palette {
    paper: "#ffffff",
    ink: "#1f2328",
    grid: "#d8dee4",
    colours: [
        "#0072b2", "#d55e00", "#008f68", "#aa4499", "#8f7000", "#2593c4", "#666666",
    ],
};

/// The same hues on a dark page.
pub(super) const DARK: Palette = Palette {
    paper: "#0d1117",
    ink: "#e6edf3",
    grid: "#30363d",
    colours: [
        "#4ba6e0", "#ff8b3d", "#2cc295", "#e08cd0", "#e0b93a", "#8fd3f4", "#b0b0b0",
    ],
};

/// Greys for printers without colours; neighbours are far from each other, and each has a contrast
/// of 3 or more. Dashes and markers tell the series apart.
const PAPER: Palette = Palette {
    paper: "#ffffff",
    ink: "#000000",
    grid: "#d8d8d8",
    colours: [
        "#000000", "#767676", "#3f3f3f", "#888888", "#202020", "#5c5c5c", "#8c8c8c",
    ],
};

/// Number of levels: more than can be told apart, so that no step is seen that is not there.
pub(super) const LEVELS: u8 = 64;

/// Colours of the levels, between which the others lie.
const HEAT_LIGHT: [&str; 5] = ["#f8965a", "#d9466b", "#8c2981", "#3b0f70", "#0b0724"];
const HEAT_DARK: [&str; 5] = ["#7b2382", "#b5367a", "#e55c66", "#fba873", "#fcfdbf"];
const HEAT_PAPER: [&str; 5] = ["#b8b8b8", "#8c8c8c", "#606060", "#303030", "#000000"];

/// Luminance below which white has a higher contrast than black.
const WHITE_BELOW: f64 = 0.179;

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn colours_stand_out_from_the_paper() {
        for palette in [LIGHT, DARK, PAPER] {
            for colour in palette.colours.iter().chain([&palette.ink]) {
                let contrast = contrast(channels(colour), channels(palette.paper));
                assert!(contrast >= 3.0, "{colour}: {contrast}");
            }
        }
    }

    #[test]
    fn paper_has_no_colours() {
        let heat = heat(Scheme::Paper);
        let heat = heat.into_iter().map(|[r, g, b, _]| [r, g, b]);
        let series = PAPER.colours.into_iter().map(channels);
        for [r, g, b] in heat.chain(series).chain([channels(PAPER.grid)]) {
            assert!(r == g && g == b, "{r} {g} {b}");
        }
    }

    #[test]
    fn higher_levels_are_further_from_the_paper() {
        for scheme in [Scheme::Light, Scheme::Dark, Scheme::Paper] {
            let paper = channels(Palette::of(scheme).paper);
            let levels = heat(scheme).into_iter();
            let contrasts: Vec<f64> = levels
                .map(|[r, g, b, _]| contrast([r, g, b], paper))
                .collect();
            assert_eq!(contrasts.len(), usize::from(LEVELS));
            assert!(contrasts[0] >= 1.9, "{contrasts:?}");
            assert!(contrasts.is_sorted(), "{contrasts:?}");
        }
    }

    #[test]
    fn texts_can_be_read_on_each_level() {
        for scheme in [Scheme::Light, Scheme::Dark, Scheme::Paper] {
            for (level, [r, g, b, _]) in (1..).zip(heat(scheme)) {
                let text = if is_white_on(level, scheme) {
                    [255; 3]
                } else {
                    [0; 3]
                };
                assert!(contrast(text, [r, g, b]) >= 4.5, "{scheme:?} {level}");
            }
        }
    }
}
