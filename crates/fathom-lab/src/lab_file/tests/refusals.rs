//! Lab files that are refused: place, reason and remedy.

use super::{Files, SMALL, check, problems, problems_of};
use crate::LabPlan;

#[test]
fn problems_are_found_all_at_once() {
    check(
        r#"[axes]
bs = ["4k", "4q"]
iodept = [1, 2]
[variants]
a = {}
b = { job = { rw = "wriet" } }
[judge]
baseline = "c"
metrics = { "write.bww" = "2%", "read.iops" = "0%" }
reapeats = 1
[run]
cpu = "0"
"#,
        &[
            "f/lab.toml:8:13: `q` is not a unit | use k, m, g, t or p (powers of 1024 with \
             kb_base=1024), or no unit",
            "f/lab.toml:9:1: unknown option `iodept` | did you mean `iodepth`?",
            "f/lab.toml:12:20: `wriet` is not a value of `rw` | did you mean `write`? available: \
             read, write, trim, rw, readwrite, randread, randwrite, randtrim, randrw, \
             trimwrite, randtrimwrite",
            "f/lab.toml:14:12: there is no variant `c` | variants here: a, b",
            "f/lab.toml:15:13: `write.bww`: no metric `bww` | did you mean `write.bw`?",
            "f/lab.toml:15:47: the tolerance of `read.iops` is 0: nothing could ever be the same \
             | name the change that is too small to matter, as `\"2%\"`",
            "f/lab.toml:16:1: unknown key `reapeats` in `judge` | did you mean `repeats`?",
            "f/lab.toml:18:1: unknown key `cpu` in `run` | did you mean `cpus`?",
        ],
    );
}

#[test]
fn lists_cells_and_variants_are_checked() {
    check(
        r#"[[axes.together]]
bs = ["4k", "8k"]
iodepth = [1, 2, 4]
"#,
        &[
            "f/lab.toml:9:11: `bs` has 2 values and `iodepth` has 3: lists that advance together \
           have the same length | give both the same number of values",
        ],
    );
    let long: Vec<String> = (1..=400).map(|depth| depth.to_string()).collect();
    let long = long.join(", ");
    check(
        &format!(
            r#"[axes]
iodepth = [{long}]
rate_iops = [{long}]
"#
        ),
        &[
            "f/lab.toml:7:1: the axes have 160000 cells, and the limit is 100000 | shorten the \
           axes, or let lists advance together",
        ],
    );
    check(
        r#"[variants]
a = {}
b = { rw = "read" }
[judge]
baseline = "a"
"#,
        &[
            "f/lab.toml:9:1: variant `b` runs the same as `a`: it changes nothing | change a \
             value, or remove it; `--a-a` compares runs that are the same",
        ],
    );
    check(
        r#"[variants]
a = {}
b = { machine = { "device.queue.policy" = "fair" } }
[judge]
baseline = "a"
"#,
        &[
            "f/lab.toml:9:43: a machine is changed, and `[lab]` names no machine file | add \
           `machine = \"MACHINE.toml\"` to `[lab]`",
        ],
    );
}

#[test]
fn an_option_that_is_set_twice_is_told_with_cell_and_variant() {
    check(
        r#"[axes]
blocksize = ["4k"]
[variants]
a = {}
b = { bs = "8k" }
[judge]
baseline = "a"
"#,
        &[
            "f/lab.toml:11:12: `bs` is set by the variant `b` and by an axis, in line 8, as in the \
           cell `blocksize=4k` | keep one of them",
        ],
    );
    check(
        r#"[axes]
bs = ["4k", "8k"]
[[axes.named]]
name = "size"
values = { small = { blocksize = "1k" }, none = { iodepth = 1 } }
"#,
        &[
            "f/lab.toml:11:34: `bs` is set by two axes, in the cell `bs=4k, size=small`: line 8 \
             has the other | keep one of them",
        ],
    );
}

#[test]
fn repeats_that_prove_nothing_are_refused() {
    check(
        r#"[axes]
iodepth = [1, 2, 4, 8]
[variants]
a = {}
b = { bs = "8k" }
[judge]
baseline = "a"
metrics = { "read.iops" = "2%", "read.clat_p99" = "1%" }
repeats = { min = 7 }
"#,
        &[
            "f/lab.toml:14:51: the tolerance of `read.clat_p99` is below a bucket of the \
             histogram, 1.6 %: smaller changes of a percentile are not measured | write `\"2%\"` \
             or more",
            "f/lab.toml:15:11: 7 repeats prove nothing: with 8 comparisons no difference could \
             reach p = 0.05 | set `repeats = { min = 9 }`, or compare less",
        ],
    );
}

#[test]
fn published_files_have_the_columns() {
    check(
        r#"[axes]
iodepth = [1, 2]
[[published]]
file = "p.csv"
keys = { iodpth = "iodepth" }
columns = [{ metric = "read.bw", column = "plain_mib" }]
[[published]]
file = "q.csv"
columns = []
"#,
        &[
            "f/lab.toml:11:19: there is no axis `iodpth` | did you mean `iodepth`?",
            "f/lab.toml:12:43: f/p.csv has no column `plain_mib` | did you mean `plain_mib_s`?",
            "f/lab.toml:14:8: cannot read f/q.csv: No such file or directory (os error 2) | name \
             it relative to the lab file",
            "f/lab.toml:15:11: `columns` must be tables: `[[published.columns]]` | see docs/LAB.md",
        ],
    );
}

#[test]
fn a_missing_published_file_hides_no_other_problem() {
    let found = problems(
        r#"[axes]
bs = ["4q"]
[[published]]
file = "q.csv"
keys = { bs = "bs" }
columns = [{ metric = "read.bw", column = "bw" }]
"#,
    );
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("`q` is not a unit"), "{found:?}");
    assert!(found[1].contains("cannot read f/q.csv"), "{found:?}");
}

#[test]
fn values_to_ask_for_are_named() {
    let text = r#"[lab]
name = "a"
ask = { DEV = "a drive, only read" }
writes = ["${DEV}"]
[job]
ioengine = "null"
filename = "${DEV}"
size = "1m"
"#;
    let missing = "f/lab.toml:3:9: `DEV` is missing: a drive, only read | give it after the file, \
                   as `fathom lab f/lab.toml DEV=VALUE`";
    assert_eq!(problems_of(text, &[]), [missing]);
    let argument = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let arguments = [argument("DEV", "/dev/x")];
    let plan = LabPlan::parse("l.toml", text, &arguments, &Files::new(&[])).unwrap();
    assert_eq!(plan.writes, ["/dev/x"]);
    let job = plan.run_of(0, 0, 1).job.unwrap();
    assert!(job.contains("filename=/dev/x\n"), "{job}");
    let found = problems_of(
        text,
        &[argument("DEV", "/dev/x"), argument("DVE", "/dev/y")],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`DVE=` was given"), "{found:?}");
}

#[test]
fn values_that_fio_would_cut_are_refused_with_their_place() {
    let text = r#"[lab]
name = "cut"
[job]
ioengine = "null"
size = "1m"
exec_prerun = "echo a; echo b"
[variants]
a = {}
b = { run = { program = "PROGRAM" } }
[judge]
baseline = "a"
show = ["read.iops"]
"#;
    let found = |program: &str| problems_of(&text.replace("PROGRAM", program), &[]);
    assert_eq!(found("/opt/fathom"), [""; 0]);
    let cut = found("/usr/bin/fio");
    assert!(
        cut[0].starts_with("f/lab.toml:6:15: fio would cut the value of `exec_prerun`"),
        "{cut:?}"
    );
}

#[test]
fn repeats_that_no_comparison_counts_are_refused() {
    let repeats = |max: u32| {
        problems(&format!(
            "[variants]\na = {{}}\nb = {{ bs = \"8k\" }}\n[judge]\nbaseline = \"a\"\n\
             metrics = {{ \"read.iops\" = \"2%\" }}\nrepeats = {{ max = {max} }}\n"
        ))
    };
    assert_eq!(repeats(100), [""; 0]);
    let found = repeats(101);
    assert!(
        found[0].contains("a comparison counts at most 100 repeats, not 101"),
        "{found:?}"
    );
    // Without a comparison each repeat is a figure.
    let sweep = problems("[judge]\nshow = [\"read.iops\"]\nrepeats = { min = 500, max = 1000 }\n");
    assert_eq!(sweep, [""; 0]);
}

#[test]
fn names_are_text_and_control_characters_are_none() {
    for name in ["</script><script>", "'; drop table run", "ä b"] {
        check(
            &format!("[variants]\n\"{name}\" = {{ bs = \"8k\" }}\n"),
            &[],
        );
    }
    let found = problems(
        r#"[variants]
"a\u001b[2J" = { bs = "8k" }
"#,
    );
    assert!(
        found[0].contains("a name contains the control character '\\u{1b}'"),
        "{found:?}"
    );
    let long = "x".repeat(10_000);
    let found = problems(&format!("[variants]\n{long} = {{ bs = \"8k\" }}\n"));
    assert!(
        found[0].contains("a name is 10000 characters long, and the limit is 100"),
        "{found:?}"
    );
    let found = problems(
        r#"[variants]
a = { bs = "8k\nfilename=/dev/sda" }
"#,
    );
    assert!(
        found[0].contains("a value contains the control character"),
        "{found:?}"
    );
    let found = problems(
        r#"[variants]
a = { "bs=8k\nfilename" = 1 }
"#,
    );
    assert!(found[0].contains("is no option"), "{found:?}");
}

#[test]
fn problems_of_a_job_file_have_its_place() {
    let text = r#"[lab]
name = "a"
[job]
file = "a.fio"
[axes]
iodepth = [1, 2]
"#;
    assert_eq!(
        problems_of(text, &[]),
        ["f/a.fio:5:1: unknown option `iodept` | did you mean `iodepth`?"]
    );
}
#[test]
fn bad_options_have_the_place_of_key_or_value() {
    check(
        r#"[axes]
bs = ["4k", "4q"]
iodept = [1, 2]
"#,
        &[
            "f/lab.toml:8:13: `q` is not a unit | use k, m, g, t or p (powers of 1024 with \
             kb_base=1024), or no unit",
            "f/lab.toml:9:1: unknown option `iodept` | did you mean `iodepth`?",
        ],
    );
}

#[test]
fn devices_are_written_with_leave_only() {
    let text = r#"[lab]
name = "a"
[job]
filename = "/dev/x"
size = "1m"
[axes]
rw = ["read", "write"]
"#;
    let hint = "add `writes = [\"/dev/x\"]` to `[lab]` if its data may be overwritten";
    let why = "f/lab.toml:4:12: `/dev/x` would be written, and `writes` does not name it";
    assert_eq!(problems_of(text, &[]), [format!("{why} | {hint}")]);
}

#[test]
fn arguments_of_peak_are_known() {
    let text = r#"[lab]
name = "a"
[peak]
target = "/dev/x"
no_fixed = true
dept = 4
"#;
    assert_eq!(
        problems_of(text, &[]),
        ["f/lab.toml:6:1: `fathom peak` has no `dept` | did you mean `depth`?"]
    );
    let hint = "see `fathom peak --help`";
    assert_eq!(
        problems_of(&text.replace("dept = 4", "seconds = \"1s\""), &[]),
        [format!(
            "f/lab.toml:6:11: `seconds` must be a number of seconds, as `0.5` | {hint}"
        )]
    );
}

#[test]
fn peak_writes_devices_with_leave_only() {
    let text = r#"[lab]
name = "a"
[peak]
target = "/dev/x"
[variants]
reads = {}
writes = { write = true }
[judge]
baseline = "reads"
"#;
    let hint = "add `writes = [\"/dev/x\"]` to `[lab]` if its data may be overwritten";
    let why = "f/lab.toml:7:12: `/dev/x` would be written, and `writes` does not name it";
    assert_eq!(problems_of(text, &[]), [format!("{why} | {hint}")]);
    let named = text.replace("name = \"a\"", "name = \"a\"\nwrites = [\"/dev/x\"]");
    assert_eq!(problems_of(&named, &[]), [""; 0]);
}

#[test]
fn boots_are_refused_beside_runs_that_need_one() {
    let waiting = "b = { iodepth = 2, requires = { kernel = \"*-patched\" } }";
    let judge = "[judge]\nbaseline = \"a\"\nmetrics = { \"read.iops\" = \"5%\" }\n";
    let text = format!("{SMALL}[variants]\na = {{}}\n{waiting}\n{judge}[curve]\n");
    let found = problems_of(&text, &[]);
    let why = "`requires` takes one repeat of each boot, and the runs of `[curve]` need one";
    assert!(found.iter().any(|one| one.contains(why)), "{found:?}");
}

#[test]
fn metrics_that_no_run_has_are_refused() {
    check(
        "[judge]\nmetrics = { \"write.bw\" = \"2%\", \"jop/read.bw\" = \"2%\" }\n\
         show = [\"trim.iops\"]\n",
        &[
            "f/lab.toml:8:13: `write.bw`: the jobs write nothing | name another direction, or \
             change `rw`",
            "f/lab.toml:8:32: `jop/read.bw`: there is no job `jop` | did you mean \
             `job/read.bw`?",
            "f/lab.toml:9:9: `trim.iops`: the jobs trim nothing | name another direction, or \
             change `rw`",
        ],
    );
    // A cell that writes nothing cannot be judged by its writes, but the others may be shown.
    let judged = "[axes]\nrw = [\"randread\", \"randrw\"]\nrwmixread = [100, 50]\n[judge]\n";
    check(
        &format!("{judged}metrics = {{ \"write.bw\" = \"2%\" }}\n"),
        &[
            "f/lab.toml:11:13: `write.bw`: the jobs write nothing in `rw=randread, rwmixread=100` \
             | name what every run has, as `all.iops`; `show` takes the rest",
        ],
    );
    check(&format!("{judged}show = [\"write.bw\"]\n"), &[]);
    // Verification reads.
    let verified = "verify = \"crc32c\"\n[axes]\nrw = [\"write\"]\n[judge]\nshow = [\"read.bw\"]\n";
    check(verified, &[]);
}

#[test]
fn combinations_of_values_are_tried() {
    // Either value is good beside the first one of the other axis.
    let found = problems("[axes]\nverify = [\"0\", \"crc32c\"]\nbs = [\"4k\", \"24\"]\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("leaves no payload"), "{found:?}");
}

#[test]
fn metrics_of_searches_and_rounds_are_checked_as_judged_ones_are() {
    let services = "[service.target]\ncommand = \"true\"\nstats = \"true\"\n[service.mute]\n\
                    command = \"true\"\n";
    let rounds = |metric: &str| format!("{services}[rounds]\nmetric = \"{metric}\"\n");
    check(
        &rounds("service.targt.sent"),
        &[
            "f/lab.toml:13:10: `service.targt.sent`: there is no service `targt` | did you mean \
           `service.target.sent`?",
        ],
    );
    check(
        &rounds("service.mute.sent"),
        &[
            "f/lab.toml:13:10: `service.mute.sent`: the service `mute` has no `stats` | add the \
           command that prints its numbers as JSON",
        ],
    );
    check(&rounds("service.target.sent"), &[]);
    check(
        &rounds("write.iops"),
        &[
            "f/lab.toml:13:10: `write.iops`: the jobs write nothing | name another direction, or \
           change `rw`",
        ],
    );
    let search = |keep: &str| {
        let text = format!("{services}[search]\nkeep = [\"{keep}\"]\n");
        let small = SMALL.replace("size = \"1m\"", "size = \"1m\"\nruntime = 2");
        problems_of(&format!("{small}{text}"), &[])
    };
    assert_eq!(search("service.target.waits <= 5"), [""; 0]);
    let small = SMALL.replace("size = \"1m\"", "size = \"1m\"\nruntime = 2");
    let empty = problems_of(&format!("{small}[search]\nkeep = []\n"), &[]).join("\n");
    assert!(
        empty.contains("`keep` must be a non-empty list of strings"),
        "{empty}"
    );
    let of = |place: &str, why: &str| format!("f/lab.toml:14:9: {place}: {why}");
    assert_eq!(
        search("service.other.waits <= 5"),
        [of(
            "`service.other.waits`",
            "there is no service `other` | describe it in `[service.other]`"
        )]
    );
    assert_eq!(
        search("write.resp_p99 <= 1ms"),
        [of(
            "`write.resp_p99`",
            "the jobs write nothing | name another direction, or change `rw`"
        )]
    );
}

#[test]
fn one_problem_hides_no_other() {
    // A name that is refused leaves the machine, and an unknown option the equal variants.
    let text = r#"[lab]
name = ""
machine = "m.toml"
[job]
rw = "read"
size = "1m"
iodept = 1
[variants]
a = { machine = { "device.constant.latency_us" = 1 } }
b = {}
c = {}
[judge]
baseline = "a"
"#;
    let found = problems_of(text, &[]);
    let want = [
        "f/lab.toml:2:8: a name is empty | write a name",
        "f/lab.toml:7:1: unknown option `iodept` | did you mean `iodepth`?",
        "f/lab.toml:11:1: variant `c` runs the same as `b`: it changes nothing | change a value, \
         or remove it; `--a-a` compares runs that are the same",
    ];
    assert_eq!(found, want);
}

#[test]
fn a_wrong_change_of_the_machine_stands_beside_a_missing_job() {
    let text = r#"[lab]
name = "a"
machine = "m.toml"
[variants]
a = {}
b = { machine = { "device.constant.latenzy_us" = 1 } }
[judge]
baseline = "a"
"#;
    let change = "f/lab.toml:6:50: unknown key `latenzy_us` in `device.constant`";
    let check = |text: &str, want: &[&str]| {
        let found = problems_of(text, &[]);
        assert_eq!(found.len(), want.len(), "{found:?}");
        for (problem, start) in found.iter().zip(want) {
            assert!(problem.starts_with(start), "{found:?}");
        }
    };
    let missing = "f/lab.toml:1:1: a lab file has no table `job`";
    check(text, &[missing, change]);
    let peak = "[peak]\ntarget = \"/dev/x\"\nwrite = true\n";
    check(
        &format!("{text}{peak}"),
        &[
            change,
            "f/lab.toml:9:1: the machine is modelled: `peak` has no part in it",
            "f/lab.toml:11:1: `/dev/x` would be written",
        ],
    );
}

#[test]
fn changes_of_a_machine_that_are_wrong_together_are_refused() {
    let text = r#"[lab]
name = "a"
machine = "m.toml"
[job]
rw = "read"
size = "1m"
[[axes.named]]
name = "x"
values.one = { machine = { "noise.neighbour.every_s" = 30 } }
values.two = { machine = { "noise.neighbour.every_s" = 6 } }
[variants]
a = {}
b = { machine = { "noise.neighbour.for_s" = 20 } }
[judge]
baseline = "a"
"#;
    let why = "f/lab.toml:13:45: `x=two` of `b`: a visit is longer than its period | \
               lower `for_s`: the neighbour comes once in `every_s`";
    assert_eq!(problems_of(text, &[]), [why]);
}

#[test]
fn a_lab_has_a_limit_of_machines() {
    let changes = |name: &str, key: &str| {
        let change = |value| format!("{name}{value} = {{ machine = {{ \"{key}\" = {value} }} }}\n");
        (2..=102).map(change).collect::<String>()
    };
    let values = changes("values.v", "device.constant.latency_us");
    let variants = changes("w", "noise.neighbour.times");
    let text = format!(
        r#"[lab]
name = "a"
machine = "m.toml"
[job]
rw = "read"
size = "1m"
[[axes.named]]
name = "x"
{values}[variants]
{variants}[judge]
baseline = "w2"
"#
    );
    let why = "f/lab.toml:9:58: the lab has 10201 different machines: 10000 is the limit | divide \
               the lab, or change fewer values";
    assert_eq!(problems_of(&text, &[]), [why]);
}
