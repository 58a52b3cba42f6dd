//! Pages of whole records.

use fathom_record::{
    DirectionRecord, JobRecord, PerDirectionRecord, RECORD_VERSION, TimelineRecord, Validity,
    Warning,
};
use fathom_stats::{Latency, Window, Windows};

use super::*;

/// Returns a record of a job with reads whose latencies ascend from 1 to 100 µs.
fn record(name: &str) -> Record {
    let mut clat = Latency::new(true);
    for at in 1..=10_000_u64 {
        clat.record(at * 10);
    }
    let read = DirectionRecord {
        ios: 10_000,
        bytes: 10_000 * 4096,
        runtime_ms: 1000,
        clat: Some(clat),
        ..DirectionRecord::default()
    };
    let window = |max_ns| Window {
        ios: 5000,
        bytes: 5000 * 4096,
        min_ns: 10,
        max_ns,
        bins: vec![(10, 5000)],
    };
    Record {
        version: RECORD_VERSION,
        time: "Tue Nov 24 12:00:00 2026".into(),
        jobs: vec![JobRecord {
            name: name.into(),
            options: vec![("rw".into(), name.into()), ("direct".into(), String::new())],
            directions: PerDirectionRecord {
                read,
                ..PerDirectionRecord::default()
            },
            ..JobRecord::default()
        }],
        timelines: vec![TimelineRecord {
            group_id: Some(0),
            direction: "read".into(),
            latency: Some("clat".into()),
            start_ns: 0,
            windows: Windows {
                width_ns: 500_000_000,
                end_ns: 1_000_000_000,
                windows: vec![window(50_000), window(100_000)],
            },
        }],
        ..Record::default()
    }
}

#[test]
fn every_number_of_the_json_is_in_the_text() {
    let record = record("j");
    let page = run_page(&record, "run.json").html();
    let json = document::json(&record, false);
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let mut numbers = 0;
    for number in json.split(|c| !is_part(c)).filter(|text| !text.is_empty()) {
        assert!(page.contains(number), "{number}");
        numbers += 1;
    }
    assert!(numbers > 100, "{numbers}");
    for text in ["Latency by percentile", "Group 0, read", "100.00", "10000"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn names_cannot_become_markup() {
    for name in [
        "</script><script>alert(1)</script>",
        "\u{1b}[2J\u{7}\"onload=\"x",
        "'; drop table run",
        &"x<b>".repeat(2500),
    ] {
        let mut record = record(name);
        record.warnings = vec![Warning {
            job: name.into(),
            message: name.into(),
            hint: name.into(),
            ..Warning::default()
        }];
        record.validity = vec![Validity {
            job: name.into(),
            sentence: name.into(),
            ..Validity::default()
        }];
        let page = run_page(&record, name).html();
        assert_eq!(page.matches("<script").count(), 1, "{name}");
        assert!(
            !page.contains("<script>alert") && !page.contains("<b>"),
            "{name}"
        );
        assert!(!page.contains(['\u{1b}', '\u{7}']), "{name}");
        assert_eq!(page.matches("<style>").count(), 1);
    }
}

#[test]
fn warnings_stand_before_the_numbers() {
    let mut record = record("j");
    assert!(
        run_page(&record, "a")
            .html()
            .contains("The record has no checks")
    );
    record.validity = vec![Validity {
        ok: true,
        ..Validity::default()
    }];
    assert!(
        run_page(&record, "a")
            .html()
            .contains("All checks of this run passed")
    );
    record.warnings = vec![Warning {
        message: "the page cache served reads".into(),
        hint: "set direct=1".into(),
        ..Warning::default()
    }];
    let page = run_page(&record, "a").html();
    let at = |text: &str| page.find(text).unwrap();
    assert!(at("the page cache served reads Hint: set direct=1") < at("<table>"));
}

#[test]
fn a_run_without_ops_has_a_page_without_figures() {
    let page = run_page(&Record::default(), "empty").html();
    assert!(!page.contains("<svg") && page.contains("</html>"));
}
