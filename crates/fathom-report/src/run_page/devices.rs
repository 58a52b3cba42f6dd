//! Devices of a run: their use, and the distances between requests.

use fathom_record::{DiskRecord, Record, SeekRecord};

use super::tables::bounded;
use crate::page::{Figure, Page};
use crate::plot::{Axis, Panel, Plot, Point, Scale, Series, Shape};
use crate::show_disks;

/// Writes how busy the block devices were.
pub(super) fn disks(page: &mut Page, record: &Record) {
    if !show_disks(record) {
        return;
    }
    page.heading(2, "Block devices");
    let rows: Vec<Vec<String>> = record.disks.iter().map(row).collect();
    let heads = [
        "device",
        "reads",
        "writes",
        "MiB read",
        "MiB written",
        "merged",
        "ms a read",
        "ms a write",
        "in use, %",
    ];
    bounded(page, "Requests completed during the run", &heads, rows);
    page.paragraph(
        "Counts are those of the kernel for the whole device, whoever used it. A device that \
         serves requests side by side can be in use all the time and still not be at its limit.",
    );
}

fn row(disk: &DiskRecord) -> Vec<String> {
    let mib = |sectors: u64| format!("{:.1}", sectors as f64 / 2048.0);
    let each = |ms: u64, ios: u64| match ios {
        0 => super::tables::MISSING.into(),
        ios => format!("{:.3}", ms as f64 / ios as f64),
    };
    vec![
        disk.name.clone(),
        disk.read_ios.to_string(),
        disk.write_ios.to_string(),
        mib(disk.read_sectors),
        mib(disk.write_sectors),
        disk.read_merges
            .saturating_add(disk.write_merges)
            .to_string(),
        each(disk.read_ticks_ms, disk.read_ios),
        each(disk.write_ticks_ms, disk.write_ios),
        format!("{:.2}", disk.util_percent),
    ]
}

/// Draws the distances between the requests of each modelled disk that counted them.
pub(super) fn seeks(page: &mut Page, record: &Record) {
    let devices = record
        .modelled
        .iter()
        .flat_map(|modelled| &modelled.devices);
    let counted = devices.filter_map(|device| Some((device, device.seeks.as_ref()?)));
    let counted: Vec<_> = counted.collect();
    if counted.is_empty() {
        return;
    }
    page.heading(2, "Seeks");
    let left = counted.len().saturating_sub(DEVICES_MAX);
    for (device, seeks) in counted.into_iter().take(DEVICES_MAX) {
        let name = format!("{} ({})", device.names.join(", "), device.model);
        let title = format!("Seek distances of {name}");
        let sequential = seeks.sequential_ratio.map_or_else(String::new, |ratio| {
            format!(
                " {:.1} % of them began where the one before ended.",
                ratio * 100.0
            )
        });
        page.paragraph(&format!(
            "{name}: {} requests dispatched, {} merged into others before that.{sequential}",
            seeks.dispatched, seeks.merged
        ));
        if let Some(panel) = distances(seeks) {
            let plot = Plot {
                title,
                panels: vec![panel],
            };
            page.figure(Figure::new("seek-distances", SEEKS, plot.into()));
        }
    }
    if left > 0 {
        page.paragraph(&format!("{left} more devices are in the numbers below."));
    }
}

/// States where the offsets of the ops are, if they were logged: a record has none.
pub(super) fn logged_offsets(page: &mut Page, record: &Record) {
    let own = record.jobs.iter().map(|job| &job.options);
    let mut lists = own.chain([&record.global_options]);
    let is_set = |(name, value): &(String, String)| name == "log_offset" && value != "0";
    if lists.any(|options| options.iter().any(is_set)) {
        page.heading(2, "Offsets");
        page.paragraph(
            "The offsets of the ops are in the I/O logs of this run. Name the logs after the run \
             to have offsets over time and distances on this page: fathom report RUN LOG… --html \
             FILE",
        );
    }
}

/// Returns the histogram of distances; `None` if there are none.
fn distances(seeks: &SeekRecord) -> Option<Panel> {
    let rows = || seeks.distances.rows();
    let bytes = |kib: u64| kib as f64 * 1024.0;
    // The first bucket begins at zero, which a logarithmic axis has no place for.
    let mut points: Vec<Point> = rows()
        .map(|(from, to, count)| {
            let start = if from > 0 {
                bytes(from)
            } else {
                bytes(to) / 2.0
            };
            Point::new(start, Some(count as f64))
        })
        .collect();
    let (_, end, count) = rows().last()?;
    points.push(Point::new(bytes(end), Some(count as f64)));
    Some(Panel {
        across: Axis::new("distance from the end of the request before", Scale::Bytes),
        up: Axis::new("requests", Scale::Linear),
        series: vec![Series {
            shape: Shape::Step,
            ..Series::measured("requests", 0, points)
        }],
    })
}

const SEEKS: &str = "Requests by their distance, forwards or backwards, without those that were \
                     sequential. Each step holds all up to the next; the first one also those \
                     from zero. Distances on the medium are not times: a disk turns meanwhile, \
                     and reorders what it holds.";
/// Most devices that are drawn.
const DEVICES_MAX: usize = 8;
