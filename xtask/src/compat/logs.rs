//! Comparison of the logs of two runs: names, columns and, if every op is logged, offsets.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use super::difference::Difference;
use super::sample;
use super::trial::ProgramRun;

/// Compares the logs that both wrote; a log that only one wrote is a difference of files.
pub(crate) fn difference(case: &Case, fio: &ProgramRun, ours: &ProgramRun) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, of_fio) in &fio.logs {
        let Some(of_ours) = ours.logs.get(name) else {
            continue;
        };
        let place = |what: &str| format!("log:{name}:{what}");
        found.extend(Difference::of(
            place("columns"),
            columns(of_fio),
            columns(of_ours),
        ));
        found.extend(Difference::of(
            place("separator"),
            separators(of_fio),
            separators(of_ours),
        ));
        if case.mentions("log_avg_msec") || case.mentions("log_hist_msec") {
            let some = |text: &str| (!text.is_empty()).to_string();
            found.extend(Difference::of(place("lines"), some(of_fio), some(of_ours)));
            continue;
        }
        let lines = [of_fio, of_ours].map(|text| text.lines().count());
        if !near(lines, case.near) {
            let [fio, ours] = lines.map(|count| count.to_string());
            found.extend(Difference::of(place("lines"), fio, ours));
        }
        if case.mentions("log_offset=1") {
            let [fio, ours] = [of_fio, of_ours].map(|text| ops(text));
            found.extend(compare_offsets(case, &fio, &ours).into_iter().map(
                |(what, [fio, ours])| Difference {
                    place: place(what),
                    fio,
                    ours,
                    by_chance: false,
                },
            ));
        }
    }
    found
}

fn near([fio, ours]: [usize; 2], percent: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "numbers of lines")]
    let [fio, ours] = [fio as f64, ours as f64];
    (fio - ours).abs() <= fio * percent / 100.0
}

/// Returns the numbers of columns in a log's lines, usually one.
fn columns(text: &str) -> String {
    let counts: BTreeSet<usize> = text.lines().map(|line| line.split(',').count()).collect();
    let counts: Vec<_> = counts.iter().map(usize::to_string).collect();
    counts.join(" or ")
}

fn separators(text: &str) -> String {
    let blank = text
        .lines()
        .all(|line| line.matches(',').count() == line.matches(", ").count());
    if blank { "comma and blank" } else { "comma" }.to_owned()
}

/// Logged op: direction, bytes, offset.
type Op = (u64, u64, u64);

fn ops(text: &str) -> Vec<Op> {
    let op = |line: &str| {
        let mut fields = line
            .split(',')
            .skip(2)
            .map(|field| field.trim().parse().ok());
        Some((fields.next()??, fields.next()??, fields.next()??))
    };
    text.lines().filter_map(op).collect()
}

/// Compares two lists of ops; returns fio's value and ours of each difference.
fn compare_offsets(case: &Case, fio: &[Op], ours: &[Op]) -> Vec<(&'static str, [String; 2])> {
    if case.order {
        let other = (0..fio.len().max(ours.len())).find(|&at| fio.get(at) != ours.get(at));
        let shown = |ops: &[Op], at: usize| format!("op {at}: {:?}", ops.get(at));
        return other
            .map(|at| ("order", [shown(fio, at), shown(ours, at)]))
            .into_iter()
            .collect();
    }
    let sizes = [fio, ours].map(|ops| ops.iter().map(|op| op.1).collect());
    let places: [Vec<u64>; 2] = [fio, ours].map(|ops| {
        let offsets = ops.iter().map(|op| op.2);
        if case.ranked {
            ranks(offsets)
        } else {
            offsets.collect()
        }
    });
    let samples = [("offsets", places), ("sizes", sizes)];
    let apart = samples.into_iter().filter_map(|(what, [fio, ours])| {
        let found = sample::apart(fio, ours)?;
        Some((what, ["one distribution".to_owned(), found]))
    });
    apart.collect()
}

/// Returns the popularity rank of each op's offset: 0 for the most frequent, 1 for the next.
fn ranks(offsets: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut count: BTreeMap<u64, u64> = BTreeMap::new();
    offsets.for_each(|offset| *count.entry(offset).or_default() += 1);
    let mut counts: Vec<u64> = count.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let ranked = (0..).zip(counts);
    ranked
        .flat_map(|(rank, count)| (0..count).map(move |_| rank))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(offsets: impl Iterator<Item = u64>) -> Vec<Op> {
        offsets.map(|offset| (0, 4096, offset)).collect()
    }

    #[track_caller]
    fn check(case: &Case, fio: &[Op], ours: &[Op], wanted: &[&str]) {
        let found: Vec<_> = compare_offsets(case, fio, ours)
            .into_iter()
            .map(|(what, _)| what)
            .collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn where_ops_went_is_compared_by_distribution_order_or_rank() {
        let even = log((0..1000).map(|at| at * 37 % 1000));
        let low = log((0..1000).map(|at| at * 37 % 850));
        let drawn = Case::default();
        check(&drawn, &even, &log(0..1000), &[]);
        check(&drawn, &even, &low, &["offsets"]);
        let order = Case {
            order: true,
            ..Case::default()
        };
        check(&order, &even, &even, &[]);
        check(&order, &even, &log(0..1000), &["order"]);
        let ranked = Case {
            ranked: true,
            ..Case::default()
        };
        let skewed = |by: u64| log((0..1000).map(move |at| if at % 2 == 0 { by } else { by + at }));
        check(&ranked, &skewed(1), &skewed(5000), &[]);
        check(&ranked, &skewed(1), &even, &["offsets"]);
    }

    #[test]
    fn lines_are_taken_apart() {
        assert_eq!(ops("1, 20, 1, 4096, 8192, 0\n"), [(1, 4096, 8192)]);
        assert_eq!(columns("1, 2\n3, 4\n"), "2");
        assert_eq!(columns("1, 2\n3\n"), "1 or 2");
        assert_eq!(separators("1, 2"), "comma and blank");
        assert_eq!(separators("1,2"), "comma");
    }
}
