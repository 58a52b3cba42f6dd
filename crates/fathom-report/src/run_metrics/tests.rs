use fathom_record::DiskRecord;

use super::*;

fn latency(values: &[u64], keep: bool) -> Option<Latency> {
    let mut latency = Latency::new(keep);
    latency.record_all(values);
    Some(latency)
}

fn job(name: &str, group_id: u32) -> JobRecord {
    let mut job = JobRecord {
        name: name.into(),
        group_id,
        start_ms: 1_780_000_000_000,
        runtime_ms: 2_500,
        ..JobRecord::default()
    };
    job.directions.read = DirectionRecord {
        bytes: 12_288,
        ios: 3,
        runtime_ms: 2_500,
        clat: latency(&[1_000, 40_000, 2_000_000], true),
        slat: latency(&[1_000; 3], false),
        ..DirectionRecord::default()
    };
    job.sync.ios = 1;
    job.sync.lat = latency(&[3_000_000], true).unwrap();
    job
}

fn record() -> Record {
    let mut hidden = job("hidden", 0);
    hidden.display.hidden = true;
    let mut failed = job(HOSTILE, 1);
    failed.error = 5;
    Record {
        timestamp_ms: 1_780_000_002_500,
        jobs: vec![job("j", 0), job("j", 0), hidden, failed],
        disks: vec![DiskRecord {
            name: "vda".into(),
            util_percent: 50.0,
            ..DiskRecord::default()
        }],
        ..Record::default()
    }
}

/// Name of a job that would end its label, and begin a sample and a comment of its own.
const HOSTILE: &str = "</script>\\\"} 1\nfathom_ops_total 9\n# EOF\u{1b}[31m";

#[test]
fn clones_are_added_up_and_hidden_jobs_left_out() {
    let text = openmetrics(&RunMetrics::of_record(&record()));
    for want in [
        "# TYPE fathom_ops counter\n",
        "fathom_ops_total{job=\"j\",group=\"0\",direction=\"read\"} 6\n",
        "fathom_ops_total{job=\"j\",group=\"0\",direction=\"sync\"} 2\n",
        "# UNIT fathom_io_bytes bytes\n",
        "fathom_io_bytes_total{job=\"j\",group=\"0\",direction=\"read\"} 24576\n",
        "fathom_runtime_seconds{job=\"j\",group=\"0\",direction=\"read\"} 2.500\n",
        "fathom_clat_seconds_bucket{job=\"j\",group=\"0\",direction=\"read\",le=\"5e-05\"} 4\n",
        "fathom_clat_seconds_count{job=\"j\",group=\"0\",direction=\"read\"} 6\n",
        "fathom_clat_seconds_sum{job=\"j\",group=\"0\",direction=\"read\"} 0.004082\n",
        "fathom_lat_seconds_count{job=\"j\",group=\"0\",direction=\"sync\"} 2\n",
        "fathom_failed_jobs 1\n",
        "fathom_start_time_seconds 1780000000.000\n",
        "fathom_disk_utilisation_ratio{disk=\"vda\"} 0.5\n",
    ] {
        assert!(text.contains(want), "{want}\n{text}");
    }
    // No distribution of slat was kept.
    assert!(!text.contains("slat") && !text.contains("hidden"), "{text}");
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn a_name_cannot_forge_samples() {
    for format in [MetricsFormat::OpenMetrics, MetricsFormat::Prometheus] {
        let text = RunMetrics::of_record(&record()).page(format);
        let escaped = r#"{job="</script>\\\"} 1\nfathom_ops_total 9\n# EOF"#;
        assert!(text.contains(escaped), "{text}");
        assert!(!text.contains("\nfathom_ops_total 9"), "{text}");
        let ends = text
            .lines()
            .filter(|line| line.starts_with("# EOF"))
            .count();
        assert_eq!(ends, usize::from(format == MetricsFormat::OpenMetrics));
    }
}

#[test]
fn a_distribution_of_some_clones_is_not_shown() {
    let mut record = record();
    record.jobs[1].directions.read.clat = latency(&[7; 3], false);
    let text = openmetrics(&RunMetrics::of_record(&record));
    let of_j = "fathom_clat_seconds_count{job=\"j\"";
    assert!(!text.contains(of_j), "{text}");
    assert!(
        text.contains("fathom_clat_seconds_count{job=\"</script>"),
        "{text}"
    );
}
