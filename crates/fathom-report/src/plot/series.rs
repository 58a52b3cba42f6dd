//! Series in a frame: lines, steps, markers and intervals.

use std::borrow::Cow;

use super::canvas::{Canvas, Place, colour, dashed};
use super::palette::{Palette, Scheme, channels};
use super::panel::{Frame, count};
use super::raster::Raster;
use super::{Point, Series, Shape, decimate};

/// Draws a series; its intervals are shifted to the right by `shift` pixels.
pub(super) fn draw(canvas: &mut Canvas, frame: &Frame, series: &Series, shift: f64) {
    if series.shape == Shape::Scatter && series.points.len() > MARKERS_MAX {
        return dots(canvas, frame, series);
    }
    let series = &*visible(frame, series);
    for run in runs(frame, series) {
        match &run[..] {
            [] => {}
            // Without a line, a value between two missing ones would be lost.
            [only] if !series.is_published => canvas.marker(*only, series.style, &mark(series)),
            _ if series.shape == Shape::Scatter => {}
            _ => canvas.polyline(&run, &line(series)),
        }
    }
    for point in &series.points {
        interval(canvas, frame, point, (series.style, shift));
        let place = point.y.and_then(|y| frame.place(point.x, y));
        if let Some(place) = place.filter(|_| has_markers(series)) {
            canvas.marker(place, series.style, &mark(series));
        }
    }
}

/// Returns a series without the points that its pixels cannot show.
fn visible<'a>(frame: &Frame, series: &'a Series) -> Cow<'a, Series> {
    if series.shape == Shape::Scatter || count(series.points.len()) <= frame.columns() {
        return Cow::Borrowed(series);
    }
    Cow::Owned(Series {
        name: series.name.clone(),
        points: decimate::reduced(&series.points, |x| frame.column(x)),
        ..*series
    })
}

/// Draws so many points that markers would cover each other as dots of pixels.
fn dots(canvas: &mut Canvas, frame: &Frame, series: &Series) {
    let ((left, top), (right, bottom)) = frame.corners();
    let mut raster = Raster::over(right - left, bottom - top);
    for point in &series.points {
        let place = point.y.and_then(|y| frame.place(point.x, y));
        if let Some((x, y)) = place {
            raster.dot((x - left, y - top));
        }
    }
    let style = series.style;
    canvas.image(frame.corners(), &raster, &|scheme: Scheme| {
        let colours = &Palette::of(scheme).colours;
        let [red, green, blue] = channels(colours[style % colours.len()]);
        vec![[red, green, blue, u8::MAX]]
    });
}

/// Draws the sample of a series in the legend.
pub(super) fn sample(canvas: &mut Canvas, series: &Series, at: Place, width: f64) {
    if series.shape != Shape::Scatter {
        canvas.line(at, (at.0 + width, at.1), &line(series));
    }
    if has_markers(series) {
        canvas.marker((at.0 + width / 2.0, at.1), series.style, &mark(series));
    }
}

/// Marks some points of a line, by which it is known where there are no colours. The markers are
/// filled: hollow ones are published figures.
pub(super) fn mark_line(canvas: &mut Canvas, frame: &Frame, series: &Series) {
    if has_markers(series) {
        return;
    }
    let series = visible(frame, series);
    let points = series.points.iter();
    let places = points.filter_map(|point| frame.place(point.x, point.y?));
    let places: Vec<Place> = places.collect();
    let every = places.len().div_ceil(MARKS_MAX).max(1);
    // Lines of many points have their markers at different places, or they would hide each other.
    let first = (series.style * every / 3) % every;
    for place in places.iter().skip(first).step_by(every) {
        canvas.marker(*place, series.style, &full(&series));
    }
}

/// Marks the sample of a line in the legend as [`mark_line`] does the line.
pub(super) fn mark_sample(canvas: &mut Canvas, series: &Series, at: Place, width: f64) {
    if !has_markers(series) {
        canvas.marker((at.0 + width / 2.0, at.1), series.style, &full(series));
    }
}

/// Returns the places between missing values, run by run.
fn runs(frame: &Frame, series: &Series) -> Vec<Vec<Place>> {
    let mut runs = vec![Vec::new()];
    let mut held = None;
    for point in &series.points {
        // A step ends where the next one begins, even if that one is missing.
        let end = held.and_then(|y| frame.place(point.x, y));
        let place = point.y.and_then(|y| frame.place(point.x, y));
        if let Some(run) = runs.last_mut() {
            run.extend(end);
            run.extend(place);
        }
        if place.is_none() {
            runs.push(Vec::new());
        }
        held = point.y.filter(|_| series.shape == Shape::Step);
    }
    runs
}

/// Draws the interval of a value as a bar with ends.
fn interval(canvas: &mut Canvas, frame: &Frame, point: &Point, (style, shift): (usize, f64)) {
    let ends = point.interval.and_then(|(low, high)| {
        let low = frame.place(point.x, low)?;
        Some((low, frame.place(point.x, high)?))
    });
    let Some((low, high)) = ends.filter(|(low, high)| low != high) else {
        return;
    };
    let class = format!("thin {}", colour(style));
    let [low, high] = [low, high].map(|(x, y)| (x + shift, y));
    canvas.line(low, high, &class);
    for (x, y) in [low, high] {
        canvas.line((x - 3.0, y), (x + 3.0, y), &class);
    }
}

fn has_markers(series: &Series) -> bool {
    series.is_published || series.shape == Shape::Scatter
}

fn mark(series: &Series) -> String {
    format!("mark {}", colour(series.style))
}

fn full(series: &Series) -> String {
    format!("{} full", mark(series))
}

/// Returns the classes of a line: that between published points is thin and only guides the eye.
fn line(series: &Series) -> String {
    if series.is_published {
        format!("thin {}", colour(series.style))
    } else {
        format!("line {}", dashed(series.style))
    }
}

/// Most markers of a line.
const MARKS_MAX: usize = 8;
/// Most markers of a scatter; more would make files large, and browsers slow.
const MARKERS_MAX: usize = 400;
