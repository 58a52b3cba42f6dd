use std::collections::BTreeMap;

use super::*;
use crate::store::{RunId, StoredMetric};

fn measure(group: &str, direction: &'static str, metric: &str, value: f64) -> Measure {
    Measure {
        group: group.into(),
        direction,
        metric: metric.into(),
        value,
        low: None,
        high: None,
    }
}

fn run(number: i64, begun_ms: Option<u64>, tags: &[(&str, &str)]) -> StoredRun {
    let tags: BTreeMap<&str, &str> = tags.iter().copied().collect();
    StoredRun {
        row: RunRow {
            id: RunId(number),
            begun_ms,
            begun: Some("2026-05-28 20:26:40".into()),
            wall_ms: Some(1500),
            plan_id: Some(1),
            machine_id: Some(2),
            subject: Some("{}".into()),
            tags: serde_json::to_string(&tags).unwrap(),
            ..RunRow::default()
        },
        measures: vec![
            measure("", "read", "iops", 5.0),
            measure("a", "read", "of_a_later_version", 6.0),
        ],
    }
}

fn stored(measure: Measure, runs: u64) -> StoredMetric {
    StoredMetric {
        measure,
        runs,
        has_interval: false,
    }
}

#[track_caller]
fn check_csv(text: &str, want: &str) {
    let cells = [
        ExportCell::Text(Some(text.into())),
        ExportCell::Text(None),
        ExportCell::Number(Some(-1e21)),
    ];
    assert_eq!(
        csv_line(&cells),
        format!("{want},,-1000000000000000000000\n")
    );
}

#[test]
fn texts_of_csv_are_neither_formulas_nor_cells_of_their_own() {
    check_csv("plain", "plain");
    check_csv("a,\"b\"\nc", "\"a,\"\"b\"\"\nc\"");
    check_csv(" a", "\" a\"");
    check_csv("a=b", "a=b");
    for start in ["=", "+", "-", "@"] {
        check_csv(&format!("{start}1"), &format!("'{start}1"));
    }
    check_csv("\tx", "\"'\tx\"");
    check_csv("\rx", "'\u{fffd}x");
    check_csv("a\u{1b}[2J\0", "a\u{fffd}[2J\u{fffd}");
}

#[test]
fn columns_of_the_same_name_are_numbered() {
    let metrics = [
        stored(measure("tag.x", "read", "iops", 0.0), 1),
        stored(measure("", "read", "iops", 0.0), 1),
    ];
    let table = ExportTable::new(&metrics, &["x/read.iops (IOPS)".into()]);
    let headings = table.columns().iter().map(|column| column.heading.as_str());
    let headings: Vec<&str> = headings.skip(14).collect();
    let same = "tag.x/read.iops (IOPS)";
    assert_eq!(headings, [same, &format!("{same} 2"), "read.iops (IOPS)"]);
    let row = table.row(&run(1, Some(7), &[("x/read.iops (IOPS)", "1")]));
    assert_eq!(row[14], ExportCell::Text(Some("1".into())));
    assert_eq!(
        row[15..],
        [ExportCell::Number(None), ExportCell::Number(Some(5.0))]
    );
}

#[test]
fn openmetrics_have_one_sample_of_a_series_at_a_moment() {
    let mut export = MetricsExport::default();
    for (number, begun_ms) in [
        (1, Some(1_001)),
        (2, Some(1_001)),
        (3, None),
        (4, Some(9_000)),
    ] {
        export.add(&run(number, begun_ms, &[("a-b", "1"), ("a.b", "2")]));
    }
    assert_eq!((export.undated(), export.at_once()), (1, 1));
    let page = export.page();
    let samples = page.lines().filter(|line| line.starts_with("fathom_iops{"));
    let want = [
        "fathom_iops{plan=\"1\",machine=\"2\",direction=\"read\"} 5 1.001",
        "fathom_iops{plan=\"1\",machine=\"2\",direction=\"read\"} 5 9.000",
    ];
    assert!(samples.eq(want), "{page}");
    assert!(
        page.contains("tag_a_b=\"1\",tag_a_b_2=\"2\"} 1 1.001\n"),
        "{page}"
    );
    let other = "fathom_other_number{plan=\"1\",machine=\"2\",job=\"a\",direction=\"read\",\
                 metric=\"of_a_later_version\"} 6 1.001\n";
    assert!(page.contains(other), "{page}");
}

#[test]
fn otava_gets_metrics_of_all_runs_only() {
    let metrics = [
        stored(measure("", "read", "iops", 0.0), 2),
        stored(measure("", "read", "bw", 0.0), 1),
    ];
    let mut export = OtavaExport::new(&metrics, vec!["time".into(), "commit".into()], 2);
    assert_eq!(export.left_out(&metrics), ["read.bw"]);
    assert_eq!(
        export.head(),
        "time,run,program,kernel,firmware,time 2,commit,read.iops\n"
    );
    let line = export.line(&run(1, Some(1_007), &[("commit", "c1")]));
    assert_eq!(
        line.as_deref(),
        Some("2026-05-28T20:26:40.007Z,1,,,,,c1,5\n")
    );
    assert_eq!(export.line(&run(2, None, &[])), None);
    assert_eq!((export.undated(), export.series().len()), (1, 1));
    let mut other = run(3, Some(1_008), &[]);
    other.row.machine_id = Some(3);
    export.line(&other).unwrap();
    assert_eq!(export.series(), ["plan 1, machine 2", "plan 1, machine 3"]);
}
