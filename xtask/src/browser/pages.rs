//! The pages that `cargo xtask browser` looks at, and the command lines that make them.

/// Page, with its origin.
pub(super) struct Page {
    /// Name; the page is `NAME.html`.
    pub(super) name: &'static str,
    /// Origin of its numbers.
    pub(super) what: &'static str,
    /// Arguments of the program, line by line, without its name; `ROOT` is the source tree.
    pub(super) commands: &'static [&'static str],
    /// JSON documents whose numbers are all in the page's text.
    pub(super) documents: &'static [&'static str],
    /// JSON report of a run, whose figures are read back.
    pub(super) run: Option<&'static str>,
}

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "run",
        what: "run of two groups on files, one under a rate",
        commands: &[
            "run --record run.record --output run.json --output-format json \
             ROOT/tests/browser/jobs/run.fio",
            "report run.record --html run.html",
        ],
        documents: &["run.json"],
        run: Some("run.json"),
    },
    Page {
        name: "modelled",
        what: "run on a modelled flash drive, with priorities",
        commands: &[
            "run --machine ROOT/examples/machines/ssd.toml --record modelled.record \
             --output modelled.json --output-format json ROOT/tests/browser/jobs/modelled.fio",
            "report modelled.record --html modelled.html",
        ],
        documents: &["modelled.json"],
        run: Some("modelled.json"),
    },
    Page {
        name: "hostile",
        what: "run whose names would act if they were not escaped",
        commands: &[
            "run --record hostile.record --output hostile.json --output-format json \
             ROOT/tests/browser/jobs/hostile.fio",
            "report hostile.record --html hostile.html",
        ],
        documents: &["hostile.json"],
        run: None,
    },
];
