//! Pages of whole records.

use fathom_record::{
    DirectionRecord, DiskRecord, JobRecord, ModelledDevice, ModelledMachine, PerDirectionRecord,
    PriorityRecord, RECORD_VERSION, SeekRecord, StallRecord, TimelineRecord, Validity, Warning,
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

/// Returns a timeline of as many windows, each with ops of one latency.
fn timeline(windows: usize) -> TimelineRecord {
    let window = Window {
        ios: 2000,
        bytes: 2000 * 4096,
        min_ns: 10,
        max_ns: 50_000,
        bins: vec![(10, 2000)],
    };
    TimelineRecord {
        group_id: None,
        direction: "read".into(),
        latency: Some("clat".into()),
        start_ns: 0,
        windows: Windows {
            width_ns: 1_000_000,
            end_ns: windows as u64 * 1_000_000,
            windows: vec![window; windows],
        },
    }
}

#[test]
fn windows_from_none_to_many_have_a_page() {
    for (windows, figures) in [(0, 2), (1, 2), (2, 4), (20_000, 4)] {
        let mut record = record("j");
        record.timelines = vec![timeline(windows)];
        let page = run_page(&record, "r");
        assert_eq!(page.drawings().len(), figures, "{windows}");
        for drawing in page.drawings() {
            let has = |odd: &str| drawing.svg.contains(odd);
            assert!(!has("NaN") && !has("inf"), "{windows}: {}", drawing.svg);
        }
        // The JSON has each window; the rest of the page is bounded.
        let figures: usize = page.drawings().iter().map(|one| one.svg.len()).sum();
        assert!(figures < 500_000, "{windows}: {figures} bytes");
    }
    let mut record = record("j");
    record.timelines.clear();
    assert_eq!(run_page(&record, "r").drawings().len(), 2);
}

#[test]
fn thousands_of_jobs_and_timelines_are_bounded() {
    let mut record = record("j");
    let job = record.jobs[0].clone();
    record.jobs = (0..3000)
        .map(|at| JobRecord {
            name: format!("job{at}"),
            ..job.clone()
        })
        .collect();
    record.timelines = vec![timeline(3); 500];
    record.warnings = vec![Warning::default(); 5000];
    let page = run_page(&record, "r");
    // Two of all jobs, and two of each timeline.
    assert_eq!(page.drawings().len(), 2 + 2 * 16);
    let html = page.html();
    for told in [
        "2800 more rows are left out",
        "2992 more are not drawn",
        "484 more are in the numbers below",
        "4900 more are in the numbers below",
    ] {
        assert!(html.contains(told), "{told}");
    }
    let json = document::json(&record, false).len();
    assert!(html.len() < 4 * json, "{} {json}", html.len());
    assert!(html.contains("job2999"), "the JSON has every job");
}

#[test]
fn each_part_that_a_record_has_is_shown() {
    let mut record = record("j");
    record.disks = vec![DiskRecord {
        name: "vda".into(),
        read_ios: 10,
        read_ticks_ms: 25,
        util_percent: 12.5,
        ..DiskRecord::default()
    }];
    let distances = [(0, 1, 70), (1, 2, 0), (2, 4, 7)].into_iter().collect();
    record.modelled = Some(ModelledMachine {
        file: "m.toml".into(),
        devices: vec![ModelledDevice {
            names: vec!["/dev/<x>".into()],
            model: "hdd".into(),
            seeks: Some(SeekRecord {
                dispatched: 78,
                sequential_ratio: Some(0.25),
                distances,
                ..SeekRecord::default()
            }),
            ..ModelledDevice::default()
        }],
        noise: None,
    });
    let job = &mut record.jobs[0];
    job.stalls = vec![StallRecord {
        number: 1,
        at_ns: 1_500_000_000,
        duration_ns: 80_000_000,
        direction: "read".into(),
        ops: 4,
        ..StallRecord::default()
    }];
    let latency = job.directions.read.clat.clone().unwrap();
    job.directions.read.priorities = [0x2004, 0x4000]
        .map(|priority| PriorityRecord {
            priority,
            latency: latency.clone(),
        })
        .into();
    let page = run_page(&record, "r");
    let html = page.html();
    for text in [
        "Block devices",
        "<td>2.500</td>",
        "<td>12.50</td>",
        "Seek distances of /dev/&lt;x&gt; (hdd)",
        "25.0 % of them",
        "Stalls",
        "<td>80.0</td>",
        "j, read, 1/4/0 (clat)",
        "j, read, 2/0/0 (clat)",
        "Group 0, read: clat of all ops",
        "ops that took no longer, %",
    ] {
        assert!(html.contains(text), "{text}");
    }
    for drawing in page.drawings() {
        assert_eq!(
            crate::plot::faults(&drawing.svg),
            [""; 0],
            "{}",
            drawing.name
        );
    }
    assert_eq!(page.drawings().len(), 6);
}
