//! `[judge]`: what is judged, and how often.

use super::{Files, check};
use crate::LabPlan;

#[test]
fn a_metric_is_judged_once_by_whatever_name() {
    check(
        r#"[axes]
bs = ["4k", "8k"]
[variants]
a = {}
b = { iodepth = 2 }
[judge]
baseline = "a"
metrics = { "read.clat_p99" = "5%", "read.clat_p99_us" = "2%", "read.clat_p99.0" = "5%" }
"#,
        &[
            "f/lab.toml:14:37: `read.clat_p99_us` is `read.clat_p99`, which is judged already | \
             remove one of them",
            "f/lab.toml:14:64: `read.clat_p99.0` is `read.clat_p99`, which is judged already | \
             remove one of them",
        ],
    );
}

#[test]
fn the_fewest_repeats_are_at_most_the_most_ones() {
    let repeats = |repeats: &str| {
        let text = format!(
            "[lab]\nname = \"r\"\n[job]\nfilename = \"x\"\nsize = \"1m\"\nrw = \"read\"\n\
             [judge]\nrepeats = {{ {repeats} }}\n"
        );
        let plan = LabPlan::parse("f/lab.toml", &text, &[], &Files::new(&[]));
        let repeats = plan.map(|plan| plan.judge.repeats);
        repeats
            .map(|one| (one.min, one.max))
            .map_err(|problems| problems[0].message.clone())
    };
    assert_eq!(repeats("max = 1"), Ok((1, 1)));
    assert_eq!(repeats("max = 60"), Ok((12, 60)));
    assert_eq!(repeats("min = 50"), Ok((50, 50)));
    assert_eq!(repeats(""), Ok((12, 40)));
    let refused = repeats("min = 3, max = 2").unwrap_err();
    assert_eq!(refused, "`max` is 2, less than `min`, 3");
}

#[test]
fn a_tolerance_has_its_sign_and_is_at_most_100_percent() {
    check(
        r#"[axes]
bs = ["4k", "8k"]
[variants]
a = {}
b = { iodepth = 2 }
[judge]
baseline = "a"
metrics = { "read.clat_p99" = "5", "read.bw" = 0.05, "read.iops" = "101%" }
"#,
        &[
            "f/lab.toml:14:31: the tolerance of `read.clat_p99` must be a percentage | write it as \
             `\"2%\"`",
            "f/lab.toml:14:48: the tolerance of `read.bw` must be a percentage | write it as \
             `\"2%\"`",
            "f/lab.toml:14:68: the tolerance of `read.iops` is above 100 % | write it as `\"2%\"`",
        ],
    );
}
