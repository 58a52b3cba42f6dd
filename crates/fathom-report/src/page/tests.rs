//! Pages of every element.

use super::*;
use crate::plot::{Axis, Panel, Plot, Point, Scale, Series, faults};

fn plot(title: &str) -> Plot {
    Plot {
        title: title.into(),
        panels: vec![Panel {
            across: Axis::new("depth", Scale::Doubling),
            up: Axis::new("IOPS", Scale::Auto),
            series: vec![Series::measured(
                title,
                0,
                [Point::new(1.0, Some(12_345.5)), Point::new(2.0, Some(7.0))],
            )],
        }],
    }
}

#[test]
fn headings_skip_no_level() {
    let mut page = Page::new("t");
    for level in [4, 6, 1, 2, 9] {
        page.heading(level, "x");
    }
    let html = page.html();
    let levels: Vec<&str> = html.split("<h").skip(1).map(|rest| &rest[..1]).collect();
    // The first one is of `<html`, the second of `<head>`.
    assert_eq!(levels[2..], ["1", "2", "3", "2", "2", "3"]);
}

#[test]
fn names_and_labels_are_there_once() {
    let mut page = Page::new("t");
    for _ in 0..3 {
        page.figure(Figure::new("a/b", "c", plot("p").into()));
        page.table("same", &["h"], &[vec!["r".into()]]);
        page.details("same", "text");
    }
    let html = page.html();
    for attribute in [" id=\"", "aria-label=\""] {
        let values = html.split(attribute).skip(1);
        let values = values.map(|rest| rest.split_once('"').map_or("", |(value, _)| value));
        let values: Vec<&str> = values.collect();
        let different: BTreeSet<&&str> = values.iter().collect();
        assert!(values.len() >= 3, "{values:?}");
        assert_eq!(different.len(), values.len(), "{values:?}");
    }
    let names: Vec<String> = page.drawings().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["a-b", "a-b-2", "a-b-3"]);
}

#[test]
fn figures_have_their_numbers_as_text() {
    let mut page = Page::new("t");
    page.figure(Figure::new("a", "c", plot("p").into()));
    assert!(page.html().contains("<td>12345.5</td>"));
    let mut page = Page::new("t");
    page.figure(Figure::new("a", "c", plot("p").into()).without_numbers());
    assert!(!page.html().contains("12345.5"));
}

#[test]
fn drawings_are_whole_and_have_one_scheme() {
    let mut page = Page::new("t");
    page.figure(Figure::new("a", "c", plot("p").into()));
    let [drawing] = &page.drawings()[..] else {
        panic!("one figure");
    };
    assert_eq!(faults(&drawing.svg), [""; 0]);
    assert!(drawing.svg.starts_with("<svg xmlns="));
    assert!(!drawing.svg.contains("@media"));
    for black_on_white in ["text{fill:#000000}", ".paper,.mark{fill:#ffffff}"] {
        assert!(drawing.svg.contains(black_on_white), "{}", drawing.svg);
    }
}

#[test]
fn no_text_becomes_markup() {
    let bad = "</title></script><script>alert(1)</script><b onclick=\"x\">\u{1b}[2J";
    let mut page = Page::new(bad);
    page.heading(2, bad);
    page.paragraph(bad);
    page.list(bad, &[bad.to_owned()]);
    page.table(bad, &[bad], &[vec![bad.to_owned(), bad.to_owned()]]);
    page.folded_table(bad, &[bad], &[]);
    page.details(bad, bad);
    page.figure(Figure::new(bad, bad, plot(bad).into()));
    let html = page.html();
    for tag in ["<script>alert", "<b ", "\u{1b}", "</title></"] {
        assert!(!html.contains(tag), "{tag}");
    }
}
