//! Plot of the table: a panel per figure and kind of device, a line per policy.

use super::{Condition, Devices, IoPacing, Pacing, Period};
use crate::table::{Cell, Column};
use fathom_report::plot::{Axis, Panel, Point, Scale, Series};

/// Draws bandwidth and buffers in flight by depth. Published figures have panels of their own: they
/// are of a faster link, and on one axis this machine's would lie on the ground.
pub(super) fn panels(config: &IoPacing, columns: &[Column], rows: &[Vec<Cell>]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for devices in [Devices::Null, Devices::Memory] {
        for (figure, column) in [
            ("bandwidth, Gb/s", "bw_gbps"),
            ("buffers in flight, MiB", "in_flight_mib"),
        ] {
            let values = |column: &str| {
                let at = columns.iter().position(|known| known.key == column);
                rows.iter().map(move |row| row[at?].number()).collect()
            };
            let figures = Figures {
                config,
                devices,
                values: values(column),
                published: false,
            };
            let published = Figures {
                values: values(&format!("published_{column}")),
                published: true,
                ..figures.clone()
            };
            panels.extend([figures.panel(figure), published.panel(figure)]);
        }
    }
    panels.retain(|panel| !panel.series.is_empty());
    panels
}

/// Figures of one kind of devices.
#[derive(Clone)]
struct Figures<'a> {
    config: &'a IoPacing,
    devices: Devices,
    /// A value per row.
    values: Vec<Option<f64>>,
    published: bool,
}

impl Figures<'_> {
    fn panel(&self, figure: &str) -> Panel {
        let Self { devices, .. } = *self;
        let source = if self.published {
            "published"
        } else {
            "measured"
        };
        let whose = match (devices, self.published) {
            (Devices::Null, _) => "null devices",
            (Devices::Memory, false) => "devices in memory",
            (Devices::Memory, true) => "NVMe drives",
        };
        Panel {
            across: Axis::new("depth per initiator", Scale::Doubling),
            up: Axis::new(format!("{figure}, {whose}, {source}"), Scale::Auto),
            series: self.series(),
        }
    }

    /// Returns a series per policy. Its style is that of all of its panels.
    fn series(&self) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for (condition, value) in self.config.rows.iter().zip(&self.values) {
            if condition.devices != self.devices {
                continue;
            }
            let name = name(condition);
            let point = Point::new(f64::from(condition.depth), *value);
            if let Some(series) = series.iter_mut().find(|series| series.name == name) {
                series.points.push(point);
                continue;
            }
            let style = series.len();
            series.push(if self.published {
                Series::published(name, style, [point])
            } else {
                Series::measured(name, style, [point])
            });
        }
        for one in &mut series {
            one.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        series.retain(Series::has_values);
        series
    }
}

/// Names the series that a row belongs to: all of its condition but devices and depth.
fn name(condition: &Condition) -> String {
    let mut name = condition.pacing.to_string();
    if let Pacing::Rate(Period::Us(us) | Period::PublishedUs(us)) = condition.pacing {
        name += &format!(" {us} µs");
    }
    if condition.threads > 1 {
        name += &format!(", {} threads", condition.threads);
    }
    if let Some(cache) = condition.buffer_cache {
        name += &format!(", cache {cache}");
    }
    if let Some(slow) = condition.slow {
        name += &format!(", {} slow", slow.devices);
        if slow.depth != condition.depth {
            name += &format!(" at depth {}", slow.depth);
        }
    }
    name
}
