//! `fathom report` of I/O logs.

use crate::common::{Folder, Run};

/// Lines of reads, one each millisecond, each 4 KiB further on than the one before.
fn lines(count: u64) -> String {
    let line = |at| format!("{at}, {}, 0, 4096, {}, 0\n", 10_000 + at % 1000, at * 4096);
    (0..count).map(line).collect()
}

fn report(folder: &Folder, words: &str, code: i32) -> Run {
    let run = folder.fathom(&format!("report --html page.html {words}"));
    let run = run.expect(code);
    assert_eq!(
        folder.path().join("page.html").exists(),
        code == 0,
        "{run:?}"
    );
    run
}

/// Writes a page and returns it.
fn page(folder: &Folder, words: &str) -> String {
    report(folder, words, 0);
    let page = folder.read("page.html");
    std::fs::remove_file(folder.path().join("page.html")).unwrap();
    page
}

#[track_caller]
fn has(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_log_of_a_run_has_a_page() {
    let folder = Folder::new();
    let words = "run --name=t --ioengine=null --rw=randrw --bs=4k --size=4m --write_lat_log=w \
                 --log_offset=1 --output=report";
    folder.fathom(words).expect(0);
    let page = page(&folder, "w_clat.1.log w_lat.1.log");
    let parts = [
        "2 logs, 2048 lines.",
        "Completion latency (clat)",
        "Latency (lat)",
        "w_clat.1.log, read",
        "w_lat.1.log, write",
        "Offsets over time, read",
        "Distances between ops",
    ];
    has(&page, &parts);
}

#[test]
fn every_format_gives_the_same_numbers() {
    let folder = Folder::new();
    folder.write("x_clat.1.log", lines(5000));
    let table = |page: &str| {
        let start = page.find("<caption>clat of ops").unwrap();
        let end = start + page[start..].find("</table>").unwrap();
        let text = page[start..end].to_owned();
        text.split("<td>")
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let want = table(&page(&folder, "x_clat.1.log"));
    assert!(want.len() > 8, "{want:?}");
    let mut ends = vec!["csv", "log.fz"];
    ends.extend(cfg!(feature = "parquet").then_some("parquet"));
    for end in ends {
        let name = format!("y_clat.{end}");
        folder
            .fathom(&format!("log convert x_clat.1.log {name}"))
            .expect(0);
        assert_eq!(table(&page(&folder, &name)), want, "{end}");
    }
}

#[test]
fn the_kind_is_told_guessed_or_stated() {
    let folder = Folder::new();
    folder.write("mystery.log", lines(100));
    let guessed = page(&folder, "mystery.log");
    has(
        &guessed,
        &["guessed: nothing states the kind", "--kind clat"],
    );
    let stated = page(&folder, "mystery.log --kind slat");
    has(
        &stated,
        &["Submission latency (slat)", "as stated by --kind"],
    );
    let run = report(&folder, "mystery.log --kind latency", 2);
    assert!(
        run.err.contains("one of resp, lat, clat, slat, bw, iops"),
        "{}",
        run.err
    );
}

#[test]
fn odd_logs_have_pages_that_tell_it() {
    let folder = Folder::new();
    let mut odd = lines(2000);
    odd += "100, 5, 1, 512, 0, 0\r\n3700000, 18446744073709551615, 0, 4096, 0, 0\n3700001, 7, 0";
    folder.write("odd_clat.1.log", odd);
    let parts = [
        "1 log, 2002 lines.",
        "go back once, by up to 1.899 s",
        "the longest begins at 0.100 s",
        "it breaks off within a line",
        "odd_clat.1.log, write",
    ];
    has(&page(&folder, "odd_clat.1.log"), &parts);
    folder.write("none_clat.1.log", "");
    has(&page(&folder, "none_clat.1.log"), &["it has no line"]);
    folder.write("one_clat.1.log", "1, 2, 0, 4096, 0\n");
    has(&page(&folder, "one_clat.1.log"), &["1 log, 1 line."]);
    folder.write("<b>&_clat.1.log", "1, 2, 0, 4096, 0\n");
    let page = page(&folder, "<b>&_clat.1.log");
    assert!(!page.contains("<b>"), "{page}");
}

#[test]
fn what_is_no_log_is_refused_by_file_and_line() {
    let folder = Folder::new();
    folder.write("good_lat.log", "1, 2, 0, 4096, 0\n");
    folder.write("bad_lat.log", "1, 2, 0, 4096, 0\n1, 2, x, 4096, 0\n");
    folder.write("text.log", "hello\n");
    folder.write(
        "h_clat_hist.1.log",
        format!("1, 0, 4096{}\n", ", 0".repeat(1855)),
    );
    folder.write("job.fio", "[global]\n");
    folder.write("empty.json", "");
    for (words, why) in [
        (
            "bad_lat.log",
            "bad_lat.log:2: not a line of a log: `x` is not a number\nhint: ",
        ),
        (
            "text.log",
            "text.log:1: not a line of a log: `hello` is not a number\nhint: ",
        ),
        (
            "h_clat_hist.1.log",
            "h_clat_hist.1.log:1: not a line of a log: it has 1858 columns",
        ),
        ("good_lat.log job.fio", "job.fio: "),
        (
            "job.fio good_lat.log job.fio",
            "job.fio: not a log; a page of logs shows one run",
        ),
        ("empty.json", "empty.json: no JSON document"),
        ("good_lat.log lab:none", "there is no history"),
        ("good_lat.log missing.log", "missing.log: No such file"),
    ] {
        let run = report(&folder, words, 2);
        assert!(
            run.err.starts_with("fathom: report: ") && run.err.contains(why),
            "{}",
            run.err
        );
    }
}

#[test]
fn histogram_logs_have_a_page() {
    let folder = Folder::new();
    let words = "run --name=j --ioengine=null --size=64m --rw=randrw --bs=4k --write_hist_log=h \
                 --log_hist_msec=10 --time_based --runtime=300ms --output-format=json+ \
                 --output=run.json";
    folder.fathom(words).expect(0);
    let text = page(&folder, "h_clat_hist.1.log");
    has(
        &text,
        &[
            "lines are histograms",
            "clat by percentile",
            "clat over time",
            "number of lines",
        ],
    );
    for (coarseness, error) in [(0, "off by up to 0.8 %"), (6, "off by up to 50.0 %")] {
        let words = words.replace("write_hist_log=h", "write_hist_log=g");
        let words = format!("{words} --log_hist_coarseness={coarseness}");
        folder.fathom(&words).expect(0);
        has(&page(&folder, "g_clat_hist.1.log"), &[error]);
    }
    // A log that its writer did not end.
    let whole = folder.read("h_clat_hist.1.log");
    folder.write("cut_clat_hist.1.log", &whole[..whole.len() - 100]);
    has(
        &page(&folder, "cut_clat_hist.1.log"),
        &["breaks off within a line"],
    );
    folder.write("bad_clat_hist.1.log", whole + "1, 2, 0, 4096, 0\n");
    let run = report(&folder, "bad_clat_hist.1.log", 2);
    assert!(run.err.contains("it has 5 columns"), "{run:?}");
}

#[test]
fn a_run_and_its_logs_have_one_page() {
    let folder = Folder::new();
    let words = "run --name=t --ioengine=null --rw=randread --bs=4k --size=4m --write_lat_log=w \
                 --log_offset=1 --record=run.json --output=report";
    folder.fathom(words).expect(0);
    let pointer = "Name the logs after the run";
    has(&page(&folder, "run.json"), &[pointer]);
    let both = page(&folder, "run.json w_clat.1.log");
    let parts = [
        "<h1>run.json</h1>",
        "I/O logs of this run",
        "1 log, 1024 lines.",
        "Offsets over time, read",
        "All numbers, as JSON",
    ];
    has(&both, &parts);
    assert!(!both.contains(pointer));
    // The order of the words does not matter.
    assert_eq!(page(&folder, "w_clat.1.log run.json"), both);
}

#[test]
fn compressed_histogram_logs_of_fio_are_refused() {
    let folder = Folder::new();
    let words = "run --name=t --ioengine=null --rw=read --bs=4k --size=4m --write_lat_log=w \
                 --log_compression=64k --log_store_compressed=1 --output=report";
    folder.fathom(words).expect(0);
    let (from, to) = ("w_clat.1.log.fz", "w_clat_hist.1.log.fz");
    std::fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
    let refused = report(&folder, to, 2);
    has(
        &refused.err,
        &[
            "w_clat_hist.1.log.fz: fio stores addresses of its memory",
            "hint: run the job again without log_store_compressed",
        ],
    );
}

#[test]
fn one_slow_op_of_many_is_seen() {
    let folder = Folder::new();
    let mut all = String::new();
    for line in 0..300_000_u64 {
        let value = if line == 222_222 { 987_654_321 } else { 50_000 };
        all += &format!("{}, {value}, 0, 4096, 0\n", line / 10);
    }
    folder.write("x_clat.1.log", all);
    // In the table of percentiles, and in the numbers of the line over time.
    let parts = ["<td>987654.32</td>", "<td>50 to 987654</td>"];
    has(&page(&folder, "x_clat.1.log"), &parts);
}
