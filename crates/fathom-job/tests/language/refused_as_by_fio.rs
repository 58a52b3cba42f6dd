//! Values that fio refuses: under its name they are refused as well, at the same point.

use crate::world::{World, file, words};
use fathom_job::{Dialect, parse};

#[test]
fn what_fio_refuses_stays_refused() {
    for text in [
        "--iodepth=k",
        "--iodepth=0",
        "--iodepth=4z",
        "--iodepth=99999999999999999999",
        "--direct=2",
        "--direct=true",
        "--pre_read=10",
        "--time_based=yes",
        "--runtime=s",
        "--bs=0",
        "--bsrange=4k",
        "--size=4kzz",
        "--rw=readx",
        "--percentile_list=x",
        "--percentile_list=x:101",
        "--percentile_list=inf",
        "--latency_percentile=101",
        "--latency_percentile=-5x",
        "--bssplit=k/50",
        "--bssplit=0/50:8k/50",
        "--startdelay=x-",
        "--startdelay=--",
        "--ba=0",
        "--steadystate=iops:10,1",
        "--steadystate=iops:10,",
        "--random_distribution=gauss",
        "--random_distribution=gauss:2",
        "--random_distribution=zoned_abs:50/32k:50/",
        "--random_distribution=zoned_abs:50/32k:x",
        "--bssplit=-4k/50:8k/50",
        "--bssplit=4k/60:8k:8k/50:16k",
        "--bsrange=50%-8k",
        "--random_distribution=zipf:1",
        "--random_distribution=zipf:",
        "--random_distribution=zoned:60:30",
        "--random_distribution=zoned:60/10:40/90,",
        "--size --rw=read",
    ] {
        let got = parse(&words(text), Dialect::Fio, &World::default().lenient());
        assert!(got.is_err(), "{text}: accepted");
    }
}

#[test]
fn numbers_beyond_63_bits_are_refused() {
    let options = [
        "size",
        "io_size",
        "filesize",
        "offset",
        "rate",
        "rate_min",
        "number_ios",
        "randseed",
        "ba",
    ];
    for option in options {
        let most = format!("--{option}=9223372036854775807");
        parse(&words(&most), Dialect::Fio, &World::default().lenient()).expect(&most);
        for number in [
            "9223372036854775808",
            "18446744073709551615",
            "0x8000000000000000",
            "(9223372036854775807+1)",
        ] {
            let text = format!("--{option}={number}");
            for (dialect, world) in [
                (Dialect::Fio, World::default().lenient()),
                (Dialect::Fathom, World::default()),
            ] {
                let got = parse(&words(&text), dialect, &world);
                assert!(got.is_err(), "{text}: accepted");
            }
        }
    }
}

/// fio accepts these with `--parse-only` and fails when it is to run the job.
#[test]
fn what_fio_refuses_when_run_passes_a_parse() {
    for line in [
        "bssplit=4k/50:-8k",
        "bssplit=10%",
        "filesize=-1",
        "filesize=10%",
        "numa_mem_policy=",
    ] {
        let world = file(&format!("[x]\nsize=64k\n{line}\n")).lenient();
        world.plan("--parse-only j.fio");
        let errors = world.errors("j.fio");
        assert_eq!(errors.len(), 1, "{line}: {errors:?}");
    }
}

/// fio 3.33 and later refuse it at once: it would be a number near 2⁶⁴.
#[test]
fn an_io_size_above_100_percent_is_refused() {
    let errors = World::default()
        .lenient()
        .errors("--name=x --size=1m --io_size=200%");
    assert_eq!(errors.len(), 1, "{errors:?}");
}

/// fio checks a job as a whole only when it is about to run, not for `--parse-only` and
/// `--showcmd`.
#[test]
fn jobs_as_a_whole_are_judged_when_they_run() {
    for text in [
        "--zonesize=1m",
        "--numjobs=0",
        "--numjobs=5000",
        "--cpus_allowed=900",
        "--wait_for=none",
        "--size=1k",
        "--rate=1m --rate_iops=1",
        "--bs=50%",
        "--bs=-4k",
        "--bs=4k,50%",
        "--numa_cpu_nodes=same",
        "--numa_cpu_nodes=0,!0",
        "--numa_cpu_nodes=!",
        "--numa_mem_policy=prefer:+0",
        "--numa_mem_policy=prefer:!0",
        "--numa_mem_policy=local:0",
        "--numa_mem_policy=bind:0-",
        "--numa_mem_policy=none",
        "--rw=read:x",
        "--rw=read:",
        "--ignore_error=eio",
        "--ignore_error=EIO:xyz",
        "--ioengine=io_uring --cmdprio_bssplit=4k/50/1",
        "--ioengine=io_uring --cmdprio_bssplit=4k/50:4k/60",
    ] {
        let parsed = |more: &str, world: &World| {
            let line = format!("{text} {more}");
            parse(&words(&line), Dialect::Fio, world).is_ok()
        };
        let lenient = World::default().lenient();
        assert!(!parsed("", &lenient), "{text}: run");
        assert!(parsed("--parse-only", &lenient), "{text}: --parse-only");
        assert!(parsed("--showcmd", &lenient), "{text}: --showcmd");
        assert!(!parsed("--parse-only", &World::default()), "{text}: strict");
    }
}

#[test]
fn warnings_are_fatal_where_they_are_in_fio() {
    let refused = |text: &str, world: World| {
        let line = format!("--warnings-fatal {text}");
        parse(&words(&line), Dialect::Fio, &world).is_err()
    };
    let lenient = || World::default().lenient();
    assert!(refused("--time_based", lenient()));
    assert!(!refused("--time_based --showcmd", lenient()));
    for text in [
        "--bs=4k-8k",
        "--write_hist_log=x",
        "--runtime=1min",
        "--bssplit=4k/20:8k/20",
    ] {
        assert!(!refused(text, lenient()), "{text}");
        assert!(refused(text, World::default()), "{text}");
    }
}

#[test]
fn plugins_of_spdk_are_refused_once_with_what_to_use() {
    for engine in [
        "spdk",
        "spdk_bdev",
        "external:/x/build/fio/spdk_nvme",
        "/a/fio_plugin/fio_plugin",
    ] {
        let text = format!("[a]\nsize=1m\nspdk_conf=c\nioengine={engine}\nspdk_mem=1\n");
        let world = file(&text).lenient();
        let errors = world.parse("j.fio").unwrap_err();
        let errors: Vec<_> = errors.iter().collect();
        assert_eq!(errors.len(), 1, "{engine}: {errors:?}");
        let hint = errors[0].hint.as_deref().unwrap_or_default();
        assert!(hint.contains("ioengine=io_uring"), "{engine}: {hint}");
    }
}
