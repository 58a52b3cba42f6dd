//! CSV for Apache Otava, which looks for changes in the order of the rows.
//!
//! Its importer takes one file for one test: all rows must be comparable runs, and each metric must
//! have a value in each row.

use std::collections::BTreeSet;

use super::csv::csv_line;
use super::fact;
use super::series_labels;
use super::table::{ExportCell, Headings, moment};
use crate::store::{StoredMetric, StoredRun};

/// Series of comparable runs as a CSV file for Otava.
#[derive(Clone, Debug)]
pub struct OtavaExport {
    tags: Vec<String>,
    metrics: Vec<StoredMetric>,
    series: BTreeSet<Vec<(&'static str, String)>>,
    undated: usize,
}

impl OtavaExport {
    /// Creates the export of `runs` runs with these metrics and names of tags. Metrics that some
    /// of the runs lack are left out: [`left_out`](Self::left_out) names them.
    #[must_use]
    pub fn new(metrics: &[StoredMetric], tags: Vec<String>, runs: usize) -> Self {
        let in_all = metrics.iter().filter(|one| one.runs == runs as u64);
        Self {
            tags,
            metrics: in_all.cloned().collect(),
            series: BTreeSet::new(),
            undated: 0,
        }
    }

    /// Returns the names of those metrics that have no column.
    #[must_use]
    pub fn left_out(&self, metrics: &[StoredMetric]) -> Vec<String> {
        let known = |one: &&StoredMetric| !self.metrics.contains(one);
        let left_out = metrics.iter().filter(known);
        left_out.map(|one| one.measure.name()).collect()
    }

    /// Returns the first line. The name of a tag is its column's, unless another column has it.
    #[must_use]
    pub fn head(&self) -> String {
        let metrics = self.metrics.iter().map(|one| one.measure.name());
        let mut headings = Headings::default();
        let fixed = FIXED.map(|name| headings.unique(name.to_owned()));
        let metrics: Vec<String> = metrics.map(|name| headings.unique(name)).collect();
        let tags = self.tags.iter().map(|tag| headings.unique(tag.clone()));
        let tags: Vec<String> = tags.collect();
        let all = fixed.into_iter().chain(tags).chain(metrics);
        let cells: Vec<_> = all.map(|name| ExportCell::Text(Some(name))).collect();
        csv_line(&cells)
    }

    /// Returns the line of a run; `None` if the moment when it began is not known.
    pub fn line(&mut self, run: &StoredRun) -> Option<String> {
        let begun = moment(run);
        if begun == ExportCell::Moment(None) {
            self.undated += 1;
            return None;
        }
        self.series.insert(series_labels(&run.row));
        let text = |text: Option<String>| ExportCell::Text(Some(text.unwrap_or_default()));
        let mut cells = vec![
            begun,
            ExportCell::Whole(Some(run.row.id.0)),
            text(fact(run, "program")),
            text(fact(run, "kernel")),
            text(fact(run, "firmware")),
        ];
        let mut tags = run.tags();
        cells.extend(self.tags.iter().map(|tag| text(tags.remove(tag))));
        cells.extend(self.metrics.iter().map(|wanted| {
            let wanted = &wanted.measure;
            let found = run.measures.iter().find(|one| {
                (&one.group, one.direction, &one.metric)
                    == (&wanted.group, wanted.direction, &wanted.metric)
            });
            ExportCell::Number(found.map(|one| one.value))
        }));
        Some(csv_line(&cells))
    }

    /// Returns the number of runs left out because their start is unknown.
    #[must_use]
    pub const fn undated(&self) -> usize {
        self.undated
    }

    /// Returns the series that the runs belong to, as `plan 1, machine 2`: more than one makes no
    /// file for Otava.
    #[must_use]
    pub fn series(&self) -> Vec<String> {
        let named = self.series.iter().map(|labels| {
            let words = labels.iter().map(|(name, value)| format!("{name} {value}"));
            words.collect::<Vec<_>>().join(", ")
        });
        named.collect()
    }
}

/// Columns that every file has.
const FIXED: [&str; 5] = ["time", "run", "program", "kernel", "firmware"];
