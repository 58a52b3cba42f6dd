//! `fathom log convert`, and logs as Parquet tables where they are built in.

use std::fs;

use crate::common::Folder;

/// Runs a job that writes latency logs, with the options `more`.
fn logged(folder: &Folder, more: &str) {
    let words = format!(
        "run --name=t --ioengine=null --rw=randrw --bs=4k --size=4m --rate_iops=4000 \
         --write_lat_log=w --write_bw_log=w --output=report {more}"
    );
    folder.fathom(&words).expect(0);
}

fn convert(folder: &Folder, from: &str, to: &str, code: i32) -> String {
    let run = folder
        .fathom(&format!("log convert {from} {to}"))
        .expect(code);
    let to = to.rsplit(' ').next().unwrap();
    assert_eq!(folder.path().join(to).exists(), code == 0, "{run:?}");
    run.err
}

fn text(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

/// Returns whether the program was built with Parquet.
const TABLES: bool = cfg!(feature = "parquet");

#[test]
fn the_value_column_is_named_after_what_was_measured() {
    let folder = Folder::new();
    logged(&folder, "");
    fs::copy(
        folder.path().join("w_clat.1.log"),
        folder.path().join("plain.log"),
    )
    .unwrap();
    let head = |name: &str| text(&folder, name).lines().next().unwrap().to_owned();
    let said = convert(&folder, "plain.log", "a.csv", 0);
    assert!(head("a.csv").starts_with("time_ms,value,"));
    assert!(
        said.contains("hint: add `--kind`, as in `--kind=clat`"),
        "{said}"
    );
    let said = convert(&folder, "plain.log", "--kind=clat b.csv", 0);
    assert!(head("b.csv").starts_with("time_ms,clat_ns,"));
    assert!(!said.contains("hint"), "{said}");
    // A table under another name has named its column.
    let said = convert(&folder, "b.csv", "c.csv", 0);
    assert!(head("c.csv").starts_with("time_ms,clat_ns,"), "{said}");
    convert(&folder, "b.csv", "--kind=slat d.csv", 0);
    assert!(head("d.csv").starts_with("time_ms,slat_ns,"));
    if TABLES {
        convert(&folder, "b.csv", "e.parquet", 0);
        convert(&folder, "e.parquet", "f.csv", 0);
        assert!(head("f.csv").starts_with("time_ms,clat_ns,"));
    }
}

#[test]
fn every_round_trip_keeps_every_line() {
    for more in [
        "",
        "--log_offset=1 --log_prio=1",
        "--log_avg_msec=20 --log_window_value=both",
        "--log_offset=1 --log_issue_time=1",
    ] {
        let folder = Folder::new();
        logged(&folder, more);
        let stored = !more.contains("both") && !more.contains("issue");
        for name in ["w_clat.1.log", "w_bw.1.log"] {
            let lines = text(&folder, name);
            let mut ways = vec!["a.csv"];
            ways.extend(stored.then_some("a.fz"));
            ways.extend(TABLES.then_some("a.parquet"));
            for way in ways {
                let said = convert(&folder, name, way, 0);
                let count = lines.lines().count();
                assert_eq!(said, format!("{way}: {count} lines\n"), "{more}");
                convert(&folder, way, "b.log", 0);
                assert!(text(&folder, "b.log") == lines, "{more}: {name}: {way}");
                fs::remove_file(folder.path().join(way)).unwrap();
                fs::remove_file(folder.path().join("b.log")).unwrap();
            }
        }
    }
}

#[test]
fn columns_have_names_with_units() {
    let folder = Folder::new();
    folder.write("x_clat.1.log", "1, 700, 900, 1, 4096, 8192, 0x2003, 5\n");
    convert(&folder, "x_clat.1.log", "x.csv", 0);
    let want = "time_ms,clat_ns,clat_ns_max,direction,bytes,offset_bytes,priority,issued_ns\n\
                1,700,900,1,4096,8192,8195,5\n";
    assert_eq!(text(&folder, "x.csv"), want);
}

#[test]
fn failed_conversions_are_reported_and_leave_no_file() {
    let folder = Folder::new();
    folder.write("good_lat.1.log", "1, 2, 0, 4096, 0\n");
    folder.write("bad.log", "1, 2, 0, 4096, 0\n1, 2, x, 4096, 0\n");
    folder.write("hist.log", format!("1, 0, 4096{}\n", ", 0".repeat(1856)));
    folder.write("both_lat.1.log", "1, 2, 3, 1, 0, 0\n");
    for (from, to, why) in [
        ("nothing", "x.csv", "nothing: No such file or directory"),
        ("bad.log", "x.csv", "bad.log: line 2: `x` is not a number"),
        ("hist.log", "x.csv", "1859 columns: histograms have no rows"),
        ("hist.log", "y.csv", "`fathom report` draws them"),
        ("both_lat.1.log", "x.log.fz", "has no column for"),
    ] {
        let said = convert(&folder, from, to, 2);
        assert!(
            said.contains(why) && said.starts_with("fathom: log convert: "),
            "{said}"
        );
    }
    for to in ["x.xyz", "x", "x.log.1"] {
        let said = convert(&folder, "good_lat.1.log", to, 2);
        assert!(said.contains("use .log, .fz, .csv or .parquet"), "{said}");
        assert!(!folder.path().join(to).exists(), "{to}");
    }
    let run = folder
        .fathom("log convert good_lat.1.log ./good_lat.1.log")
        .expect(2);
    assert!(run.err.contains("replaced by itself"), "{}", run.err);
    assert_eq!(text(&folder, "good_lat.1.log"), "1, 2, 0, 4096, 0\n");
    folder
        .fathom("log convert good_lat.1.log not/there.csv")
        .expect(2);
}

#[test]
fn without_tables_the_feature_is_named() {
    let folder = Folder::new();
    let words = "run --name=t --ioengine=null --size=64k --write_lat_log=w --log-format=parquet";
    if TABLES {
        folder.fathom(words).expect(0);
        assert!(folder.names().contains(&"w_clat.1.parquet".to_owned()));
        return;
    }
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains("--no-default-features"), "{}", run.err);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    folder.write("w.log", "1, 2, 0, 4096, 0\n");
    let said = convert(&folder, "w.log", "w.parquet", 2);
    assert!(said.contains("--no-default-features"), "{said}");
}

#[cfg(feature = "parquet")]
#[test]
fn pyarrow_reads_our_tables() {
    use crate::common::Run;
    let folder = Folder::new();
    let python = |code: &str| {
        let mut command = folder.command("python3", "-c");
        command.arg(code);
        command.output().map(Run::from)
    };
    if !python("import pyarrow.parquet").is_ok_and(|run| run.code == Some(0)) {
        println!("skipped: no pyarrow");
        return;
    }
    logged(&folder, "--log_format=parquet --log_offset=1");
    convert(&folder, "w_lat.1.parquet", "w_lat.csv", 0);
    let code = "import csv, pyarrow.parquet as pq\n\
                t = pq.read_table('w_lat.1.parquet')\n\
                print(','.join(t.schema.names), sorted({str(f.type) for f in t.schema}))\n\
                rows = [tuple(map(int, r)) for r in list(csv.reader(open('w_lat.csv')))[1:]]\n\
                assert rows == list(zip(*[c.to_pylist() for c in t.columns]))\n\
                print(len(rows) == 1024)";
    let run = python(code).unwrap().expect(0);
    let want = "time_ms,lat_ns,direction,bytes,offset_bytes,realtime ['int64']\nTrue\n";
    assert_eq!(run.out, want);
}
