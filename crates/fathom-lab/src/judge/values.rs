//! Values of the judged metrics.

use std::collections::BTreeSet;

/// Value of each judged metric in each run that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    variants: usize,
    metrics: usize,
    /// First repeat that counts.
    first: u32,
    /// Cells and metrics that no run can have.
    ruled_out: BTreeSet<(usize, usize)>,
    /// Repeat and value, by cell, variant and metric.
    series: Vec<Vec<(u32, f64)>>,
}

impl Values {
    /// Creates a store without values.
    #[must_use]
    pub fn new(cells: usize, variants: usize, metrics: usize) -> Self {
        Self {
            variants,
            metrics,
            first: 0,
            ruled_out: BTreeSet::new(),
            series: vec![Vec::new(); cells * variants * metrics],
        }
    }

    /// Adds the value of a metric in a run. An earlier one of the same repeat is replaced.
    ///
    /// # Panics
    /// The cell, variant or metric is out of range.
    pub fn add(&mut self, (cell, variant): (usize, usize), metric: usize, repeat: u32, value: f64) {
        let at = self.index(cell, variant, metric);
        let series = &mut self.series[at];
        match series.binary_search_by_key(&repeat, |(repeat, _)| *repeat) {
            Ok(at) => series[at].1 = value,
            Err(at) => series.insert(at, (repeat, value)),
        }
    }

    /// Leaves out the repeats before this one: they are kept, and no longer count.
    pub fn count_from(&mut self, first: u32) {
        self.first = first;
    }

    /// Leaves a metric of a cell out of all comparisons. To be said before the first run: a
    /// comparison that is left out because its values turn out to be missing would make the others
    /// look more certain.
    pub fn rule_out(&mut self, cell: usize, metric: usize) {
        self.ruled_out.insert((cell, metric));
    }

    pub(crate) fn is_ruled_out(&self, cell: usize, metric: usize) -> bool {
        self.ruled_out.contains(&(cell, metric))
    }

    pub(crate) const fn variants(&self) -> usize {
        self.variants
    }

    /// Iterates over cells and variants.
    pub(crate) fn sides(&self) -> impl Iterator<Item = (usize, usize)> {
        let variants = self.variants;
        let sides = self.series.len() / self.metrics.max(1);
        (0..sides).map(move |side| (side / variants, side % variants))
    }

    /// Returns repeat and value of each run that counts, by repeat.
    #[must_use]
    pub fn of(&self, cell: usize, variant: usize, metric: usize) -> &[(u32, f64)] {
        let all = self.of_all(cell, variant, metric);
        &all[all.partition_point(|(repeat, _)| *repeat < self.first)..]
    }

    /// Returns repeat and value of each run, also of those that do not count.
    #[must_use]
    pub fn of_all(&self, cell: usize, variant: usize, metric: usize) -> &[(u32, f64)] {
        &self.series[self.index(cell, variant, metric)]
    }

    /// Returns the values of two variants in the repeats that have both.
    #[must_use]
    pub fn pairs(
        &self,
        cell: usize,
        (variant, baseline): (usize, usize),
        metric: usize,
    ) -> Vec<(f64, f64)> {
        let mut others = self.of(cell, baseline, metric).iter().peekable();
        let mut pairs = Vec::new();
        for &(repeat, value) in self.of(cell, variant, metric) {
            while others.next_if(|(other, _)| *other < repeat).is_some() {}
            if let Some((_, other)) = others.next_if(|(other, _)| *other == repeat) {
                pairs.push((value, *other));
            }
        }
        pairs
    }

    const fn index(&self, cell: usize, variant: usize, metric: usize) -> usize {
        (cell * self.variants + variant) * self.metrics + metric
    }
}
