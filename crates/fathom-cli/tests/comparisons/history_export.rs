//! `fathom history export --format …`, and `fathom run --metrics-file`.

use std::process::{Command, Stdio};

use crate::common::{Folder, Run};
use serde_json::{Value, json};

/// Name of a job that is hostile to every format.
fn hostile() -> String {
    let long = "x".repeat(10_000);
    format!("=</script><script>\"',\\\n# EOF\r\u{1b}[31m\0{long}")
}

fn run(number: u64, plan: &str, measures: &Value) -> String {
    json!({
        "fathom_run": 1,
        "uuid": format!("{number:032x}"),
        "begun_ms": 1_780_000_000_123 + number * 3_600_000,
        "wall_ms": 1500,
        "plan": plan,
        "machine": { "cpu": "one" },
        "subject": { "program": "fathom 1", "kernel": "6.12", "firmware": { "nvme0n1": "7a" } },
        "tags": { "commit": format!("c{number}"), "read.iops": "=1+1" },
        "measures": measures,
    })
    .to_string()
        + "\n"
}

/// Returns a folder whose history has 12 runs of one plan, and one of another that has a hostile
/// name.
fn filled() -> Folder {
    let folder = Folder::new();
    let runs = (0..12_u64).map(|number| {
        let iops = 1000.5 + 0.1 * number as f64;
        let measures = json!([
            ["", "read", "iops", iops, iops - 1.0, iops + 1.0],
            ["", "read", "clat_p99.9", 123_456.0, null, null],
            ["", "read", "bw", 4096.0 * iops, null, null],
            ["target", "service", "threads.0.sent", 7, null, null],
        ]);
        run(number, "[a]\nrw=read\n", &measures)
    });
    folder.write("runs.json", runs.collect::<String>());
    let measures = json!([[hostile(), "read", "iops", 5, null, null]]);
    folder.write("other.json", run(99, "[b]\nrw=read\n", &measures));
    folder
        .fathom("history import runs.json other.json")
        .expect(0);
    folder
}

fn export(folder: &Folder, words: &str) -> String {
    folder
        .fathom(&format!("history export --format {words}"))
        .expect(0)
        .out
}

#[test]
fn a_table_has_units_in_its_headings_and_hostile_names_in_cells() {
    let folder = filled();
    let text = export(&folder, "csv --plan 1");
    let mut lines = text.lines();
    assert_eq!(
        lines.next().unwrap(),
        "run,uuid,begun (UTC),duration (s),lab,cell,variant,repeat,plan,machine,program,kernel,\
         firmware,note,tag.commit,tag.read.iops,read.bw (B/s),read.clat_p99.9 (ns),\
         read.iops (IOPS),read.iops low (IOPS),read.iops high (IOPS),\
         service.target.threads.0.sent"
    );
    assert_eq!(
        lines.next().unwrap(),
        "1,00000000000000000000000000000000,2026-05-28T20:26:40.123Z,1.5,,,,,1,1,fathom 1,6.12,\
         \"{\"\"nvme0n1\"\":\"\"7a\"\"}\",,c0,'=1+1,4098048,123456,1000.5,999.5,1001.5,7"
    );
    assert_eq!(lines.count(), 11);
    let text = export(&folder, "csv --plan 2");
    // A formula is a text, and what a terminal obeys is replaced.
    let head = "\"'=</script><script>\"\"',\\\n# EOF\u{fffd}\u{fffd}[31m\u{fffd}xxx";
    assert!(text.contains(head), "{}", &text[..500]);
    assert!(text.contains("xxx/read.iops (IOPS)\"\n13,"), "{text}");
}

#[test]
fn otava_gets_one_series_whose_rows_are_complete() {
    let folder = filled();
    let refused = folder.fathom("history export --format otava").expect(2);
    assert!(
        refused
            .err
            .contains("these are 2\nhint: select one with `--plan P`")
            && refused.err.contains("plan 2, machine 1"),
        "{refused:?}"
    );
    let text = export(&folder, "otava --plan 1");
    assert!(
        text.starts_with(
            "time,run,program,kernel,firmware,commit,read.iops 2,read.bw,read.clat_p99.9,\
             read.iops,service.target.threads.0.sent\n2026-05-28T20:26:40.123Z,1,fathom 1,"
        ),
        "{text}"
    );
    // A metric that some runs lack would end Otava's import.
    let lacking = run(
        50,
        "[a]\nrw=read\n",
        &json!([["", "read", "iops", 1, null, null]]),
    );
    folder.write("lacking.json", lacking);
    folder.fathom("history import lacking.json").expect(0);
    let run = folder
        .fathom("history export --format otava --plan 1")
        .expect(0);
    assert!(
        run.err.contains("some of the runs lack them: read.bw"),
        "{run:?}"
    );
    assert!(!run.out.contains("read.bw"), "{run:?}");
}

#[test]
fn openmetrics_have_a_sample_at_each_moment() {
    let folder = filled();
    let text = export(&folder, "openmetrics");
    for want in [
        "# TYPE fathom_clat_percentile_seconds gauge\n\
         # UNIT fathom_clat_percentile_seconds seconds\n",
        "fathom_clat_percentile_seconds{plan=\"1\",machine=\"1\",direction=\"read\",\
         percentile=\"99.9\"} 0.000123456 1780000000.123\n",
        "fathom_other_number{plan=\"1\",machine=\"1\",service=\"target\",direction=\"service\",\
         metric=\"threads.0.sent\"} 7 1780000000.123\n",
        "fathom_run_info{run=\"1\",uuid=\"00000000000000000000000000000000\",plan=\"1\",\
         machine=\"1\",program=\"fathom 1\",kernel=\"6.12\",\
         firmware=\"{\\\"nvme0n1\\\":\\\"7a\\\"}\",\
         tag_commit=\"c0\",tag_read_iops=\"=1+1\"} 1 1780000000.123\n",
        "job=\"=</script><script>\\\"',\\\\\\n# EOF\r\u{1b}[31m\0xxx",
    ] {
        assert!(text.contains(want), "{want}\n{text}");
    }
    assert_eq!(text.matches("\n# EOF").count(), 1, "{text}");
    assert!(text.ends_with("\n# EOF\n"));
    let moments = text.lines().filter(|line| line.starts_with("fathom_iops{"));
    assert_eq!(moments.count(), 13);
}

#[test]
fn otlp_is_a_request_per_line_with_histograms_of_the_record() {
    let folder = filled();
    let job = "run --history --name=j --ioengine=null --size=1m --rw=read --bs=4k --tag a=b";
    folder.fathom(job).expect(0);
    let text = export(&folder, "otlp");
    assert_eq!(text.lines().count(), 14);
    let request: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let of_run = &request["resourceMetrics"][0];
    let attributes = of_run["resource"]["attributes"].as_array().unwrap();
    assert!(
        attributes.contains(&json!({ "key": "fathom.tag.a", "value": { "stringValue": "b" } }))
    );
    assert!(attributes.contains(&json!({ "key": "fathom.run", "value": { "intValue": "14" } })));
    let metrics = of_run["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let named = |name: &str| {
        metrics
            .iter()
            .find(|metric| metric["name"] == name)
            .unwrap()
    };
    assert_eq!(named("fathom.clat.percentile")["unit"], "s");
    let clat = &named("fathom.clat")["histogram"];
    assert_eq!(clat["aggregationTemporality"], 1);
    let point = &clat["dataPoints"][0];
    let counts = point["bucketCounts"].as_array().unwrap();
    let sum: u64 = counts
        .iter()
        .map(|count| count.as_str().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!((point["count"].as_str(), sum), (Some("256"), 256));
    let bounds = point["explicitBounds"].as_array().unwrap();
    assert_eq!(bounds.len() + 1, counts.len());
    // The kernel's time is a string, as 64-bit integers are in this encoding.
    assert!(point["startTimeUnixNano"].as_str().unwrap().len() >= 19);
}

#[test]
fn otlp_leaves_out_runs_without_a_time() {
    let folder = filled();
    let undated = run(7, "[c]\n", &json!([["", "read", "iops", 5, null, null]]));
    let undated = undated.replace("\"begun_ms\":", "\"begun\":");
    folder.write("undated.json", undated.replace(&format!("{:032x}", 7), "u"));
    let added = folder.fathom("history import undated.json").expect(0).err;
    assert!(added.contains("1 run added"), "{added}");
    let run = folder.fathom("history export --format otlp").expect(0);
    assert_eq!(run.out.lines().count(), 13);
    assert!(run.err.contains("1 run not exported"), "{}", run.err);
}

#[test]
fn an_export_never_replaces_the_history() {
    let folder = filled();
    let history = "data/fathom/history.db";
    std::os::unix::fs::symlink(history, folder.path().join("link")).unwrap();
    for name in [history, "link"] {
        let words = format!("history export --output {name}");
        let err = folder.fathom(&words).expect(2).err;
        assert!(err.contains("would replace the history"), "{err}");
    }
    assert_eq!(export(&folder, "otlp").lines().count(), 13);
}

#[test]
fn parquet_is_written_as_a_whole_or_refused() {
    let folder = filled();
    let words = "history export --format parquet --output runs.parquet";
    let run = folder.fathom(words);
    if cfg!(feature = "parquet") {
        run.expect(0);
        let bytes = std::fs::read(folder.path().join("runs.parquet")).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    } else {
        assert!(run.expect(2).err.contains("without Parquet"));
    }
    let unknown = folder.fathom("history export --format csv --plan 99 --output none.csv");
    unknown.expect(0);
    assert!(!folder.names().iter().any(|name| name.ends_with(".part")));
}

#[test]
fn an_export_that_cannot_be_written_is_kept() {
    let folder = filled();
    let whole = export(&folder, "csv");
    folder.write("taken.1.csv", "somebody's");
    std::fs::create_dir(folder.path().join("taken.csv")).unwrap();
    for (name, kept) in [
        ("taken.csv", "taken.2.csv"),
        ("no/runs.csv", "runs.1.csv"),
        // The directory takes no file, or the file nothing.
        ("/proc/b.csv", "b.1.csv"),
        ("/dev/full", "full.1"),
    ] {
        let words = format!("history export --format csv --output {name}");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        command.env("TMPDIR", folder.path());
        let err = Run::of(command).expect(2).err;
        let start = format!("fathom: {name}: ");
        assert!(err.starts_with(&start), "{err}");
        assert_eq!(err.matches(name).count(), 1, "{err}");
        assert!(err.contains("\nhint: the export was kept as "), "{err}");
        assert!(err.ends_with(&format!("{kept}\n")), "{err}");
        let text = std::fs::read_to_string(folder.path().join(kept)).unwrap();
        assert_eq!(text, whole);
    }
    let taken = std::fs::read_to_string(folder.path().join("taken.1.csv")).unwrap();
    assert_eq!(taken, "somebody's");
    assert!(!folder.names().iter().any(|name| name.ends_with(".part")));
}

#[test]
fn what_is_exported_by_default_is_imported_again() {
    let folder = filled();
    let default = folder.fathom("history export").expect(0).out;
    assert_eq!(default, export(&folder, "json"));
    assert!(default.starts_with("{\"fathom_run\":1,"), "{default}");
    let listed = folder
        .fathom("history list --plan 2 --json")
        .expect(0)
        .json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["plan_id"], 2);
}

#[test]
fn metrics_of_a_run_are_a_file_that_promtool_accepts() {
    let folder = Folder::new();
    let job = "run --ioengine=null --size=1m --rw=randrw --bs=4k --name";
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), job);
    let name = "=</script>\"\\ # EOF\u{1b}";
    command.args([name, "--numjobs=2", "--metrics-file=run.prom"]);
    Run::of(command).expect(0);
    let text = folder.read("run.prom");
    assert!(
        text.contains("fathom_ops_total{job=\"=</script>\\\"\\\\ # EOF\u{1b}\",group=\"0\","),
        "{text}"
    );
    assert!(text.contains("\nfathom_running 0\n"), "{text}");
    let ops: f64 = text
        .lines()
        .filter(|line| line.starts_with("fathom_ops_total{"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert!((ops - 512.0).abs() < 0.5, "{text}");
    let bad = folder.fathom("run --name=j --ioengine=null --size=1m --metrics-file=run.txt");
    assert!(bad.expect(2).err.contains("--metrics-file=run.txt.prom"));
    let taken = "run --name=j --ioengine=null --size=1m --metrics-file=a.prom --output=a.prom";
    assert!(folder.fathom(taken).expect(2).err.contains("would replace"));
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::fs::File::open(folder.path().join("run.prom")).unwrap())
        .stderr(Stdio::piped())
        .output();
    let Ok(checked) = child else {
        println!("skipped: no promtool");
        return;
    };
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(
        checked.status.success() && said.is_empty(),
        "{said}\n{text}"
    );
}

#[test]
fn metrics_that_cannot_be_written_are_told_once_while_the_run_goes_on() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full.prom")).unwrap();
    let words = "run --ioengine=null --size=1m --rw=read --bs=4k --name=j --time_based \
                 --runtime=500ms --rate_iops=1000 --status-interval=100ms \
                 --metrics-file=full.prom";
    let run = folder.fathom(words).expect(2);
    assert_eq!(
        run.err.matches("; the run continues\n").count(),
        1,
        "{run:?}"
    );
    assert!(run.out.contains("read: IOPS="), "{run:?}");
    // Not beside it: a collector reads all files of its directory.
    assert_eq!(folder.names(), ["full.prom"]);
}
