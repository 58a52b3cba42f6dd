//! Micro-benchmarks of Fathom's own data structures against plain implementations.
//!
//! Each repeat runs all variants in turn, so that interference by other load affects all of them.
//! Ratios are of pairs, one per repeat: the estimate of Hodges and Lehmann with the interval of the
//! signed-rank test, as in all comparisons of the house.

mod generation_map;
mod span;
mod tags;
mod task_list;

use fathom_stats::RatioInterval;

use crate::median::median;
use crate::table::{Cell, Column, Experiment, Table};

use span::{Sample, Span, sharing_notes};

pub use generation_map::generation_map;
pub use span::check_threads;
pub use tags::tags;
pub(crate) use task_list::EXPERIMENT as TASK_LIST;
pub use task_list::{task_list, task_list_table};

/// Parameters of a micro-benchmark.
#[derive(Clone, Copy)]
pub struct Micro<'a> {
    /// Largest number of threads.
    pub threads: u32,
    /// Runs of each variant.
    pub repeats: u32,
    /// Clock: nanoseconds since an arbitrary time.
    pub now_ns: &'a (dyn Fn() -> u64 + Sync),
}

/// Implementation under test: its name and its total rate per second with a number of threads.
type Variant<'a> = (&'static str, &'a dyn Fn(u32) -> Sample);

/// Measures each variant, repeat by repeat.
fn samples(variants: &[Variant<'_>], threads: u32, repeats: u32) -> Vec<Vec<Sample>> {
    let mut samples = vec![Vec::new(); variants.len()];
    for _ in 0..repeats {
        for (samples, (_, measure)) in samples.iter_mut().zip(variants) {
            samples.push(measure(threads));
        }
    }
    samples
}

/// Returns a row per variant: threads, name, median rate with its interval, and the ratio to each
/// of the first `beside` variants with its interval; last the median wait for a processor.
fn rows(variants: &[Variant<'_>], beside: usize, threads: u32, repeats: u32) -> Vec<Vec<Cell>> {
    let samples = samples(variants, threads, repeats);
    let each = |samples: &Vec<Sample>, of: fn(&Sample) -> f64| samples.iter().map(of).collect();
    let rates = samples
        .iter()
        .map(|samples| each(samples, |one| one.per_second));
    let rates: Vec<Vec<f64>> = rates.collect();
    let waits = samples
        .iter()
        .map(|samples| median(&each(samples, |one| one.waited_percent))[1]);
    let row = |(((name, _), own), waited): ((&Variant<'_>, &Vec<f64>), f64)| {
        let [low, middle, high] = median(own);
        let mut row = vec![
            Cell::Count(threads.into()),
            Cell::Text((*name).into()),
            Cell::Rate(middle),
            Cell::Rate(low),
            Cell::Rate(high),
        ];
        for other in &rates[..beside] {
            let [low, ratio, high] = ratio(own, other);
            row.extend([ratio, low, high].map(Cell::Ratio));
        }
        row.push(Cell::Tenths(waited));
        row
    };
    variants.iter().zip(&rates).zip(waits).map(row).collect()
}

/// Returns the ratio of two variants, with the ends of its interval before and after. Fewer repeats
/// than an interval takes have the median and the range of their ratios.
fn ratio(own: &[f64], other: &[f64]) -> [f64; 3] {
    let pairs: Vec<(f64, f64)> = own.iter().copied().zip(other.iter().copied()).collect();
    match RatioInterval::of_pairs(&pairs) {
        Some(ratio) => [ratio.low, ratio.middle, ratio.high],
        None => {
            let ratios = pairs.iter().map(|(own, other)| own / other);
            median(&ratios.collect::<Vec<f64>>())
        }
    }
}

/// Names of a table's columns.
struct ColumnNames<'a> {
    /// Counted work, as in `adds_per_s_median`.
    rate: &'a str,
    /// The same for people.
    counted: &'a str,
    /// The first variants, to which all are compared.
    baselines: &'a [&'a str],
}

impl ColumnNames<'_> {
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::key("threads", "threads"),
            Column::key("variant", "variant"),
        ];
        let ends = ["median", "low", "high"];
        columns.extend(ends.map(|end| {
            let column = Column::figure(format!("{}_per_s_{end}", self.rate), end);
            let group = format!("million {}/s", self.counted);
            column.in_group(group).in_units_of(1e6, 1)
        }));
        for baseline in self.baselines {
            let group = format!("ratio to {}", baseline.replace('_', " "));
            columns.extend(
                ["middle", "low", "high"]
                    .into_iter()
                    .zip(["", "_low", "_high"])
                    .map(|(name, end)| {
                        let column = Column::figure(format!("ratio_to_{baseline}{end}"), name);
                        column.in_group(group.clone())
                    }),
            );
        }
        columns.push(Column::hidden("waited_percent"));
        columns
    }
}

/// Measures all variants with 1, 2, … threads.
fn table(
    experiment: Experiment,
    columns: &ColumnNames<'_>,
    variants: &[Variant<'_>],
    config: &Micro<'_>,
    mut notes: Vec<String>,
) -> Table {
    let baselines = columns.baselines.len();
    let rows = |threads| rows(variants, baselines, threads, config.repeats);
    let rows: Vec<_> = (1..=config.threads).flat_map(rows).collect();
    let columns = columns.columns();
    notes.extend(sharing_notes(&rows, THREADS, columns.len() - 1));
    Table {
        head: experiment.into(),
        columns,
        rows,
        notes,
        panels: Vec::new(),
    }
}

/// Returns all micro-benchmarks.
#[must_use]
pub const fn micro_experiments() -> &'static [Experiment] {
    &EXPERIMENTS
}

/// Column of the number of threads.
const THREADS: usize = 0;

const EXPERIMENTS: [Experiment; 3] = [
    task_list::EXPERIMENT,
    tags::EXPERIMENT,
    generation_map::EXPERIMENT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_relative_to_the_first_variant() {
        let sample = |per_second, waited_percent| Sample {
            per_second,
            waited_percent,
        };
        let one = |_| sample(2.0, 0.0);
        let other = |threads: u32| sample(f64::from(threads), 7.0);
        let variants: [Variant<'_>; 2] = [("one", &one), ("other", &other)];
        let rows = rows(&variants, 1, 3, 5);
        assert_eq!(rows[0][5], Cell::Ratio(1.0));
        let Cell::Ratio(middle) = rows[1][5] else {
            panic!("{:?} is no ratio", rows[1][5]);
        };
        assert!((middle - 1.5).abs() < 1e-12, "{middle}");
        assert_eq!(rows[1].last(), Some(&Cell::Tenths(7.0)));
    }

    #[test]
    fn ratios_are_those_of_pairs() {
        // Geometric means of any two: the eighth of 15 is that of 2 and 3.
        let ratios = ratio(&[2.0, 3.0, 5.0, 9.0, 1.2], &[1.0, 1.0, 2.0, 3.0, 1.0]);
        assert!((ratios[1] - 6.0_f64.sqrt()).abs() < 1e-12, "{ratios:?}");
        assert_eq!(ratio(&[2.0, 4.0, 6.0], &[2.0; 3]), [1.0, 2.0, 3.0]);
        assert_eq!(ratio(&[0.0; 6], &[2.0; 6]), [0.0; 3]);
    }

    #[test]
    fn each_thread_count_has_a_row_per_variant() {
        let config = Micro {
            threads: 2,
            repeats: 1,
            now_ns: &|| 1,
        };
        for table in [tags(&config), task_list(&config)] {
            assert_eq!(table.rows.len(), 8);
            crate::table::check::check_table(&Table {
                // The benchmark task-list has no plot, unlike its table.
                head: tags::EXPERIMENT.into(),
                ..table
            });
        }
    }
}
