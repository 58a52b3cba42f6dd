//! `fathom report` on labs, comparisons, trends and reports of fio.

use crate::MACHINE;
use crate::common::Folder;

#[cfg(feature = "history")]
const LAB: &str = r#"
# '; drop table run
[lab]
name = "depths </script><script>"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/modelled"
number_ios = 500
[axes]
iodepth = [1, 2, 4]
numjobs = [1, 2]
[variants]
old = {}
new = { machine = { "device.constant.latency_us" = 110 } }
[judge]
baseline = "old"
metrics = { "read.iops" = "2%" }
show = ["read.clat_p90_us"]
repeats = { min = 8, max = 8 }
[[published]]
origin = "<b>a list</b>, 2022"
file = "p.csv"
keys = { iodepth = "depth", numjobs = "jobs" }
columns = [{ metric = "read.iops", variant = "old", column = "iops" }]
"#;

#[cfg(feature = "history")]
fn with_lab() -> Folder {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    folder.write("p.csv", "depth,jobs,iops\n1,1,9876\n2,1,18765\n");
    folder.write("lab.toml", LAB);
    folder
}

/// Returns the page that the command writes; it has no foreign markup.
#[track_caller]
fn page(folder: &Folder, words: &str) -> String {
    folder
        .fathom(&format!("report --html page.html {words}"))
        .expect(0);
    let page = folder.read("page.html");
    let scripts = page.matches("<script").count();
    assert!(scripts <= 1 && !page.contains("<b>"), "{scripts}");
    assert!(!page.contains(['\u{1b}', '\u{7}']));
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    page
}

#[track_caller]
fn has(page: &str, texts: &[&str]) {
    for text in texts {
        assert!(page.contains(text), "{text}");
    }
}

#[cfg(feature = "history")]
#[test]
fn a_lab_of_the_history_has_a_page() {
    let folder = with_lab();
    let table = folder.fathom("lab lab.toml --json").expect(1).json();
    let by_file = page(&folder, "lab.toml");
    has(
        &by_file,
        &[
            "read.iops: new against old",
            "<td>6</td>",
            "class=\"band\"",
            "Latency against throughput",
            "Two axes at a time",
            "runs in their order",
            "Values of each run, as CSV",
            "'; drop table run",
            "latency_us = 100",
            "published figures: &lt;b&gt;a list&lt;/b&gt;, 2022",
            "modelled on m.toml",
            "program: fathom",
        ],
    );
    // All numbers of the table's JSON are in the text.
    for number in table
        .to_string()
        .split(|c: char| !c.is_ascii_digit() && c != '.')
    {
        assert!(by_file.contains(number), "{number}");
    }
    // By name it is the same, without any of its files.
    for file in ["lab.toml", "m.toml"] {
        std::fs::remove_file(folder.path().join(file)).unwrap();
    }
    let refused = folder.fathom("report --html a.html lab:depths").expect(2);
    let labs = "labs there: depths </script><script>";
    assert!(refused.err.contains(labs), "{}", refused.err);
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), "report --html name.html");
    command.arg("lab:depths </script><script>");
    crate::common::Run::of(command).expect(0);
    assert_eq!(folder.read("name.html"), by_file);
}

#[cfg(feature = "history")]
#[test]
fn a_lab_writes_its_page_at_its_end() {
    let folder = with_lab();
    folder.fathom("lab lab.toml --html own.html").expect(1);
    assert_eq!(folder.read("own.html"), page(&folder, "lab.toml"));
    let words = "lab lab.toml --rehearse m.toml --html rehearsed.html";
    folder.fathom(words).expect(1);
    has(
        &folder.read("rehearsed.html"),
        &["read.iops: new against old"],
    );
    let refused = folder
        .fathom("lab lab.toml --html no/such/folder.html")
        .expect(2);
    assert!(refused.err.contains("--html"), "{}", refused.err);
    folder.fathom("lab lab.toml --plan --html a.html").expect(2);
}

#[cfg(feature = "history")]
#[test]
fn labs_that_cannot_be_shown_are_refused() {
    let folder = with_lab();
    let refuse = |words: &str, want: &[&str]| {
        let run = folder
            .fathom(&format!("report --html a.html {words}"))
            .expect(2);
        for want in want {
            assert!(run.err.contains(want), "{words}: {want}: {}", run.err);
        }
    };
    refuse("lab.toml", &["there is no history"]);
    folder.write(
        "plain.toml",
        LAB.replace("depths </script><script>", "plain"),
    );
    folder.fathom("lab plain.toml").expect(1);
    refuse(
        "lab.toml",
        &["no lab of this file", "run it: `fathom lab lab.toml`"],
    );
    refuse("lab:other", &["no lab `other`", "labs there: plain"]);
    refuse("lab:plain/old", &["one side of a comparison", "lab:plain"]);
    refuse(
        "trend:write.iops",
        &["no run that it selects has `write.iops`"],
    );
    refuse("trend:write.iopz", &["no metric `iopz`"]);
    refuse("tag:a=b", &["one side of a comparison"]);
    refuse("1-3", &["one side of a comparison"]);
    refuse("99", &["no run 99"]);
    refuse("1 2 3", &["more than two words"]);
    refuse("1 --accept-drift", &["rules of a comparison"]);
    refuse("1 --plan 3", &["series of a trend"]);
    let changed = LAB
        .replace("depths </script><script>", "plain")
        .replace("110", "111");
    folder.write("plain.toml", changed);
    refuse(
        "plain.toml",
        &["was changed since its lab `plain` was run", "lab:plain"],
    );
    std::fs::remove_file(folder.path().join("p.csv")).unwrap();
    refuse(
        "lab:plain",
        &["lab `plain`: its text in the history: line", "p.csv"],
    );
    assert!(!folder.path().join("a.html").exists());
}

#[cfg(feature = "history")]
#[test]
fn a_trend_has_a_page_with_its_changes() {
    let folder = Folder::new();
    let run = |number: u64| {
        let (iops, kernel) = match number < 32 {
            true => (100_000, "6.12.1"),
            false => (93_000, "</pre><script>"),
        };
        serde_json::json!({
            "fathom_run": 1,
            "uuid": format!("{number:032x}"),
            "begun_ms": 1_767_225_600_000_u64 + number * 86_400_000,
            "wall_ms": 1000,
            "plan": "[nightly]\nrw=randread\n",
            "machine": { "cpu": "one" },
            "subject": { "program": "fathom 1", "kernel": kernel },
            "measures": [["", "read", "iops", iops + (number * 37 % 24) * 100, null, null]],
        })
        .to_string()
    };
    let runs: Vec<String> = (0..40).map(run).collect();
    folder.write("runs.json", runs.join("\n"));
    folder.fathom("history import runs.json").expect(0);
    let page = page(&folder, "trend:read.iops");
    has(
        &page,
        &[
            "Trend of read.iops",
            "worse from run 33 on",
            "changed before run 33: kernel 6.12.1 → &lt;/pre&gt;&lt;script&gt;",
            "2026-02-02 00:00:00",
            "the newest 5 runs are worse",
            "before run 33",
            "100000",
        ],
    );
    let refused = folder
        .fathom("report --html a.html trend:read.iops --plan 9")
        .expect(2);
    assert!(
        refused.err.contains("no run that it selects"),
        "{}",
        refused.err
    );
}

#[test]
fn a_truncated_parquet_file_is_called_one() {
    let folder = Folder::new();
    folder.write("cut", "PAR1\u{15}\n{ not JSON\n");
    let refused = folder.fathom("report cut --html a.html").expect(2);
    let want = "cut: a Parquet file that is truncated, or no I/O log";
    assert!(refused.err.contains(want), "{}", refused.err);
}

/// Writes a modelled run's record.
fn record(folder: &Folder, name: &str, latency: u32, seed: u32) {
    folder.write("m.toml", MACHINE.replace("= 100", &format!("= {latency}")));
    folder
        .fathom(&format!(
            "run --machine m.toml --record {name} --name=</script><script> --filename=/dev/x \
             --rw=randread --bs=4k --number_ios=2000 --randseed={seed}"
        ))
        .expect(0);
}

#[test]
fn a_comparison_has_a_page() {
    let folder = Folder::new();
    for (side, latency) in [("before", 100), ("after", 110)] {
        std::fs::create_dir(folder.path().join(side)).unwrap();
        for run in 0..6 {
            // Runs of a modelled machine that differ.
            record(&folder, &format!("{side}/{run}.json"), latency + run, run);
        }
    }
    let unclear = page(&folder, "before after");
    has(
        &unclear,
        &[
            "before (6 runs) → after (6 runs)",
            "unclear: not interleaved",
            "fathom ab",
            "Values of each run",
            "class=\"band\"",
        ],
    );
    let words = "before/ after/ --accept-drift --metric read.iops=1%";
    let judged = page(&folder, words);
    has(&judged, &["worse", "± 1 %", "read.iops"]);
    let json = folder
        .fathom(&format!("compare {words} --json"))
        .expect(1)
        .json();
    for number in json
        .to_string()
        .split(|c: char| !c.is_ascii_digit() && c != '.')
    {
        assert!(judged.contains(number), "{number}");
    }
}

#[test]
fn reports_of_fio_have_a_page_as_far_as_they_go() {
    let folder = Folder::new();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../fathom-lab/tests/import");
    let plus = page(&folder, &format!("{tests}/fio-json-plus.json"));
    has(
        &plus,
        &[
            "made from a report of fio-3.33",
            "Latency by percentile",
            "<svg",
        ],
    );
    let plain = page(&folder, &format!("{tests}/fio-json.json"));
    has(
        &plain,
        &[
            "plain JSON has no histograms",
            "Percentiles of the report",
            "a, read, clat",
            "150.528",
        ],
    );
    let hostile = "{\"fio version\": \"fio-3.33\", \"jobs\": [{\"jobname\": \"</script><script>\
                   '; drop table run\\u001b\\u0007\", \"read\": {\"total_ios\": 100, \"runtime\": \
                   10, \"clat_ns\": {\"N\": 100, \"mean\": 5, \"max\": 9, \"percentile\": \
                   {\"50.000000\": 5}}}}]}";
    folder.write("hostile.json", hostile);
    has(
        &page(&folder, "hostile.json"),
        &["'; drop table run\\u{1b}\\u{7}"],
    );
    folder.write(
        "two.json",
        format!("{hostile}\n{}", hostile.replace("0000}", "0001}")),
    );
    folder.write("later.json", "{\"version\": 99, \"jobs\": []}");
    for (words, why) in [
        ("two.json", "2 runs, where one is wanted"),
        ("later.json", "reads versions 1 to"),
        (".", "two directories to compare them"),
    ] {
        let run = folder
            .fathom(&format!("report --html a.html {words}"))
            .expect(2);
        assert!(run.err.contains(why), "{words}: {}", run.err);
    }
}
