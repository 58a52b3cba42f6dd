//! The pages that `cargo xtask browser` looks at, and the command lines that make them.

/// Page, with its origin.
pub(super) struct Page {
    /// Name; the page is `NAME.html`.
    pub(super) name: &'static str,
    /// Origin of its numbers.
    pub(super) what: &'static str,
    /// Part of the short form, which has one page of most kinds.
    pub(super) is_short: bool,
    /// Arguments of the program, line by line, without its name; `ROOT` is the source tree, and
    /// `> FILE` at the end takes what the program prints.
    pub(super) commands: &'static [&'static str],
    /// JSON documents whose numbers are all in the page's text.
    pub(super) documents: &'static [&'static str],
    /// Kind of the page's subject (a module of `tests/browser/drawn`), and the documents from which
    /// its figures are read back.
    pub(super) drawn: Option<(&'static str, &'static [&'static str])>,
}

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "run",
        what: "run of two groups on files, one under a rate",
        is_short: true,
        commands: &[
            "run --record run.record --output run.json --output-format json \
             ROOT/tests/browser/jobs/run.fio",
            "report run.record --html run.html",
        ],
        documents: &["run.json"],
        drawn: Some(("run", &["run.json"])),
    },
    Page {
        name: "modelled",
        what: "run on a modelled flash drive, with priorities",
        is_short: false,
        commands: &[
            "run --machine ROOT/examples/machines/ssd.toml --record modelled.record \
             --output modelled.json --output-format json ROOT/tests/browser/jobs/modelled.fio",
            "report modelled.record --html modelled.html",
        ],
        documents: &["modelled.json"],
        drawn: Some(("run", &["modelled.json"])),
    },
    Page {
        name: "hostile",
        what: "run whose names would act if they were not escaped",
        is_short: true,
        commands: &[
            "run --record hostile.record --output hostile.json --output-format json \
             ROOT/tests/browser/jobs/hostile.fio",
            "report hostile.record --html hostile.html",
        ],
        documents: &["hostile.json"],
        drawn: None,
    },
    Page {
        name: "fio",
        what: "report in fio's format, with the buckets of its latencies",
        is_short: false,
        commands: &[
            "run --output fio.json --output-format json+ ROOT/tests/browser/jobs/run.fio",
            "report fio.json --html fio.html",
        ],
        // The page has what a record keeps of such a report, which is not all of its numbers.
        documents: &[],
        drawn: Some(("fio", &["fio.json"])),
    },
    Page {
        name: "logs",
        what: "I/O logs of two jobs",
        is_short: false,
        commands: &[
            "run --output logs.txt --write_lat_log lat ROOT/tests/browser/jobs/run.fio",
            "report --html logs.html lat_clat.1.log lat_clat.2.log",
        ],
        // There is no JSON of logs; they are read themselves.
        documents: &[],
        drawn: Some(("logs", &["lat_clat.1.log", "lat_clat.2.log"])),
    },
    Page {
        name: "run-and-logs",
        what: "run with its I/O log below",
        is_short: false,
        commands: &[
            "run --record both.record --output both.json --output-format json SHORT \
             --rate_iops=2000 --write_lat_log both --log_offset=1",
            "report both.record both_clat.1.log --html run-and-logs.html",
        ],
        documents: &["both.json"],
        drawn: None,
    },
    Page {
        name: "lab",
        what: "lab in virtual time, with a verdict per cell",
        is_short: true,
        commands: &[
            "lab ROOT/tests/browser/jobs/lab.toml --json > lab.json",
            "report ROOT/tests/browser/jobs/lab.toml --html lab.html",
        ],
        documents: &["lab.json"],
        drawn: Some(("lab", &["lab.json"])),
    },
    Page {
        name: "curve",
        what: "lab in virtual time: latency against load",
        is_short: false,
        commands: &[
            "lab ROOT/examples/lab/curve.toml --json > curve.json",
            "report ROOT/examples/lab/curve.toml --html curve.html",
        ],
        documents: &["curve.json"],
        drawn: Some(("lab", &["curve.json"])),
    },
    Page {
        name: "comparison",
        what: "two variants of a lab, group by group",
        is_short: true,
        commands: &[
            "lab ROOT/tests/browser/jobs/lab.toml",
            "compare lab:browser/plain lab:browser/slow --json > comparison.json",
            "report lab:browser/plain lab:browser/slow --html comparison.html",
        ],
        documents: &["comparison.json"],
        drawn: Some(("comparison", &["comparison.json"])),
    },
    Page {
        name: "apart",
        what: "two sides of two short runs without a device: too few to judge",
        is_short: false,
        commands: &[
            "run --history --tag side=before --output 1.txt SHORT",
            "run --history --tag side=after --output 2.txt SHORT",
            "run --history --tag side=before --output 3.txt SHORT",
            "run --history --tag side=after --output 4.txt SHORT",
            "compare tag:side=before tag:side=after --json > apart.json",
            "report tag:side=before tag:side=after --html apart.html",
        ],
        documents: &["apart.json"],
        drawn: None,
    },
    Page {
        name: "trend",
        what: "metric over the runs of a history",
        is_short: false,
        commands: &[
            "history import ROOT/tests/browser/jobs/runs.json",
            "lab ROOT/tests/browser/jobs/lab.toml",
            "history trend read.iops --json > trend.json",
            "report trend:read.iops --html trend.html",
        ],
        documents: &["trend.json"],
        drawn: Some(("trend", &["trend.json"])),
    },
];

/// Arguments of a run that shows itself on a local page, for as many `SECONDS` as a check takes.
pub(super) const LIVE: &[&str] = &[
    "run",
    "--serve=127.0.0.1:0",
    "--ioengine=null",
    "--size=64k",
    "--time_based=1",
    "--runtime=SECONDS",
    "--rate_iops=1000",
    "--name=</script><script>window.hacked=1</script>",
    "--rw=randrw",
    "--name=second",
    "--new_group=1",
    "--rw=randread",
    "--ioengine=null",
    "--size=64k",
    "--time_based=1",
    "--runtime=SECONDS",
    "--rate_iops=2000",
];
