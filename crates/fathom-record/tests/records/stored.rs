//! Records are written and read back; old ones stay readable.

use fathom_record::{
    DirectionRecord, HostClock, HostRecord, JobRecord, Machine, PEAK_VERSION, PeakPoint,
    PeakRecord, RECORD_VERSION, Record, RecordError, StorageRecord, TimelineRecord, Tolerated,
    Validity, Warning,
};
use fathom_stats::{Latency, Window, Windows};

/// Returns a record in which no field that must survive has its default value.
fn record() -> Record {
    let mut record = Record {
        version: RECORD_VERSION,
        timestamp_ms: 1_795_297_636_781,
        time: "Sat Nov 21 21:47:16 2026".to_owned(),
        elapsed_ms: 2001,
        global_options: vec![("bs".to_owned(), "4k".to_owned())],
        hosts: vec![host()],
        jobs: vec![job()],
        timelines: vec![timeline("read", 0), timeline("write", 50_000_000)],
        machine: Some(Machine {
            kernel: "6.1".to_owned(),
            storage: vec![StorageRecord {
                path: "/data/x".to_owned(),
                ..StorageRecord::default()
            }],
            ..Machine::default()
        }),
        ..Record::default()
    };
    record.validity.push(Validity {
        job: "a".to_owned(),
        figures: vec![("asked".to_owned(), 32.0)],
        ..Validity::default()
    });
    record.warnings.push(Warning {
        code: "depth_on_sync_engine".to_owned(),
        ..Warning::default()
    });
    record
}

fn host() -> HostRecord {
    HostRecord {
        name: "b".to_owned(),
        rank: 1,
        ranks: 2,
        program: "fathom 0.1.0".to_owned(),
        clock: HostClock {
            compared: "kernel".to_owned(),
            is_synchronised: true,
            offset_ns: 1_000_000_000,
            bound_ns: Some(250_000),
            drift_ppb: None,
        },
        agreed_ns: Some(10_000_000_000),
        start_ns: 10_000_000_000,
        end_ns: 12_000_000_000,
        ..HostRecord::default()
    }
}

fn timeline(direction: &str, start_ns: u64) -> TimelineRecord {
    let window = |number: usize| Window {
        ios: 2,
        bytes: 8192,
        min_ns: 100,
        max_ns: 2000,
        bins: vec![(100, 1), (number + 300, 1)],
    };
    TimelineRecord {
        group_id: Some(0),
        direction: direction.to_owned(),
        latency: Some("clat".to_owned()),
        start_ns,
        windows: Windows {
            width_ns: 100_000_000,
            end_ns: 250_000_000,
            windows: (0..3).map(window).collect(),
        },
    }
}

fn job() -> JobRecord {
    let mut job = JobRecord {
        name: "a".to_owned(),
        tolerated: Some(Tolerated { total: 2, first: 5 }),
        ..JobRecord::default()
    };
    job.block_sizes.read = (4096, 8192);
    job.display.percentiles = vec![50.0, 99.9];
    let mut clat = Latency::new(true);
    clat.record_all(&[100, 2000, u64::MAX]);
    let mut lag = Latency::new(false);
    lag.record(7);
    job.directions.read = DirectionRecord {
        bytes: 1 << 40,
        clat: Some(clat),
        lag: Some(lag),
        ..DirectionRecord::default()
    };
    job.directions.read.bandwidth.record(1000);
    job.directions.read.bandwidth.record(3000);
    job
}

#[test]
fn json_round_trip_keeps_a_record() {
    let text = record().to_json().unwrap();
    assert!(!text.contains('\n'));
    let read = Record::from_json(&text).unwrap();
    assert_eq!(read.to_json().unwrap(), text);
    let direction = &read.jobs[0].directions.read;
    let clat = direction.clat.as_ref().unwrap();
    assert_eq!((clat.summary.max(), clat.summary.count()), (u64::MAX, 3));
    assert_eq!(clat.histogram.as_ref().unwrap().percentile(50.0), 2008);
    assert!(direction.lag.as_ref().unwrap().histogram.is_none());
    assert_eq!(direction.bandwidth.mean(), 2000.0);
    assert_eq!(read.machine.unwrap().storage[0].path, "/data/x");
}

/// A decimal parser that rounds in `f64` reads this as the adjacent number, and a saved result
/// would differ from the measured one.
#[test]
fn a_fraction_is_read_back_to_the_last_bit() {
    let value = -48_069_744.959_225_56;
    let point = PeakPoint {
        bw_bytes_per_s: value,
        ..PeakPoint::default()
    };
    let record = PeakRecord {
        version: PEAK_VERSION,
        points: vec![point],
        ..PeakRecord::default()
    };
    let read = PeakRecord::from_json(&record.to_json().unwrap()).unwrap();
    assert_eq!(read.points[0].bw_bytes_per_s.to_bits(), value.to_bits());
}

#[test]
fn version_1_stays_readable() {
    // Written by the first version of this program; never to be regenerated.
    let read = Record::from_json(include_str!("../data/record-1.json")).unwrap();
    let clat = read.jobs[0].directions.read.clat.as_ref().unwrap();
    assert_eq!(clat.summary.count(), 3);
    assert_eq!(read.jobs[0].block_sizes.read, (4096, 8192));
    assert_eq!(read.warnings[0].code, "depth_on_sync_engine");
}

#[test]
fn version_2_stays_readable() {
    // As above, of the first version with timelines.
    let read = Record::from_json(include_str!("../data/record-2.json")).unwrap();
    assert_eq!(read.timelines, record().timelines);
}

#[test]
fn version_3_stays_readable() {
    // As above, of the first version with hosts.
    let read = Record::from_json(include_str!("../data/record-3.json")).unwrap();
    let host = &read.hosts[0];
    assert_eq!((host.name.as_str(), host.rank, host.ranks), ("b", 1, 2));
    assert_eq!(host.span(), Some((9_000_000_000, 11_000_000_000)));
}

#[test]
fn windows_of_a_direction_and_of_all() {
    let mut record = record();
    let (reads, latency) = record.windows("a", "read").unwrap();
    assert_eq!((reads.total().ios, latency), (6, Some("clat")));
    let (all, latency) = record.windows("", "all").unwrap();
    assert_eq!((all.total().ios, latency), (12, Some("clat")));
    assert_eq!((all.windows.len(), all.end_ns), (3, 300_000_000));
    assert_eq!(record.windows("", "trim"), None);
    // Other latencies have no distribution together.
    record.timelines[1].latency = Some("resp".to_owned());
    let (all, latency) = record.windows("", "all").unwrap();
    assert_eq!((all.total().ios, latency), (12, None));
    assert_eq!(all.histogram().count(), 0);
    // Another job of the group: its ops are in the windows, too.
    record.jobs.push(JobRecord {
        name: "b".to_owned(),
        ..JobRecord::default()
    });
    assert_eq!(record.windows("a", "read"), None);
    assert!(record.windows("", "read").is_some());
    record.timelines[0].group_id = None;
    assert_eq!(record.windows("b", "read"), None);
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    let error = Record::from_json(r#"{"version":4,"jobs":"of another kind"}"#).unwrap_err();
    assert!(matches!(error, RecordError::Version { found: 4, .. }));
    assert_eq!(
        error.to_string(),
        "a record of a run of version 4: this program reads versions 1 to 3"
    );
    let error = RecordError::Version {
        document: "a table",
        found: 2,
        newest: 1,
    };
    let want = "a table of version 2: this program reads version 1";
    assert_eq!(error.to_string(), want);
}

#[test]
fn other_documents_are_refused() {
    for text in [
        "",
        "{",
        "[]",
        "{}",
        "null",
        r#"{"version":1}"#,
        r#"{"version":0}"#,
    ] {
        assert!(Record::from_json(text).is_err(), "{text}");
    }
}

#[test]
fn durations_and_rates_carry_their_units() {
    let text = record().to_json().unwrap();
    for key in [
        "clat_ns",
        "lag_ns",
        "bandwidth_kib_per_s",
        "block_sizes_bytes",
        "elapsed_ms",
    ] {
        assert!(text.contains(&format!("\"{key}\":")), "{key}");
    }
}

/// Prints the golden file: `cargo test -p fathom-record -- --ignored --nocapture golden`.
#[test]
#[ignore = "only to make tests/data/record-N.json of a new version"]
fn print_golden() {
    println!("{}", record().to_json().unwrap());
}
