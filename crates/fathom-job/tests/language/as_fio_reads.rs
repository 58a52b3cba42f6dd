//! Undocumented values that fio accepts: under its name they mean the same, with a note; under the
//! name `fathom` they are errors, and lint warns.

use crate::world::{World, file, words};
use fathom_job::{
    Dialect, Invocation, Options, RandomDistribution, Severity, parse, parse_leniently,
};

/// Undocumented text, a documented text with fio's reading of it, and the code of the error.
const READINGS: &[(&str, &str, &str)] = &[
    // Numbers.
    ("--iodepth=4q", "--iodepth=4", "bad-suffix"),
    ("--bs=4kk", "--bs=4k", "bad-suffix"),
    ("--bs=1.5k", "--bs=1", "fraction"),
    ("--bs=0x1k", "--bs=1", "bad-hexadecimal"),
    ("--size=1.5g --bs=1", "--size=1 --bs=1", "fraction"),
    ("--size=40960*1", "--size=40960", "operator"),
    ("--size=4096+1", "--size=4096", "operator"),
    ("--size=-8k", "--size=8k", "out-of-range"),
    ("--size=100%%", "--size=100%", "bad-percent"),
    ("--size=5000.5%", "--size=5000", "bad-percent"),
    (
        "--zonemode=strided --zonesize=16k --size=-4z",
        "--zonemode=strided --zonesize=16k --size=4z",
        "bad-zones",
    ),
    ("--size=200k,500k", "--size=500k", "bad-suffix"),
    ("--iodepth=4,8", "--iodepth=4", "fraction"),
    ("--iodepth=-4", "", "out-of-range"),
    ("--iodepth=70000", "--iodepth=65536", "out-of-range"),
    ("--rwmixread=4,8", "--rwmixread=8", "fraction"),
    ("--rwmixread=70%", "--rwmixread=100", "bad-suffix"),
    ("--log_avg_msec=10ms", "--log_avg_msec=10m", "bad-suffix"),
    ("--flow=-3", "--flow=0", "out-of-range"),
    ("--bs=4k,8k,1k,2k", "--bs=4k,8k,1k", "too-many-values"),
    ("--bs=k,8k", "--bs=,8k", "not-a-number"),
    ("--bwavgtime=0", "--bwavgtime=1", "out-of-range"),
    // Times.
    ("--runtime=100*1", "--runtime=100", "operator"),
    ("--runtime=30+30", "--runtime=30s", "operator"),
    ("--runtime=1min", "--runtime=1us", "bad-time-unit"),
    ("--runtime=30sec", "--runtime=30us", "bad-time-unit"),
    ("--runtime=1.5s", "--runtime=1s", "fraction"),
    ("--runtime=1,2", "--runtime=1", "fraction"),
    ("--thinktime=1.5s", "--thinktime=1us", "fraction"),
    ("--max_latency=30+30", "--max_latency=30us", "operator"),
    ("--startdelay=1-2-3", "--startdelay=1-2", "bad-range"),
    ("--startdelay=-8k", "--startdelay=0us-8us", "no-number"),
    ("--startdelay=-2", "--startdelay=0-2", "no-number"),
    ("--startdelay=x-4k", "--startdelay=0us-4us", "not-a-number"),
    ("--startdelay=3-x", "--startdelay=3us", "not-a-number"),
    ("--startdelay=2-", "--startdelay=2", "no-number"),
    ("--startdelay=1-2ms", "--startdelay=1ms-2ms", "one-unit"),
    ("--startdelay=1:2ms", "--startdelay=1s-2ms", "one-unit"),
    // Options of another engine, in fio's table.
    (
        "--ioengine=io_uring --cmd_type=nvme",
        "--ioengine=io_uring",
        "other-engine",
    ),
    (
        "--ioengine=io_uring --write_mode=zeroes",
        "--ioengine=io_uring",
        "other-engine",
    ),
    (
        "--ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1 --cmdprio_percentage=10",
        "--ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1",
        "other-engine",
    ),
    // Flags.
    (
        "--time_based=10 --runtime=1",
        "--time_based --runtime=1",
        "not-a-boolean",
    ),
    (
        "--group_reporting=1[x]",
        "--group_reporting=1",
        "not-a-boolean",
    ),
    ("--per_job_logs=0/1", "--per_job_logs=0", "not-a-boolean"),
    ("--direct=1.5", "--direct=1", "not-a-boolean"),
    ("--invalidate=-1", "--invalidate=1", "not-a-boolean"),
    // Words and lists.
    ("--replay_skip=trim,foo", "--replay_skip=trim", "bad-value"),
    ("--clocksource=cpu:1", "--clocksource=cpu", "needless-value"),
    ("--rw=write,read", "--rw=write", "needless-value"),
    (
        "--file_service_type=random,8",
        "--file_service_type=random",
        "too-many-values",
    ),
    (
        "--file_service_type=sequential:2",
        "--file_service_type=sequential",
        "too-many-values",
    ),
    (
        "--file_service_type=roundrobin:2.5",
        "--file_service_type=roundrobin:2",
        "fraction",
    ),
    (
        "--file_service_type=roundrobin:x",
        "--file_service_type=roundrobin:4294967295",
        "not-a-number",
    ),
    (
        "--file_service_type=random:0",
        "--file_service_type=random:4294967295",
        "out-of-range",
    ),
    ("--rw=randrw:foo", "--rw=randrw:0", "not-a-number"),
    ("--mem=malloc:x", "--mem=malloc", "bad-value"),
    (
        "--percentile_list=50:99:x",
        "--percentile_list=50:99",
        "bad-percentile",
    ),
    (
        "--percentile_list=50,99",
        "--percentile_list=50",
        "bad-percentile",
    ),
    (
        "--percentile_list=1e1:99",
        "--percentile_list=10:99",
        "bad-percentile",
    ),
    (
        "--latency_percentile=99:98",
        "--latency_percentile=99",
        "bad-percentage",
    ),
    ("--cpus_allowed=0,x", "--cpus_allowed=0", "bad-cpu"),
    ("--cpus_allowed=1,,0", "--cpus_allowed=1", "bad-cpu"),
    ("--bsrange=1k-2k-4k", "--bsrange=1k-2k", "bad-range"),
    ("--bsrange=1k:2k-4k", "--bsrange=1k-4k", "bad-range"),
    ("--bsrange=1k-2k,4k", "--bsrange=1k-2k,", "bad-range"),
    (
        "--bsrange=4096-4g",
        "--bsrange=4096-4294963200",
        "bs-too-large",
    ),
    (
        "--bssplit=4k/60:8k/60",
        "--bssplit=4k/60:8k/40",
        "bad-split",
    ),
    ("--bssplit=4k/x:8k/", "--bssplit=4k:8k", "bad-percent"),
    (
        "--bssplit=4k/70:8k/60",
        "--bssplit=8k/60:4k/40",
        "bad-split",
    ),
    (
        "--bssplit=4k/60:8k/50:16k",
        "--bssplit=4k/0:8k/0:16k/100",
        "bad-split",
    ),
    ("--bssplit=4k/-50", "--bssplit=4k/100", "bad-percent"),
    ("--bs=8k --bssplit=0", "--bs=8k", "out-of-range"),
    ("--bssplit=0/50:0/50", "", "out-of-range"),
    ("--bssplit=8k,0", "--bssplit=8k,", "out-of-range"),
    ("--bssplit=0/0:8k/100", "--bssplit=8k", "out-of-range"),
    (
        "--bssplit=4k/50:8k/-1",
        "--bssplit=4k/50:8k/50",
        "bad-percent",
    ),
    (
        "--bssplit=4k/50:8k/50:",
        "--bssplit=4k/50:8k/50",
        "bad-split",
    ),
    ("--bssplit=4k/100::8k/50", "--bssplit=4k/100", "bad-split"),
    ("--bssplit=:4k/50", "", "bad-split"),
    (
        "--random_distribution=zoned:60/10:40",
        "--random_distribution=zoned:60/10:40/",
        "bad-zones",
    ),
    (
        "--random_distribution=zoned:60/10/3:40/90",
        "--random_distribution=zoned:60/10:40/90",
        "bad-zones",
    ),
    (
        "--random_distribution=zoned:60/10:40/90::x",
        "--random_distribution=zoned:60/10:40/90",
        "bad-zones",
    ),
    (
        "--random_distribution=zoned::60/10",
        "--random_distribution=zoned:100/100",
        "bad-zones",
    ),
    (
        "--random_distribution=zoned_abs:50/32k:50",
        "--random_distribution=zoned_abs:50/32k:50/0",
        "bad-zones",
    ),
    ("--invalidate=10", "--invalidate=1", "not-a-boolean"),
    ("--cpus_allowed=1-0,1", "--cpus_allowed=1", "bad-range"),
    ("--filesize=1m-2m-4m", "--filesize=1m-4m", "bad-range"),
    (
        "--filesize=16-8k/8M-512M",
        "--filesize=16-512M",
        "bad-range",
    ),
    (
        "--random_distribution=zipf:1.2x",
        "--random_distribution=zipf:1.2",
        "not-a-number",
    ),
    (
        "--ioengine=io_uring --cmdprio_bssplit=4k:8k/50",
        "--ioengine=io_uring --cmdprio_bssplit=8k/50",
        "bad-split",
    ),
    (
        "--ioengine=io_uring --cmdprio_bssplit=4k/50/4/0",
        "--ioengine=io_uring --cmdprio_bssplit=4k/50/3/0",
        "out-of-range",
    ),
    (
        "--ioengine=io_uring --cmdprio_bssplit=4k/50/1/9",
        "--ioengine=io_uring --cmdprio_bssplit=4k/50/1/7",
        "out-of-range",
    ),
    (
        "--ioengine=io_uring --cmdprio_bssplit=4k/5,4k/6,4k/7,8k",
        "--ioengine=io_uring --cmdprio_bssplit=4k/5,4k/6,4k/7",
        "too-many-values",
    ),
    (
        "--random_distribution=zipf:inf",
        "--random_distribution=zipf:1000000000",
        "not-a-number",
    ),
    (
        "--random_distribution=pareto:nan",
        "--random_distribution=pareto:0.000000000000001",
        "not-a-number",
    ),
    (
        "--random_distribution=normal:nan",
        "--random_distribution=normal:0",
        "not-a-number",
    ),
    (
        "--random_distribution=zipf:1.2:nan",
        "--random_distribution=zipf:1.2:0",
        "not-a-number",
    ),
    ("--hugepage-size=3m", "", "bad-page-size"),
    ("--hugepage-size=0", "", "bad-page-size"),
    (
        "--sync_file_range=wait_after:4,write,wait_before:3",
        "--sync_file_range=wait_before,write:3",
        "too-many-values",
    ),
    (
        "--sync_file_range=write,foo:4",
        "--sync_file_range=write:4",
        "bad-value",
    ),
    (
        "--sync_file_range=write:x",
        "--sync_file_range=write:0",
        "not-a-number",
    ),
    (
        "--rw=randread:-5",
        "--rw=randread:4294967291",
        "bad-sequencer",
    ),
    ("--rw=randread:5g", "--rw=randread:1g", "bad-sequencer"),
    ("--bsrange=0-8k", "--bsrange=4k-8k", "out-of-range"),
    ("--bsrange=8k-0", "--bsrange=4k-8k", "out-of-range"),
    ("--bsrange=0-0", "--bsrange=4k-4k", "out-of-range"),
    // Options that contradict each other.
    ("--direct=0 --buffered=0", "--direct=1", "contradiction"),
    ("--direct=1 --buffered=1", "--direct=0", "contradiction"),
    (
        "--rwmixread=60 --rwmixwrite=60",
        "--rwmixread=40",
        "bad-mix",
    ),
    // The command line's own.
    ("--direct=1--iodepth=4", "--direct=1", "glued"),
    ("--eta=none", "", "bad-value"),
];

/// Rules without a documented spelling: the reading is the number itself.
#[test]
fn an_exponent_of_0_or_less_is_taken_as_it_is() {
    for (theta, told) in [("0", "equal shares"), ("-1.5", "a larger share")] {
        for text in [
            format!("--random_distribution=zipf:{theta}"),
            format!("--file_service_type=zipf:{theta}"),
        ] {
            let world = World::default().lenient();
            let Ok(Invocation::Run { notes, .. }) = parse(&words(&text), Dialect::Fio, &world)
            else {
                panic!("{text}: refused as fio");
            };
            assert!(
                notes.iter().any(|note| note.message.contains(told)),
                "{text}: {notes:?}"
            );
            assert!(parse(&words(&text), Dialect::Fathom, &world).is_err());
        }
    }
    let law = World::default().lenient();
    let law = law.plan("--name=x --size=1m --random_distribution=zipf:-1.5");
    let law = law.jobs[0].options.random_distribution;
    assert_eq!(law, RandomDistribution::Zipf(-1.5, None));
}

/// Command lines need a value after the name; job files do not.
#[test]
fn an_empty_value_is_read_as_fio_reads_it() {
    for (empty, same) in [
        ("bssplit=", ""),
        ("ignore_error", ""),
        ("log_compression_cpus=", ""),
        ("cpus_allowed=", "cpus_allowed=1-0"),
        ("numa_cpu_nodes=", "numa_cpu_nodes=!all"),
    ] {
        let text = |line: &str| format!("[x]\nsize=64k\n{line}\n");
        let options = |line: &str| {
            let plan = file(&text(line)).lenient().plan("--parse-only j.fio");
            format!("{:?}", plan.jobs[0].options)
        };
        assert_eq!(options(empty), options(same), "{empty}");
        let errors = file(&text(empty)).errors("j.fio");
        assert_eq!(errors.len(), 1, "{empty}: {errors:?}");
    }
}

#[test]
fn colons_without_a_name_leave_the_job_no_file() {
    let world = World::default().lenient();
    let files = |words: &str| {
        let plan = world.plan(&format!("--name=x --size=64k {words}"));
        let options = &plan.jobs[0].options;
        let names = options.filename.as_ref().map(|names| names.to_vec());
        (names.unwrap_or_default(), options.nrfiles)
    };
    assert_eq!(files("--filename=:"), (Vec::new(), 0));
    assert_eq!(
        files("--filename=a --filename=:"),
        (vec!["a".to_owned()], 1)
    );
    let errors = World::default().errors("--name=x --size=64k --filename=:");
    assert_eq!(errors, ["0:3 no-value"]);
}

#[test]
fn files_and_sections_without_jobs_are_no_errors_beside_jobs() {
    let world = || file("[x]\nsize=64k\n").with_file("empty.fio", "# nothing\n");
    for (words, jobs) in [
        ("empty.fio j.fio", 1),
        ("--name=a --size=64k empty.fio", 1),
        ("--name=a --size=64k --section=b", 1),
        ("--parse-only empty.fio", 0),
    ] {
        assert_eq!(world().lenient().plan(words).jobs.len(), jobs, "{words}");
        assert_eq!(world().errors(words).len(), 1, "{words}");
    }
    for words in ["empty.fio", "j.fio --section=b"] {
        let errors = world().lenient().errors(words);
        let last = errors.last().map_or("", String::as_str);
        assert!(
            last.ends_with("no-jobs") || last.ends_with("bad-section"),
            "{errors:?}"
        );
    }
}

#[test]
fn a_latency_target_without_a_window_ends_with_the_first_op() {
    let words = "--name=a --size=64k --latency_target=1ms";
    let plan = World::default().lenient().plan(words);
    assert!(plan.jobs[0].options.lifecycle.latency_window.is_zero());
    assert_eq!(World::default().errors(words), ["0:3 no-latency-window"]);
}

/// No documented text has these values: they have 64 bits.
#[test]
fn percentages_and_negative_numbers_are_near_two_to_the_64th() {
    for (text, want) in [
        ("4%", [u64::MAX - 4; 3]),
        ("-4k,8k", [u64::MAX - 4095, 8192, 8192]),
    ] {
        let line = format!("--name=x --size=64k --ba={text}");
        let plan = World::default().lenient().plan(&line);
        let aligned = plan.jobs[0].options.blockalign;
        let aligned = [aligned.read, aligned.write, aligned.trim];
        assert_eq!(aligned, want.map(Some), "{text}");
        assert_eq!(World::default().errors(&line).len(), 1, "{text}");
    }
}

/// A list that does not begin with a percentile has no documented text: it reports no percentiles.
#[test]
fn percentiles_end_before_the_first_entry_that_is_none() {
    let world = World::default().lenient();
    for text in [
        "101:99", "x:99", "nan", "nan:99", ":99", "-5:99", "200:x:50",
    ] {
        let line = format!("--name=x --size=1m --percentile_list={text}");
        let list = &world.plan(&line).jobs[0].options.percentile_list;
        assert_eq!(list, &[], "{text}");
        assert_eq!(World::default().errors(&line).len(), 1, "{text}");
    }
}

/// Under the name `fathom`, 0 is a percentile like others.
#[test]
fn a_percentile_of_0_ends_the_list_of_fio() {
    for (text, in_fio, own) in [
        ("0", &[][..], &[0.0][..]),
        ("0:50", &[], &[0.0, 50.0]),
        ("99:50:0:20", &[50.0, 99.0], &[0.0, 20.0, 50.0, 99.0]),
    ] {
        let line = format!("--name=x --size=1m --percentile_list={text}");
        let list = |world: World| world.plan(&line).jobs[0].options.percentile_list.clone();
        assert_eq!(list(World::default().lenient()), in_fio, "{text}");
        assert_eq!(list(World::default()), own, "{text}");
    }
}

fn options(invocation: Invocation) -> Options {
    match invocation {
        Invocation::Run { plan, .. } => plan.jobs[0].options.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fio_and_fathom_by_their_names() {
    for &(text, same, code) in READINGS {
        let world = World::default().lenient();
        let documented = parse(&words(same), Dialect::Fio, &World::default());
        let documented = documented.unwrap_or_else(|refusal| panic!("{same}: {refusal:?}"));
        // Under fio's name: the same value, and a note with the code.
        let Ok(Invocation::Run { plan, notes, .. }) = parse(&words(text), Dialect::Fio, &world)
        else {
            panic!("{text}: refused as fio");
        };
        let got = format!("{:?}", plan.jobs[0].options);
        assert_eq!(got, format!("{:?}", options(documented)), "{text}");
        let said: Vec<_> = notes.iter().filter(|note| note.code == code).collect();
        assert_eq!(said.len(), 1, "{text}: {notes:?}");
        assert_eq!(said[0].severity, Severity::Note, "{text}");
        let told = [": read as ", ": ignored, as in fio"];
        assert!(
            told.iter().any(|told| said[0].message.contains(told)),
            "{text}: {notes:?}"
        );
        // Under the name `fathom`, and with FATHOM_STRICT=1: one error, with fio's reading.
        for (dialect, world) in [
            (Dialect::Fathom, World::default().lenient()),
            (Dialect::Fio, World::default()),
        ] {
            let refusal = parse(&words(text), dialect, &world).unwrap_err();
            let errors = refusal.diagnostics.iter();
            let errors: Vec<_> = errors.filter(|e| e.severity == Severity::Error).collect();
            assert_eq!(errors.len(), 1, "{text}: {errors:?}");
            assert_eq!(errors[0].code, code, "{text}");
            let fio = errors[0].fio.as_deref().unwrap_or_default();
            let told = fio.starts_with("reads it as ") || fio == "ignores it";
            assert!(told, "{text}: {fio}");
        }
        // Lint reads on, and warns.
        let Ok(Invocation::Run { notes, .. }) = parse_leniently(&words(text), &world) else {
            panic!("{text}: refused by lint");
        };
        let warned = |found: &fathom_job::Diagnostic| {
            found.code == code && found.severity == Severity::Warning
        };
        assert!(notes.iter().any(warned), "{text}: {notes:?}");
    }
}

#[test]
fn a_text_may_look_like_an_option() {
    let world = World::default().lenient();
    let job = world.plan("--name=x --write_bw_log --rw=write --size=1m");
    let prefix = job.jobs[0].options.logs.bandwidth.as_deref();
    assert_eq!(prefix, Some("--rw=write"));
    let errors = World::default().errors("--name=x --write_bw_log --rw=write --size=1m");
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn section_names_are_cut_as_fio_cuts_them() {
    for (header, name) in [("[x] y", "x]"), ("[x", ""), ("[]", ""), ("[ a b ]", "a b")] {
        let world = file(&format!("{header}\nsize=1m\n")).lenient();
        assert_eq!(world.plan("j.fio").jobs[0].name, name, "{header}");
    }
    let long = "n".repeat(300);
    let world = file(&format!("[{long}]\nsize=1m\n"));
    assert_eq!(world.errors("j.fio"), ["1:1 long-name"]);
    assert_eq!(world.lenient().plan("j.fio").jobs[0].name, long[..255]);
}

#[test]
fn arithmetic_on_keywords_belongs_to_all_numbers() {
    let text = "[a]\nsize=1g\nfilesize=10*10*$mb_memory\nstartdelay=2*$ncpus\n\
                max_latency=10*$ncpus\nhugepage-size=512*$pagesize\ncpumask=$ncpus-1\n\
                iodepth=$ncpus*2+1\n";
    let job = &file(text).plan("j.fio").jobs[0].options;
    assert_eq!(job.filesize, Some((819_200, 819_200)));
    assert_eq!(job.startdelay.0.get(), 8_000_000_000);
    assert_eq!(
        job.lifecycle.max_latency.read.map(|t| t.get()),
        Some(40_000)
    );
    assert_eq!(job.memory.hugepage_size, 2 << 20);
    assert_eq!(job.cpus_allowed, Some(vec![0, 1]));
    assert_eq!(job.iodepth, 9);
}
