//! Pages of labs in virtual time.

use fathom_report::plot::faults;

use super::*;
use crate::lab::{Disturbance, Modelled, NoJournal, run_lab};
use crate::lab_file::tests::Files;

const MACHINE: &str = r#"
[[device]]
names = ["*"]
model = "constant"
capacity_gib = 1
[device.constant]
latency_us = 100
[noise]
seed = 3
between_runs_percent = 1.0
"#;

const LAB: &str = r#"
[lab]
name = "t"
machine = "m.toml"
[job]
rw = "randread"
filename = "/dev/sdx"
number_ios = 200
AXES
[variants]
"plain" = {}
"</script><b>" = { machine = { "device.constant.latency_us" = 110 } }
[judge]
baseline = "plain"
metrics = { "read.iops" = "2%" }
show = ["read.clat_p90"]
repeats = { min = 10, max = 10 }
"#;

fn lab(text: &str) -> (LabPlan, LabOutcome) {
    let files = Files::new(&[("m.toml", MACHINE)]);
    let plan = LabPlan::parse("t.toml", text, &[], &files);
    let plan = plan.unwrap_or_else(|problems| panic!("{problems:#?}"));
    let stops = || 0;
    let mut executor = Modelled::new(&plan, &files, &stops, 2);
    let outcome = run_lab(&plan, &mut executor, &mut NoJournal, &mut |_| {}).unwrap();
    (plan, outcome)
}

fn with_axes(axes: &str) -> String {
    LAB.replace("AXES", axes)
}

/// Returns the page; no figure has a fault.
#[track_caller]
fn page(plan: &LabPlan, outcome: &LabOutcome) -> Page {
    let page = lab_page(plan, outcome, &LabAbout::default());
    for drawing in page.drawings() {
        assert_eq!(faults(&drawing.svg), [""; 0], "{}", drawing.name);
    }
    let html = page.html();
    assert!(!html.contains("<b>") && !html.contains("</script><b>"));
    page
}

#[test]
fn every_shape_of_a_lab_has_a_page() {
    let cases = [
        ("", 0),
        ("[axes]\niodepth = [1, 2, 4, 8]", 1),
        ("[axes]\nrw = [\"randread\", \"read\"]", 0),
        (
            "[axes]\niodepth = [1, 2]\nbs = [\"4k\", \"8k\", \"64k\"]",
            1,
        ),
        (
            "[axes]\niodepth = [1, 2]\nbs = [\"4k\", \"8k\"]\nnumjobs = [1, 2]\nrw = [\"read\", \
             \"randread\"]",
            2,
        ),
    ];
    for (axes, hockey_sticks) in cases {
        let (plan, outcome) = lab(&with_axes(axes));
        let html = page(&plan, &outcome).html();
        assert!(html.contains("read.iops: &lt;/script&gt;&lt;b&gt; against plain"));
        let against = html.matches("<title>read.clat_p90, µs, against").count();
        assert_eq!(against, hockey_sticks, "{axes}");
        let is_grid = axes.contains("bs");
        assert_eq!(html.contains("Two axes at a time"), is_grid, "{axes}");
    }
}

#[test]
fn curves_and_searches_are_drawn_over_their_loads() {
    let base = with_axes("").replace(
        "number_ios = 200",
        "runtime = \"200ms\"\ntime_based = true\niodepth = 8",
    );
    let curve = base.replace(
        "[judge]",
        "[curve]\nvary = \"rate_iops\"\nloads = [\"20%\", \"80%\"]\n[judge]",
    );
    let (plan, outcome) = lab(&curve);
    let html = page(&plan, &outcome).html();
    assert!(html.contains("load asked of all jobs, IOPS"));
    let judge = base.find("[judge]").unwrap();
    let search = format!(
        "{}[judge]\nbaseline = \"plain\"\n[search]\nvary = \"rate_iops\"\n\
         keep = [\"read.resp_p90 <= 1ms\"]\nprecision = \"20%\"\nprobe_most = \"1s\"\n",
        &base[..judge]
    );
    let (plan, outcome) = lab(&search);
    let html = page(&plan, &outcome).html();
    assert!(html.contains("Loads that were tried") && html.contains("limit"));
}

#[test]
fn disturbed_runs_and_failures_stand_at_the_top() {
    let (plan, mut outcome) = lab(&with_axes("[axes]\niodepth = [1, 2]"));
    outcome.results.disturbed.push(Disturbance {
        cell: 1,
        variant: 0,
        repeat: 2,
        what: "a fan stopped".into(),
    });
    outcome.results.cells[0].failure = Some("the disk burnt".into());
    outcome.is_interrupted = true;
    let html = page(&plan, &outcome).html();
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    for caveat in [
        "disturbed: iodepth=2, plain, repeat 3: a fan stopped",
        "failed: iodepth=1: the disk burnt",
        "interrupted: some runs are missing",
    ] {
        assert!(at(caveat) < at("<table>"), "{caveat}");
    }
    assert!(html.contains(",yes\n"), "marked in the CSV");
    // The series of disturbed runs is in the legend of each metric.
    assert_eq!(html.matches(">disturbed</text>").count(), 2);
}

#[test]
fn values_of_each_run_are_in_the_text() {
    let (plan, outcome) = lab(&with_axes("[axes]\niodepth = [1, 2]"));
    let html = page(&plan, &outcome).html();
    let values = &outcome.results.values;
    for (cell, variant) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for metric in 0..2 {
            for (_, value) in values.of(cell, variant, metric) {
                assert!(html.contains(&format!(",{value}")), "{value}");
            }
        }
    }
}
