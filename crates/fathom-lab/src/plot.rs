//! Line plot as plain SVG: no script, no style sheet, panels one below the other.

use std::fmt::Write as _;

/// Pair of axes: the horizontal one is logarithmic to base 2, the vertical one begins at 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Label of the horizontal axis.
    pub across: String,
    /// Label of the vertical axis.
    pub up: String,
    /// Lines.
    pub series: Vec<PlotLine>,
}

/// Line of a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlotLine {
    /// Name.
    pub name: String,
    /// Points; the horizontal values are positive and ascending.
    pub points: Vec<(f64, f64)>,
}

/// Returns the picture.
#[must_use]
pub fn svg(title: &str, panels: &[Panel]) -> String {
    let count = panels.iter().fold(0.0, |count, _| count + 1.0);
    let height = TOP + count * (PANEL + GAP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (title, y) in title_lines(title).iter().zip([18.0, 34.0]) {
        label(&mut text, (LEFT, y), "start", title);
    }
    let mut top = TOP;
    for panel in panels {
        draw(&mut text, panel, top);
        top += PANEL + GAP;
    }
    text.push_str("</svg>\n");
    text
}

/// Breaks a title at a space if it is too long for one line; SVG text does not wrap.
fn title_lines(title: &str) -> Vec<&str> {
    let end = title.char_indices().nth(TITLE_CHARS_MAX);
    match end.and_then(|(end, _)| title[..end].rfind(' ')) {
        Some(space) => vec![&title[..space], &title[space + 1..]],
        None => vec![title],
    }
}

fn draw(text: &mut String, panel: &Panel, top: f64) {
    let points = || panel.series.iter().flat_map(|series| series.points.iter());
    // Without points the axis begins at 1: an infinite one would never end.
    let least = points().map(|point| point.0).reduce(f64::min);
    let least = least
        .filter(|least| least.is_finite())
        .unwrap_or(1.0)
        .max(1e-9);
    let most = points().fold(least * 2.0, |most, point| most.max(point.0));
    let peak = round_up(points().fold(0.0, |peak: f64, point| peak.max(point.1)));
    let span = (most / least).log2();
    let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
    let across = |x: f64| LEFT + (x / least).log2() / span * (right - LEFT);
    let up = |y: f64| bottom - y / peak * PANEL;
    for step in 0..=4_u32 {
        let value = peak * f64::from(step) / 4.0;
        let y = up(value);
        line(text, (LEFT, y), (right, y), "#ddd");
        label(text, (LEFT - 6.0, y + 4.0), "end", &number(value));
    }
    let mut x = least;
    while x <= most * 1.001 {
        line(text, (across(x), bottom), (across(x), bottom + 4.0), "#000");
        label(text, (across(x), bottom + 18.0), "middle", &number(x));
        x *= 2.0;
    }
    label(
        text,
        (f64::midpoint(LEFT, right), bottom + 34.0),
        "middle",
        &panel.across,
    );
    label(text, (LEFT, top - 8.0), "start", &panel.up);
    line(text, (LEFT, top), (LEFT, bottom), "#000");
    line(text, (LEFT, bottom), (right, bottom), "#000");
    let mut y = top + 12.0;
    for (series, colour) in panel.series.iter().zip(COLOURS.iter().cycle()) {
        let places = series.points.iter();
        let places = places.map(|&(x, value)| format!("{:.1},{:.1}", across(x), up(value)));
        let places: Vec<String> = places.collect();
        let _infallible = writeln!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            places.join(" ")
        );
        line(text, (right + 8.0, y), (right + 28.0, y), colour);
        label(text, (right + 32.0, y + 4.0), "start", &series.name);
        y += 18.0;
    }
}

fn line(text: &mut String, from: (f64, f64), to: (f64, f64), colour: &str) {
    let _infallible = writeln!(
        text,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn label(text: &mut String, at: (f64, f64), anchor: &str, what: &str) {
    let _infallible = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
        at.0,
        at.1,
        escaped(what)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Rounds up to a number whose only digit is 1, 2, 4 or 8; returns 1 for 0.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 8.0, 10.0];
    let step = steps.iter().find(|&&step| step * unit >= value);
    step.map_or(value, |step| step * unit)
}

fn number(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        value if value >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        value => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Sizes of the picture, in pixels.
const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 140.0;
const TOP: f64 = 60.0;
const PANEL: f64 = 240.0;
const GAP: f64 = 80.0;
/// Number of characters that fit beside `LEFT` in wide fonts: 7 pixels per character.
const TITLE_CHARS_MAX: usize = 95;

/// Palette that colour-blind readers can distinguish.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_and_its_name_are_drawn() {
        let series = |name: &str, y| PlotLine {
            name: name.into(),
            points: vec![(1.0, y), (64.0, y * 2.0)],
        };
        let panel = Panel {
            across: "depth".into(),
            up: "IOPS".into(),
            series: vec![series("measured", 10.0), series("a<b", 20.0)],
        };
        let text = svg("t & u", &[panel]);
        assert_eq!(text.matches("<polyline").count(), 2);
        assert!(
            text.contains("a&lt;b") && text.contains("t &amp; u"),
            "{text}"
        );
        // From the left axis to the right edge; 40 at the top.
        assert!(text.contains("points=\"70.0,180.0 620.0,60.0\""), "{text}");
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    }

    #[test]
    fn a_long_title_takes_two_lines() {
        let title = "word ".repeat(30);
        let text = svg(title.trim_end(), &[]);
        assert_eq!(text.matches("<text").count(), 2, "{text}");
        assert_eq!(text.matches("word").count(), 30, "{text}");
        assert_eq!(svg("short", &[]).matches("<text").count(), 1);
    }

    #[test]
    fn a_plot_may_be_empty() {
        assert!(svg("empty", &[Panel::default()]).contains("</svg>"));
        assert!(!svg("empty", &[Panel::default()]).contains("NaN"));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, want) in [(0.0, 1.0), (3_959_000.0, 4e6), (41.0, 80.0), (100.0, 100.0)] {
            assert!((round_up(value) - want).abs() < 1e-6, "{value}");
        }
    }
}
