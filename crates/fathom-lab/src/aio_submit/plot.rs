//! Picture of the table: time to submit a read against reads per second, a panel per place.

use fathom_report::plot::{Axis, Panel, Point, Scale, Series};

use super::{DIRECTION, PUBLISHED_ENGINE};
use crate::table::Cell;

/// Returns a panel for each place with reads. A line joins the two modes of an engine.
pub(super) fn panels(rows: &[Vec<Cell>]) -> Vec<Panel> {
    let reads = |row: &&Vec<Cell>| row[DIRECTION].text().starts_with("read");
    let reads: Vec<&Vec<Cell>> = rows.iter().filter(reads).collect();
    let mut places: Vec<String> = reads.iter().map(|row| row[PLACE].text()).collect();
    places.dedup();
    let panels = places.iter().map(|place| {
        let here = reads.iter().filter(|row| row[PLACE].text() == *place);
        panel(place, &here.copied().collect::<Vec<_>>())
    });
    panels.filter(|panel| !panel.series.is_empty()).collect()
}

fn panel(place: &str, rows: &[&Vec<Cell>]) -> Panel {
    let mut engines: Vec<String> = rows.iter().map(|row| row[ENGINE].text()).collect();
    engines.dedup();
    let points = |engine: &str, [across, up]: [usize; 2]| {
        let of = rows.iter().filter(|row| row[ENGINE].text() == engine);
        let point = |row: &&Vec<Cell>| Some(Point::new(row[across].number()?, row[up].number()));
        let mut points: Vec<Point> = of.filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    };
    let measured = engines
        .iter()
        .enumerate()
        .map(|(at, engine)| Series::measured(engine, at, points(engine, MEASURED)));
    let published = engines
        .iter()
        .enumerate()
        .filter(|(_, engine)| *engine == PUBLISHED_ENGINE)
        .map(|(at, engine)| {
            Series::published(
                format!("{engine}, published"),
                at,
                points(engine, PUBLISHED),
            )
        });
    Panel {
        across: Axis::new("reads per second", Scale::Auto),
        up: Axis::new(format!("{place}: mean slat of reads, µs"), Scale::Auto),
        series: measured
            .chain(published)
            .filter(Series::has_values)
            .collect(),
    }
}

/// Columns of the names.
const PLACE: usize = 0;
const ENGINE: usize = 1;
/// Columns of IOPS and mean slat.
const MEASURED: [usize; 2] = [4, 6];
const PUBLISHED: [usize; 2] = [12, 13];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aio_submit::{columns, row};

    #[test]
    fn the_columns_are_those_of_the_table() {
        let columns = columns();
        let keys = |at: [usize; 2]| at.map(|at| columns[at].key.clone());
        assert_eq!(keys(MEASURED), ["iops", "slat_us_mean"]);
        assert_eq!(
            keys(PUBLISHED),
            ["published_iops", "published_slat_us_mean"]
        );
    }

    #[test]
    fn places_have_panels_and_published_figures_their_own_series() {
        let row = |place, mode| row([place, PUBLISHED_ENGINE, mode, "read"], None);
        let mut rows = vec![row("memory", "inline"), row("memory", "offload")];
        rows.extend([row("disk", "inline"), row("disk", "offload")]);
        rows[0][4] = Cell::Rate(2.0);
        rows[0][6] = Cell::Ratio(9.0);
        let panels = panels(&rows);
        assert_eq!(panels.len(), 1, "nothing is known of the disk");
        let series = &panels[0].series;
        assert_eq!(series.len(), 2);
        assert_eq!(series[0].points, [Point::new(2.0, Some(9.0))]);
        assert_eq!(series[1].points[0], Point::new(122_379.0, Some(3.46)));
        assert!(series[1].is_published && series[1].points.len() == 2);
    }
}
