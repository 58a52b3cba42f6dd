mod counted_runs;

use fathom_record::Measure;

use super::*;
use crate::finished::{FinishedRun, RunEnd};

/// A run of a plan at a time, with the metrics of a direction.
fn run(plan: &str, begun_ms: u64, bw: f64) -> ImportedRun {
    let measure = |metric: &str, value: f64| Measure {
        group: String::new(),
        direction: "write",
        metric: metric.into(),
        value,
        low: Some(value * 0.9),
        high: Some(value * 1.1),
    };
    ImportedRun {
        uuid: None,
        begun_ms: Some(begun_ms),
        repeat: None,
        run: FinishedRun {
            wall_ms: 500,
            plan: plan.into(),
            machine: "{\"cpu\":\"x\"}".into(),
            subject: "{\"kernel\":\"6.1\"}".into(),
            measures: vec![measure("bw", bw), measure("clat_p99", 1e9 / bw)],
            ..FinishedRun::default()
        },
        notes: Vec::new(),
    }
}

fn side(name: &str, plan: &str, first_ms: u64, values: &[f64]) -> CompareSide {
    let runs = values.iter().zip(0..);
    let runs = runs.map(|(&bw, at)| ImportedRun {
        uuid: Some(format!("{name} {at} of {first_ms}")),
        ..run(plan, first_ms + at * 1000, bw)
    });
    CompareSide {
        name: name.into(),
        runs: runs.collect(),
        files: Vec::new(),
    }
}

fn rules() -> CompareRules {
    CompareRules {
        metrics: Vec::new(),
        tolerance: 0.02,
        accept_drift: false,
    }
}

const SLOW: [f64; 8] = [100.0, 101.0, 99.0, 100.5, 98.5, 101.5, 100.2, 99.8];

fn fast() -> Vec<f64> {
    SLOW.iter().map(|value| value * 1.1).collect()
}

#[test]
fn runs_that_did_not_end_are_told() {
    let before = side("a", "[j]\n", 0, &SLOW);
    let mut after = side("b", "[j]\n", 60_000, &SLOW);
    let failed = &mut after.runs[2].run;
    failed.end = RunEnd::Failed;
    failed.note = Some("job j: error 5".into());
    let found = compare(before, after, &rules()).unwrap();
    let want = "b: 1 of 8 runs did not run to the end; the first failed: job j: error 5";
    assert!(found.notes.iter().any(|note| note == want), "{found:?}");
}

#[test]
fn plans_with_jobs_of_one_name_are_told_apart() {
    let both = |name: &str, first_ms| {
        let mut small = side(name, "[global]\nbs=4k\n[j]\nrw=write\n", first_ms, &SLOW);
        let large = side(name, "[global]\nbs=64k\n[j]\nrw=write\n", first_ms, &SLOW);
        let plain = side(name, "[global]\n[j]\nrw=write\n", first_ms, &SLOW);
        small.runs.extend(large.runs);
        small.runs.extend(plain.runs);
        small
    };
    let found = compare(both("before", 1), both("after", 1_000_000), &rules()).unwrap();
    let mut groups: Vec<&str> = found.rows.iter().map(|row| row.group.as_str()).collect();
    groups.dedup();
    assert_eq!(groups, ["j #1", "j: bs=4k", "j: bs=64k"]);
}

#[test]
fn all_parts_of_a_long_side_count() {
    let before: Vec<f64> = SLOW.iter().cycle().copied().take(70).collect();
    // The first half is as before, the second one half as fast.
    let halved = before.iter().map(|value| value / 2.0);
    let after: Vec<f64> = before.iter().copied().chain(halved).collect();
    let before = side("before", "[a]\n", 1, &before);
    let after = side("after", "[a]\n", 1_000_000, &after);
    let accepted = CompareRules {
        accept_drift: true,
        ..rules()
    };
    let found = compare(before, after, &accepted).unwrap();
    let ratio = found.rows[0].ratio.unwrap();
    assert!(ratio.low < 0.55 && ratio.high > 0.95, "{ratio:?}");
    assert!(found.is_worse(), "{}", found.text());
}

#[test]
fn runs_that_were_not_interleaved_are_unclear() {
    let before = side("before", "[a]\n", 1, &SLOW);
    let after = side("after", "[a]\n", 7_501 + 7_384_000, &fast());
    let found = compare(before.clone(), after.clone(), &rules()).unwrap();
    assert_eq!(found.rows.len(), 2);
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.verdict == ComparedVerdict::NotInterleaved)
    );
    assert!(found.is_unclear() && !found.is_worse());
    let text = found.text();
    assert!(text.contains("unclear: not interleaved"), "{text}");
    assert!(text.contains("2 h 3 min between the sides"), "{text}");
    assert!(text.contains("+10.0 %"), "{text}");

    let accepted = CompareRules {
        accept_drift: true,
        ..rules()
    };
    let found = compare(before.clone(), after.clone(), &accepted).unwrap();
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.verdict == ComparedVerdict::Judged(Verdict::Better))
    );
    assert!(!found.is_unclear() && !found.text().contains("interleaved"));
    let found = compare(after, before, &accepted).unwrap();
    assert!(found.is_worse());
    assert!(found.rows.iter().all(|row| row.settled_by.is_none()));
    let json = found.json();
    assert_eq!(json["metrics"][0]["verdict"], "worse");
    assert_eq!(
        json["metrics"][0]["before"]["values"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
}

#[test]
fn the_order_of_the_sides_is_told_as_it_was() {
    let told = |change: fn(&mut CompareSide, &mut CompareSide)| {
        let (mut before, mut after) =
            (side("a", "[a]\n", 1, &SLOW), side("b", "[a]\n", 1, &fast()));
        // In turn: a b b a a b b a …, each 500 ms long, with a pause after each.
        for (at, (one, other)) in (0..).zip(before.runs.iter_mut().zip(&mut after.runs)) {
            let [first, second] = [at * 4000 + 1, at * 4000 + 2001];
            let is_swapped = at % 2 == 1;
            one.begun_ms = Some(if is_swapped { second } else { first });
            other.begun_ms = Some(if is_swapped { first } else { second });
        }
        change(&mut before, &mut after);
        let found = compare(before, after, &rules()).unwrap();
        assert!(found.is_unclear(), "{:?}", found.rows);
        let verdict = found.rows[0].verdict.words();
        let apart = found.apart().unwrap();
        assert!(apart.starts_with(verdict), "{apart}");
        let line = apart.lines().next().unwrap().to_owned();
        (line, found.json()["metrics"][0]["interleaved"].clone())
    };
    assert_eq!(
        told(|_, _| ()),
        (
            "unclear: order not drawn: the runs were taken in turn".into(),
            true.into()
        )
    );
    let not = |why: &str| (format!("unclear: not interleaved: {why}"), false.into());
    assert_eq!(
        told(|before, _| before.runs[3].run.wall_ms = 60_000),
        not("their runs overlap in time")
    );
    assert_eq!(
        told(|_, after| after.runs[2].begun_ms = None),
        not("when the runs were taken is not known")
    );
    assert_eq!(
        told(|before, after| {
            before.runs.truncate(3);
            after.runs.drain(..5);
        }),
        not("11 s between the sides")
    );
}

#[test]
fn repeats_of_a_lab_are_paired() {
    // Drift of a factor of 10 over the repeats, and a change of 5 % within each.
    let drifting: Vec<f64> = (0..10).map(|at| 100.0 * f64::from(1 << (at / 3))).collect();
    let of_lab = |name: &str, factor: f64| {
        let values: Vec<f64> = drifting.iter().map(|value| value * factor).collect();
        let mut side = side(name, "[a]\n", 0, &values);
        for (run, repeat) in side.runs.iter_mut().zip(0..) {
            run.repeat = Some((7, repeat));
        }
        side
    };
    let found = compare(of_lab("plain", 1.0), of_lab("fair", 0.95), &rules()).unwrap();
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.verdict == ComparedVerdict::Judged(Verdict::Worse))
    );
    let ratio = found.rows[0].ratio.unwrap();
    assert!(
        (ratio.middle - 0.95).abs() < 1e-9 && ratio.high < 0.96,
        "{ratio:?}"
    );
    // Two runs of a repeat on one side are of two variants.
    let mut twice = of_lab("other", 1.0);
    twice.runs.extend(of_lab("fair", 0.95).runs);
    let found = compare(of_lab("plain", 1.0), twice, &rules()).unwrap();
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.verdict == ComparedVerdict::NotInterleaved)
    );
    // Runs of another lab are not paired.
    let mut other = of_lab("fair", 0.95);
    for run in &mut other.runs {
        run.repeat = Some((8, run.repeat.unwrap().1));
    }
    let found = compare(of_lab("plain", 1.0), other, &rules()).unwrap();
    assert!(found.is_unclear());
}

#[test]
fn one_run_has_an_interval_and_no_verdict() {
    let before = side("12", "[a]\n", 0, &[100.0]);
    let after = side("13", "[a]\n", 1000, &SLOW);
    let found = compare(before, after, &rules()).unwrap();
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.verdict == ComparedVerdict::OneRun)
    );
    assert!(found.is_unclear() && !found.is_worse());
    let text = found.text();
    assert!(
        text.contains("before, one run: 90.0 B/s to 110 B/s within it"),
        "{text}"
    );
    assert!(text.contains("no verdict: one run shows"), "{text}");
    assert!(found.markdown().contains("| no verdict: one run |"));
}

#[test]
fn groups_belong_together_by_plan() {
    let both = |name: &str, first: f64, second: f64| {
        let mut one = side(name, "[a]\nbs=4k\n", 0, &[first; 4]);
        one.runs
            .extend(side(name, "[b]\nbs=8k\n", 0, &[second; 4]).runs);
        one
    };
    let mut after = both("after", 100.0, 300.0);
    after.runs.push(run("[c]\n", 0, 1.0));
    let found = compare(both("before", 100.0, 200.0), after, &rules()).unwrap();
    let groups: Vec<&str> = found.rows.iter().map(|row| row.group.as_str()).collect();
    assert_eq!(groups, ["a", "a", "b", "b"]);
    assert_eq!(found.rows[2].ratio.unwrap().middle, 1.5);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note == "before: no runs of c"),
        "{:?}",
        found.notes
    );
    let text = found.text();
    let at = |line: &str| text.lines().position(|other| other == line);
    assert!(at("a") < at("b") && at("a").is_some(), "{text}");
    let apart = compare(both("x", 1.0, 1.0), side("y", "[z]\n", 0, &SLOW), &rules());
    assert!(
        apart
            .unwrap_err()
            .starts_with("x (2 sets of jobs) and y (1 set) have no jobs in common")
    );
    let none = compare(CompareSide::default(), both("y", 1.0, 1.0), &rules());
    assert!(none.unwrap_err().contains("no runs"));
}

#[test]
fn of_modelled_machines_the_keys_that_differ_are_told() {
    let of = |name: &str, channels: u32| {
        let mut side = side(name, "[a]\n", 1, &SLOW);
        let model = format!("[[device]]\nmodel = \"ssd\"\n[device.ssd]\nchannels = {channels}\n");
        for run in &mut side.runs {
            run.run.machine = serde_json::json!({ "model": model }).to_string();
        }
        side
    };
    let found = compare(of("before", 4), of("after", 8), &rules()).unwrap();
    let want = "the machines differ: model.device.ssd.channels 4 → model.device.ssd.channels 8";
    assert!(
        found.notes.iter().any(|note| note == want),
        "{:?}",
        found.notes
    );
}

#[test]
fn differences_and_few_runs_are_told() {
    let before = side("before", "[a]\niodepth=4\nbs=4k\n", 0, &SLOW[..3]);
    let mut after = side("</script>|", "[a]\niodepth=8\nbs=4k\n", 0, &SLOW[..3]);
    for run in &mut after.runs {
        run.run.subject = "{\"kernel\":\"6.2\"}".into();
    }
    let found = compare(before, after, &rules()).unwrap();
    let told = |want: &str| assert!(found.notes.iter().any(|note| note.contains(want)), "{want}");
    told("the jobs differ: iodepth=4 → iodepth=8");
    told("the subject differs: kernel 6.1 → kernel 6.2");
    told("intervals of changes have a confidence level of 90 % or more");
    let coverage = found.json()["metrics"][0]["coverage"].as_f64().unwrap();
    assert!((coverage - 0.9).abs() < 1e-9, "{coverage}");
    told("3 runs a side prove nothing in 2 comparisons at once: take at least 5");
    let markdown = found.markdown();
    assert!(markdown.contains("&lt;/script>\\|"), "{markdown}");
    assert!(markdown.contains("| write.bw |"), "{markdown}");
}

#[test]
fn one_comparison_is_not_called_several() {
    let mut rules = rules();
    rules.metrics = vec![(MetricName::parse("write.bw").unwrap(), 0.02)];
    let before = side("before", "[a]\n", 0, &SLOW[..3]);
    let after = side("after", "[a]\n", 0, &SLOW[..3]);
    let found = compare(before, after, &rules).unwrap();
    let want = "3 runs a side prove nothing: take at least 4";
    assert!(
        found.notes.iter().any(|note| note == want),
        "{:?}",
        found.notes
    );
}

#[test]
fn named_metrics_are_judged_alone() {
    let mut rules = rules();
    rules.metrics = vec![
        (MetricName::parse("write.bw_mib_s").unwrap(), 0.5),
        (MetricName::parse("read.iops").unwrap(), 0.02),
    ];
    rules.accept_drift = true;
    let before = side("before", "[a]\n", 0, &SLOW);
    let found = compare(before, side("after", "[a]\n", 0, &fast()), &rules).unwrap();
    assert_eq!(
        found.rows[0].verdict,
        ComparedVerdict::Judged(Verdict::Same)
    );
    assert_eq!(found.rows[1].verdict, ComparedVerdict::OneRun);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note == "neither side has read.iops")
    );
}

#[test]
fn sides_without_a_metric_in_common_are_refused() {
    let of = |name: &str, direction: &'static str| {
        let mut side = side(name, "[a]\n", 0, &SLOW);
        let measures = side.runs.iter_mut().flat_map(|run| &mut run.run.measures);
        measures.for_each(|measure| measure.direction = direction);
        side
    };
    let refused = |before, after, metrics: &[&str]| {
        let metrics = metrics
            .iter()
            .map(|name| (MetricName::parse(name).unwrap(), 0.02));
        let rules = CompareRules {
            metrics: metrics.collect(),
            ..rules()
        };
        compare(before, after, &rules).unwrap_err()
    };
    assert_eq!(
        refused(of("a", "read"), of("b", "write"), &[]),
        "no metric was compared: no direction was measured in all runs of both sides: a has read, \
         b has write"
    );
    let empty = |name: &str| {
        let mut empty = of(name, "read");
        let runs = empty.runs.iter_mut();
        runs.for_each(|run| run.run.measures.clear());
        empty
    };
    let why = refused(empty("a"), empty("b"), &[]);
    assert!(why.ends_with("a has none, b has none"), "{why}");
    let named = ["read.bw", "write.bw", "read.iops"];
    assert_eq!(
        refused(of("a", "read"), of("b", "write"), &named),
        "no metric was compared: only a has read.bw, only b has write.bw, neither side has \
         read.iops"
    );
}

#[test]
fn runs_to_prove_grow_with_the_comparisons() {
    // 2 ÷ C(8, 4) = 0.029; 2 ÷ C(10, 5) = 0.0079; 2 ÷ C(6, 3) = 0.1.
    assert_eq!([1, 2, 6, 20].map(runs_to_prove), [4, 5, 5, 6]);
}

#[test]
fn unclear_metrics_tell_how_many_runs_would_settle_them() {
    let rules = CompareRules {
        accept_drift: true,
        ..rules()
    };
    // 3 % more, where runs vary by 4 %: neither proved nor within 2 %.
    let scattered = [96.0, 104.0, 99.0, 107.0, 95.0, 103.0, 101.0, 98.0];
    let shifted: Vec<f64> = scattered.iter().rev().map(|value| value * 1.03).collect();
    let before = side("before", "[a]\n", 0, &scattered);
    let found = compare(before, side("after", "[a]\n", 0, &shifted), &rules).unwrap();
    let row = &found.rows[0];
    assert_eq!(row.verdict, ComparedVerdict::Judged(Verdict::Unclear));
    let runs = row.settled_by.expect("a number of runs");
    assert!((9..200).contains(&runs), "{runs}");
    let note = format!("unclear: write.bw: about {runs} runs a side would settle it");
    assert!(found.text().contains(&note), "{}", found.text());
    assert_eq!(found.json()["metrics"][0]["settled_by"], runs);
}

#[test]
fn runs_that_do_not_count_are_not_said_to_settle_anything() {
    let rules = CompareRules {
        accept_drift: true,
        metrics: vec![(MetricName::parse("write.bw").unwrap(), 0.02)],
        ..rules()
    };
    let scattered = [96.0, 104.0, 99.0, 107.0, 95.0, 103.0, 101.0, 98.0];
    let all = |factor: f64, runs: usize| -> Vec<f64> {
        let values = scattered.iter().map(|value| 100.0 + (value - 100.0) * 2.5);
        values
            .map(|value| value * factor)
            .cycle()
            .take(runs)
            .collect()
    };
    let of = |runs: usize| {
        let before = side("before", "[a]\n", 0, &all(1.0, runs));
        compare(before, side("after", "[a]\n", 0, &all(1.015, runs)), &rules).unwrap()
    };
    let found = of(150);
    let note = "unclear: write.bw: the 64 runs a side that a comparison counts would not settle \
                it: make runs longer, or tolerate more";
    assert!(
        found.notes.iter().any(|one| one == note),
        "{:?}",
        found.notes
    );
    assert!(found.json()["metrics"][0]["settled_by"].is_null());
    // Four a side can prove one change, though six pairs are needed for it.
    let few = CompareRules {
        metrics: vec![(MetricName::parse("write.bw").unwrap(), 0.3)],
        ..rules
    };
    let before = side("before", "[a]\n", 0, &[100.0, 110.0, 90.0]);
    let found = compare(
        before,
        side("after", "[a]\n", 0, &[150.0, 170.0, 140.0]),
        &few,
    )
    .unwrap();
    let runs = found.rows[0].settled_by;
    assert_eq!(runs, Some(4), "{:?}", found.notes);
}

#[test]
fn the_text_fits_80_columns() {
    let mut rules = rules();
    let long = "a-job-with-a-name/write.clat_p99";
    rules.metrics = ["write.bw", "write.clat_p99", long]
        .map(|name| (MetricName::parse(name).unwrap(), 0.02))
        .to_vec();
    let named = |name: &str, values: &[f64]| {
        let mut side = side(name, "[a]\n", 0, values);
        for run in &mut side.runs {
            let mut grouped = run.run.measures[1].clone();
            grouped.group = "a-job-with-a-name".into();
            run.run.measures.push(grouped);
        }
        side
    };
    let far: Vec<f64> = SLOW.iter().map(|value| value * 123_456.7).collect();
    for after in [&fast(), &far] {
        let found = compare(named("before", &SLOW), named("after", after), &rules).unwrap();
        let text = found.text();
        assert!(text.lines().any(|line| line == long), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn numbers_of_services_are_compared() {
    let mut rules = rules();
    let mut name = MetricName::parse("service.target.waits").unwrap();
    name.row.improves = fathom_stats::Improves::Downwards;
    rules.metrics = vec![(name, 0.02)];
    rules.accept_drift = true;
    let of = |name: &str, values: &[f64]| {
        let mut side = side(name, "[a]\n", 0, values);
        for (run, value) in side.runs.iter_mut().zip(values) {
            run.run.measures.push(Measure {
                group: "target".into(),
                direction: fathom_record::OF_SERVICE,
                metric: "waits".into(),
                value: *value,
                low: None,
                high: None,
            });
        }
        side
    };
    let found = compare(of("before", &SLOW), of("after", &fast()), &rules).unwrap();
    assert!(found.is_worse());
}

/// Repeats of a lab with these values.
fn repeats(name: &str, values: &[f64]) -> CompareSide {
    let mut side = side(name, "[a]\n", 0, values);
    for (run, repeat) in side.runs.iter_mut().zip(0..) {
        run.repeat = Some((7, repeat));
    }
    side
}

#[test]
fn values_of_zero_are_compared_and_counted() {
    let rules = CompareRules {
        metrics: vec![
            (MetricName::parse("write.bw").unwrap(), 0.02),
            (MetricName::parse("write.clat_p99").unwrap(), 0.02),
        ],
        ..rules()
    };
    let found = compare(repeats("a", &[0.0; 8]), repeats("b", &SLOW), &rules).unwrap();
    let row = &found.rows[0];
    assert_eq!(row.verdict, ComparedVerdict::Judged(Verdict::Better));
    assert_eq!((row.ratio, row.p_holm), (None, Some(2.0 * 2.0 / 256.0)));
    let text = found.text();
    assert!(!text.contains("one run"), "{text}");
    let mut once = [0.0; 8];
    once[2] = 5.0;
    let found = compare(repeats("a", &[0.0; 8]), repeats("b", &once), &rules).unwrap();
    let note = "unclear: write.bw: a change from or to 0 has no ratio, and none is proved";
    assert!(
        found.notes.iter().any(|one| one == note),
        "{:?}",
        found.notes
    );
    // Two comparisons, whatever their values turn out to be.
    assert!(found.rows.iter().all(|row| row.p_holm.is_some()));
}

#[test]
fn too_few_runs_for_an_interval_are_told_as_such() {
    let rules = CompareRules {
        accept_drift: true,
        ..rules()
    };
    let before = side("before", "[a]\n", 0, &SLOW[..2]);
    let found = compare(before, side("after", "[a]\n", 0, &SLOW[..2]), &rules).unwrap();
    let told = |want: &str| {
        assert!(
            found.notes.iter().any(|one| one == want),
            "{:?}",
            found.notes
        )
    };
    told("unclear: write.bw: so few runs give no interval");
    told(
        "2 runs a side prove nothing in 2 comparisons at once: take at least 5 or judge fewer \
         metrics",
    );
}
