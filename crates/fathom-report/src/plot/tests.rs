//! Plots of every shape, checked for texts that overlap or leave the picture.

use super::*;

fn points(values: &[(f64, Option<f64>)]) -> Vec<Point> {
    values.iter().map(|(x, y)| Point::new(*x, *y)).collect()
}

fn plot(series: Vec<Series>) -> Plot {
    Plot {
        title: "t & u".into(),
        panels: vec![Panel {
            across: Axis::new("depth", Scale::Doubling),
            up: Axis::new("IOPS", Scale::Auto),
            series,
        }],
    }
}

#[track_caller]
fn drawn(plot: &Plot) -> String {
    let svg = plot.svg();
    assert_eq!(faults(&svg), [""; 0], "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    svg
}

/// Returns the number of markers of a picture without those of the legend.
fn markers(svg: &str, published: usize) -> usize {
    svg.matches("<path").count() - published
}

#[test]
fn every_series_and_its_name_are_drawn() {
    let line = |name: &str, y: f64| {
        let points = points(&[(1.0, Some(y)), (64.0, Some(y * 2.0))]);
        Series::measured(name, 0, points)
    };
    let svg = drawn(&plot(vec![line("measured", 10.0), line("a<b", 20.0)]));
    assert_eq!(svg.matches("<polyline").count(), 2);
    assert!(svg.contains("a&lt;b") && svg.contains("t &amp; u"), "{svg}");
}

#[test]
fn no_line_crosses_a_missing_point() {
    let gap = points(&[
        (1.0, Some(1.0)),
        (2.0, Some(2.0)),
        (4.0, None),
        (8.0, Some(3.0)),
    ]);
    let svg = drawn(&plot(vec![Series::measured("gap", 0, gap.clone())]));
    assert_eq!(svg.matches("<polyline").count(), 1, "{svg}");
    // The value after the gap has no neighbour to be joined to.
    assert_eq!(markers(&svg, 0), 1, "{svg}");
    let svg = drawn(&plot(vec![Series::published("gap", 0, gap)]));
    assert_eq!(markers(&svg, 1), 3, "{svg}");
}

#[test]
fn steps_hold_their_value_to_the_next() {
    let mut step = Series::measured(
        "s",
        0,
        points(&[(1.0, Some(1.0)), (2.0, Some(2.0)), (4.0, None)]),
    );
    step.shape = Shape::Step;
    let svg = drawn(&plot(vec![step]));
    let (_, line) = svg.split_once("points=\"").unwrap();
    let line = line.split_once('"').unwrap().0;
    assert_eq!(line.split(' ').count(), 4, "{line}");
}

#[test]
fn intervals_are_bars() {
    let one = Point {
        interval: Some((1.0, 3.0)),
        ..Point::new(1.0, Some(2.0))
    };
    let plain = drawn(&plot(vec![Series::measured(
        "i",
        0,
        [Point {
            interval: None,
            ..one
        }],
    )]));
    let bars = drawn(&plot(vec![Series::measured("i", 0, [one])]));
    let lines = |svg: &str| svg.matches("class=\"thin").count();
    assert_eq!(lines(&bars), lines(&plain) + 3);
}

#[test]
fn intervals_of_one_place_stand_beside_each_other() {
    let one = Point {
        interval: Some((1.0, 3.0)),
        ..Point::new(1.0, Some(2.0))
    };
    let all = (0..8).map(|style| Series::measured("", style, [one]));
    let svg = drawn(&plot(all.collect()));
    let upright = svg.lines().filter_map(|line| {
        let ends = ["x1", "x2"].map(|name| line.split(&format!("{name}=\"")).nth(1));
        let ends = ends.map(|end| end.and_then(|end| end.split('"').next()));
        (line.contains("\"thin") && ends[0] == ends[1]).then_some(ends[0])
    });
    let places: std::collections::BTreeSet<_> = upright.collect();
    assert_eq!(places.len(), 8, "{svg}");
}

#[test]
fn long_titles_and_names_are_wrapped() {
    let mut plot = plot(vec![Series::measured(
        "a name that is far too long for the space beside the frame of its panel",
        0,
        points(&[(1.0, Some(1.0))]),
    )]);
    plot.title = "word ".repeat(60);
    let svg = drawn(&plot);
    assert_eq!(svg.matches("word").count(), 60);
}

#[test]
fn many_series_and_ticks_fit() {
    let wide = (0..30).map(|exponent| Point::new(f64::from(exponent).exp2(), Some(1.0)));
    let wide: Vec<Point> = wide.collect();
    let name = |at: usize| format!("memory, buffers {at}, published");
    let series = (0..30).map(|at| Series::published(name(at), at, wide.clone()));
    let mut plot = plot(series.collect());
    drawn(&plot);
    plot.panels[0].across.scale = Scale::Bytes;
    plot.panels[0].up = Axis::new("ns", Scale::Auto);
    plot.panels[0].series[0].points[0].y = Some(1e-3);
    plot.panels[0].series[0].points[1].y = Some(1e12);
    plot.panels.push(plot.panels[0].clone());
    drawn(&plot);
}

#[test]
fn plots_may_be_empty() {
    drawn(&plot(Vec::new()));
    drawn(&plot(vec![Series::default()]));
    drawn(&plot(vec![Series::measured(
        "n",
        0,
        points(&[(0.0, Some(0.0)), (0.0, Some(-1.0))]),
    )]));
}

#[test]
fn the_style_sheet_has_both_schemes() {
    let svg = drawn(&plot(Vec::new()));
    let (light, dark) = svg
        .split_once("@media screen and (prefers-color-scheme:dark)")
        .unwrap();
    for class in [".paper", "text", ".grid", ".axis", ".c0", ".c6"] {
        assert!(light.contains(class) && dark.contains(class), "{class}");
    }
}

#[test]
fn a_spike_among_a_million_points_is_drawn() {
    let points = (0..1_000_000).map(|at| {
        let y = if at == 765_432 { 1e6 } else { 1.0 };
        Point::new(f64::from(at), Some(y))
    });
    let svg = drawn(&plot(vec![Series::measured("many", 0, points)]));
    assert!(svg.len() < 100_000, "{}", svg.len());
    let (_, line) = svg.split_once("points=\"").unwrap();
    let line = line.split_once('"').unwrap().0;
    let places = line.split(' ').filter_map(|place| place.split_once(','));
    let heights: Vec<f64> = places.map(|(_, y)| y.parse().unwrap()).collect();
    let top = heights.iter().copied().reduce(f64::min).unwrap();
    assert_eq!(heights.iter().filter(|y| **y == top).count(), 1);
}

#[test]
fn dense_scatters_are_pixels() {
    let points = |count: u32| (0..count).map(|at| Point::new(f64::from(at), Some(1.0)));
    for (count, images) in [(400, 0), (401, 2)] {
        let scatter = Series {
            shape: Shape::Scatter,
            ..Series::measured("s", 0, points(count))
        };
        let svg = drawn(&plot(vec![scatter]));
        assert_eq!(svg.matches("<image").count(), images);
    }
}

#[test]
fn lines_on_paper_are_told_apart_by_markers_and_have_no_colour() {
    let line = |name: &str, style: usize, y: f64| {
        let many: Vec<_> = (1..=300).map(|x| (f64::from(x), Some(y))).collect();
        Series::measured(name, style, points(&many))
    };
    let both = plot(vec![line("a", 0, 1.0), line("b", 1, 2.0)]);
    let svg = both.drawing();
    assert_eq!(faults(&svg), [""; 0], "{svg}");
    // Eight of each line, and one of each sample.
    assert!((12..=18).contains(&svg.matches(" full\"").count()), "{svg}");
    assert_eq!(both.svg().matches(" full\"").count(), 0);
    for colour in svg.split('#').skip(1) {
        let digits = colour.chars().take_while(char::is_ascii_hexdigit);
        let digits: Vec<char> = digits.collect();
        let mut channels = digits.chunks(digits.len() / 3);
        let first = channels.next().unwrap();
        assert!(channels.all(|channel| channel == first), "{digits:?}");
    }
    // A line by itself needs no marker.
    let single = plot(vec![line("a", 0, 1.0)]).drawing();
    assert_eq!(single.matches(" full\"").count(), 0);
}
