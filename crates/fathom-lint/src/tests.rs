//! Each rule, with a job that it flags and one that it does not.

use std::collections::HashSet;

use fathom_engine::Registry;
use fathom_host::allocated_extents::AllocatedBytes;
use fathom_host::control_groups::MemoryLimit;
use fathom_host::target_kind::TargetKind;
use fathom_record::StorageRecord;
use fathom_setup::fixture::{self, FakeFiles};
use fathom_setup::translate::translate;

use super::facts::SectionFacts;
use super::*;

/// Parses a command line of jobs with the built-in engines.
#[track_caller]
fn plan(words: &str) -> Plan {
    fixture::plan(words, Registry::built_in().infos())
}

/// Test case: a rule, a job that it flags, the place shown, and a similar job that it does not
/// flag.
struct Case {
    rule: &'static str,
    /// Options of the job, after `--name=t --size=1m`.
    found: &'static str,
    /// Text at the finding's place; empty for the job itself.
    shown: &'static str,
    not_found: &'static str,
    storage_facts: fn(&mut SectionFacts),
}

const fn case(
    rule: &'static str,
    found: &'static str,
    shown: &'static str,
    not_found: &'static str,
) -> Case {
    Case {
        rule,
        found,
        shown,
        not_found,
        storage_facts: |_| {},
    }
}

impl Case {
    const fn with_storage(self, storage_facts: fn(&mut SectionFacts)) -> Self {
        Self {
            storage_facts,
            ..self
        }
    }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("cached-reads", "--rw=randread --direct=0", "0", "--rw=randread --direct=1"),
    case("cached-reads", "--rw=randread --size=1022m", "1022m", "--rw=randread --size=2g"),
    case("cached-reads", "--rw=read --ioengine=mmap --direct=1", "1", "--rw=read --ioengine=null"),
    case("cached-reads", "--rw=read --direct=0", "0", "--rw=read --direct=0 --pre_read=1"),
    case("cached-writes", "--rw=write", "write", "--rw=write --fdatasync=8"),
    case("cached-writes", "--rw=randrw", "randrw", "--rw=randrw --end_fsync=1"),
    case("mmap-direct", "--ioengine=mmap --direct=1", "1", "--ioengine=psync --direct=1"),
    case("unaligned-ops", "--rw=write --direct=1 --bs=512", "512", "--rw=write --direct=1 --bs=4k"),
    case("unaligned-ops", "--rw=randwrite --bs=3k", "3k", "--rw=write --bs=3k"),
    case("first-writes", "--rw=randwrite --direct=1", "randwrite",
         "--rw=randwrite --direct=1 --overwrite=1"),
    case("buffered-libaio", "--ioengine=libaio --iodepth=8", "8",
         "--ioengine=libaio --iodepth=8 --direct=1"),
    case("depth-not-given", "--ioengine=io_uring", "io_uring", "--ioengine=io_uring --iodepth=1"),
    case("depth-not-given", "--ioengine=libaio", "libaio", "--ioengine=psync"),
    case("batch-above-depth", "--ioengine=libaio --iodepth=8 --iodepth_batch=16", "16",
         "--ioengine=libaio --iodepth=8 --iodepth_batch=8"),
    case("batch-above-depth", "--ioengine=libaio --iodepth=8 --iodepth_low=9", "9",
         "--ioengine=libaio --iodepth=8 --iodepth_batch=0"),
    case("batched-completions", "--ioengine=libaio --iodepth=8 --iodepth_batch_complete_min=4", "4",
         "--ioengine=libaio --iodepth=8 --iodepth_batch_complete_max=4"),
    case("polling-buffered", "--ioengine=io_uring --hipri=1", "1",
         "--ioengine=io_uring --hipri=1 --direct=1"),
    case("polling-processors", "--ioengine=io_uring --hipri=1 --numjobs=3", "3",
         "--ioengine=io_uring --hipri=1 --numjobs=2"),
    case("polled-workers",
         "--ioengine=io_uring --iodepth=2 --io_submit_mode=offload --sqthread_poll=1", "1",
         "--ioengine=io_uring --iodepth=2 --sqthread_poll=1"),
    case("ends-early", "--runtime=10", "10", "--runtime=10 --time_based"),
    case("ends-early", "--runtime=10 --size=1g", "10", "--runtime=10 --size=150g"),
    case("ends-early", "--runtime=10 --rate=200k", "10", "--runtime=10 --rate=50k"),
    case("ends-early", "--runtime=10", "10", "--runtime=10 --number_ios=5"),
    case("rate-beyond-thinktime", "--thinktime=1ms --rate_iops=2000", "2000",
         "--thinktime=1ms --rate_iops=900"),
    case("rate-beyond-thinktime", "--thinktime=1ms --rate=8m", "8m",
         "--thinktime=1ms --rate=8m --thinktime_blocks=4"),
    case("rate-out-of-reach", "--bs=512 --rate=1g", "1g", "--bs=128k --rate=1g"),
    case("rate-out-of-reach", "--bs=512 --rate=1g", "1g",
         "--bs=512 --rate=1g --ioengine=io_uring --iodepth=8"),
    case("rate-unused", "--rw=read --rate=,1m", ",1m", "--rw=read --rate=1m,"),
    case("ramp-fills-run", "--time_based --runtime=5 --ramp_time=5", "5",
         "--time_based --runtime=6 --ramp_time=5"),
    case("thinktime-empties-queue", "--ioengine=libaio --iodepth=8 --thinktime=1ms", "1ms",
         "--ioengine=libaio --iodepth=8 --thinktime=1ms --thinktime_blocks=8"),
    case("loops-unused", "--time_based --runtime=5 --loops=2", "2", "--runtime=5 --loops=2"),
    case("shared-writes", "--rw=write --filename=f --numjobs=2", "f", "--rw=write --numjobs=2"),
    case("shared-writes", "--rw=write --filename=f --name=u --rw=write --size=1m --filename=f", "f",
         "--rw=write --filename=f --name=u --rw=write --size=1m --filename=f --stonewall"),
    case("shared-writes", "--rw=write --filename=f --name=u --rw=write --size=1m --filename=f", "f",
         "--rw=write --filename=f --name=u --rw=read --size=1m --filename=f"),
    case("same-region", "--filename=f --numjobs=4", "4",
         "--filename=f --numjobs=4 --offset_increment=1m"),
    case("same-region", "--filename=f --numjobs=4", "4", "--filename=f --numjobs=4 --rw=randread"),
    case("clones-apart", "--numjobs=2", "2", "--numjobs=2 --group_reporting"),
    case("rates-per-clone", "--numjobs=2 --rate=1m", "1m", "--numjobs=1 --rate=1m"),
    case("rates-per-rank", "--rank=1/4 --rate_iops=100", "100",
         "--rank=1/4 --rate_iops=(100/$ranks)"),
    case("rates-per-rank", "--rank=1/4 --rate=4m --ranks=0-2", "4m",
         "--rank=1/4 --rate=4m --ranks=1"),
    case("sizes-per-rank", "--rank=0/4 --size=2m", "2m", "--rank=0/4 --size=(8m/$ranks)"),
    case("blocks-left-out", "--rw=randwrite --norandommap", "--norandommap",
         "--rw=randwrite --norandommap --runtime=5"),
    case("verify-without-map", "--rw=randwrite --verify=crc32c --norandommap=1", "1",
         "--rw=randwrite --verify=crc32c"),
    case("verify-without-map", "--rw=randwrite --verify=crc32c --random_distribution=zipf",
         "zipf", "--rw=randwrite --random_distribution=zipf"),
    case("distribution-has-no-map", "--rw=randread --random_distribution=zipf --norandommap=0", "0",
         "--rw=randread --random_distribution=zipf --norandommap=1"),
    case("zeros", "--rw=write --zero_buffers=1", "1", "--rw=read --zero_buffers=1"),
    case("same-content", "--rw=write --scramble_buffers=0", "0",
         "--rw=write --scramble_buffers=0 --refill_buffers"),
    case("same-content", "--rw=write --buffer_compress_percentage=0", "0",
         "--rw=write --buffer_compress_percentage=0 --refill_buffers"),
    case("same-content", "--rw=write --buffer_compress_percentage=50 --refill_buffers=0", "0",
         "--rw=write --buffer_compress_percentage=50"),
    case("zeros", "--rw=write --buffer_compress_percentage=100", "100",
         "--rw=write --zero_buffers=1 --buffer_compress_percentage=50"),
    case("refill-has-nothing", "--rw=write --zero_buffers=1 --refill_buffers=1", "1",
         "--rw=write --refill_buffers=1"),
    case("log-hides-slow-ops", "--write_lat_log=l --log_avg_msec=100", "100",
         "--write_lat_log=l --log_avg_msec=100 --log_window_value=both"),
    case("log-window-beyond-run",
         "--write_bw_log=l --log_avg_msec=6000 --runtime=5 --time_based", "6000",
         "--write_bw_log=l --log_avg_msec=4000 --runtime=5 --time_based"),
    case("log-of-nothing", "--write_lat_log=l --gtod_reduce=1", "1",
         "--write_bw_log=l --gtod_reduce=1"),
    case("guard-without-times", "--max_latency=1s --gtod_reduce=1", "1",
         "--max_latency=1s"),
    case("mix-of-one", "--rw=randread --rwmixread=70", "70", "--rw=randrw --rwmixread=70"),
    case("sync-without-writes", "--rw=read --fsync=8", "8", "--rw=write --fsync=8"),
    case("random-option-unused", "--rw=read --norandommap=1", "1", "--rw=randread --norandommap=1"),
    case("files-in-memory", "--filename=f --direct=1", "f", "--filename=f --ioengine=null")
        .with_storage(|facts| facts.storage.filesystem = "tmpfs".into()),
    case("reads-holes", "--filename=f", "f", "--filename=f --rw=write")
        .with_storage(|facts| {
            facts.filled = AllocatedBytes { total_bytes: 1 << 20, data_bytes: 1 << 19 };
        }),
    case("compressible", "--rw=write --buffer_pattern=0xdead", "0xdead", "--rw=write")
        .with_storage(|facts| facts.storage.filesystem = "zfs".into()),
    case("priority-unused", "--prioclass=1", "1", "--prioclass=1 --ioengine=null")
        .with_storage(|facts| facts.storage.scheduler = "none".into()),
];

const ONE_GIB: MemoryLimit = MemoryLimit {
    bytes: 1 << 30,
    is_of_group: false,
};

/// Returns facts about ext4 on a device with 4 KiB blocks, and missing files.
fn ordinary() -> SectionFacts {
    SectionFacts {
        storage: StorageRecord {
            filesystem: "ext4".into(),
            device: "sdx".into(),
            scheduler: "mq-deadline".into(),
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            ..StorageRecord::default()
        },
        ..SectionFacts::default()
    }
}

fn findings(words: &str, storage_facts: fn(&mut SectionFacts)) -> Vec<Finding> {
    let plan = plan(&format!("--name=t --size=1m {words}"));
    let translation = translate(&plan, &FakeFiles::default(), &mut || 1);
    assert!(translation.problems.is_empty(), "{words}");
    let mut section = ordinary();
    storage_facts(&mut section);
    let facts = Facts {
        memory: ONE_GIB,
        cpus: 2,
        sections: vec![section; plan.jobs.len()],
    };
    judge(&translation.setups, &facts)
}

#[test]
fn each_rule_finds_what_it_is_about_and_leaves_the_rest_alone() {
    let wrong: Vec<_> = CASES.iter().filter_map(failure_of).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_a_run_would_begin_with_saying_is_found_too() {
    let words = "--name=t --ioengine=null --size=1m --time_based --runtime=5 --steadystate=iops:5% \
                 --ss_dur=6";
    let found = lint(&plan(words), &Settings::default());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].diagnostic.code, "steady_window_beyond_run");
    assert_eq!(found[0].diagnostic.offending, "6");
}

#[test]
fn a_job_without_a_size_is_told_that_alone() {
    let found = lint(&plan("--name=t --rw=randread"), &Settings::default());
    let codes: Vec<_> = found.iter().map(|found| found.diagnostic.code).collect();
    assert_eq!(codes, ["no_size"]);
}

/// Returns the failure of a rule's case, if there is one.
fn failure_of(case: &Case) -> Option<String> {
    let Case { rule, found, .. } = case;
    let of_rule = |found: &Finding| found.diagnostic.code == case.rule;
    let Some(hit) = findings(found, case.storage_facts)
        .into_iter()
        .find(of_rule)
    else {
        return Some(format!("{rule} does not find {found}"));
    };
    let shown = hit.diagnostic.offending.trim_start_matches('-');
    if shown != case.shown.trim_start_matches('-') || hit.diagnostic.hint.is_none() {
        return Some(format!("{rule} shows `{shown}` of {found}"));
    }
    let mut other = findings(case.not_found, case.storage_facts).into_iter();
    let other = other.any(|found| of_rule(&found));
    other.then(|| format!("{rule} finds {}", case.not_found))
}

#[test]
fn every_rule_has_a_case_and_a_name_of_its_own() {
    let tested: HashSet<_> = CASES.iter().map(|case| case.rule).collect();
    let names: Vec<_> = rules().map(|(name, _)| name).collect();
    let distinct: HashSet<_> = names.iter().copied().collect();
    assert_eq!(distinct.len(), names.len());
    assert_eq!(distinct, tested);
}

#[test]
fn nothing_is_said_of_a_plain_job() {
    let plain = [
        "--rw=randread --direct=1 --ioengine=io_uring --iodepth=32 --runtime=30 --time_based",
        "--rw=write --direct=1 --bs=1m",
        "--rw=randread --direct=1 --numjobs=4 --group_reporting --filename=f",
        "--rw=randrw --direct=1 --rwmixread=70 --time_based --runtime=10 --ramp_time=2",
        "--ioengine=null --size=1g --rw=randwrite",
    ];
    for words in plain {
        let found = findings(words, |_| {});
        let codes: Vec<_> = found.iter().map(|found| found.diagnostic.code).collect();
        assert!(codes.is_empty(), "{words}: {codes:?}");
    }
}

#[test]
fn what_jobs_inherit_is_told_once_with_all_of_them() {
    let plan = plan("--size=1m --rw=read --name=a --name=b");
    let table = FakeFiles::default();
    let setups = translate(&plan, &table, &mut || 1).setups;
    let facts = Facts {
        memory: ONE_GIB,
        cpus: 2,
        sections: vec![ordinary(); 2],
    };
    let found = judge(&setups, &facts);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].jobs, ["a", "b"]);
    assert_eq!(found[0].diagnostic.offending, "1m");
}

#[test]
fn devices_are_written_side_by_side_without_a_word() {
    let of = |words: &str| {
        let plan = plan(&format!(
            "--name=t --filename=/dev/x --numjobs=2 --rw=randwrite {words}"
        ));
        let device = TargetKind::Block {
            bytes: 1 << 30,
            logical_block: 512,
        };
        let table = FakeFiles::of(&[("/dev/x", device)]);
        let setups = translate(&plan, &table, &mut || 1).setups;
        let facts = Facts {
            sections: vec![ordinary()],
            ..Facts::default()
        };
        let found = judge(&setups, &facts);
        found
            .iter()
            .any(|found| found.diagnostic.code == "shared-writes")
    };
    assert!(!of(""));
    // A run warns of it by itself.
    assert!(!of("--verify=crc32c"));
}
