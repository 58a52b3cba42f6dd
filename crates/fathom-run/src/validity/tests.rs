use crate::testing::plan;
use fathom_host::backing::BackingStorage;
use fathom_record::{CpuRecord, LatencyTargetRecord, OwnCostRecord, PerDirectionRecord};
use fathom_setup::fixture::FakeFiles;
use fathom_setup::translate::translate;
use fathom_stats::Latency;

use super::*;

const MIB: u64 = 1 << 20;

/// Judges a job that has read its 1 MiB once, after `change` has modified the evidence.
pub(super) fn judge(words: &str, change: impl FnOnce(&mut JobRecord, &mut Seen)) -> Vec<Validity> {
    let plan = plan(&format!("--name=t --rw=randread --size=1m {words}"));
    let setup = translate(&plan, &FakeFiles::default(), &mut || 0)
        .setups
        .remove(0);
    let mut record = fathom_setup::collect::planned(std::slice::from_ref(&setup)).remove(0);
    record.directions.read.ios = 256;
    record.directions.read.bytes = MIB;
    let mut seen = Seen {
        device_bytes: Some(MIB),
        cached_after: CachedBytes {
            total_bytes: MIB,
            cached_bytes: 0,
        },
        mean_depth: 1.0,
        filled: AllocatedBytes::default(),
        below: JobBacking::default(),
        written_bytes: None,
        disk_write_bytes: None,
        shares_with_buffered: false,
        processors: JobProcessors::default(),
        used: None,
        loop_read_bytes: None,
    };
    change(&mut record, &mut seen);
    let evidence = JobEvidence {
        job: &plan.jobs[0],
        setup: &setup,
        record: &record,
        cached_before: CachedBytes::default(),
        cached_after: seen.cached_after,
        mean_depth: seen.mean_depth,
        filled: seen.filled,
        below: seen.below,
        shares_with_buffered: seen.shares_with_buffered,
        processors: seen.processors,
    };
    let run = RunEvidence {
        cpu: None,
        device_bytes: seen.device_bytes,
        direct_read_bytes: read_bytes(&evidence, true),
        buffered_read_bytes: read_bytes(&evidence, false),
        memory: MemoryLimit {
            bytes: 64 * MIB,
            is_of_group: false,
        },
        written_bytes: seen.written_bytes.unwrap_or(0),
        disk_write_bytes: seen.disk_write_bytes,
        processor: None,
        io_limits: Vec::new(),
        processors: seen.used,
        loop_read_bytes: seen.loop_read_bytes,
    };
    judge_job(&evidence, &run)
}

pub(super) struct Seen {
    device_bytes: Option<u64>,
    cached_after: CachedBytes,
    mean_depth: f64,
    filled: AllocatedBytes,
    below: JobBacking,
    written_bytes: Option<u64>,
    disk_write_bytes: Option<u64>,
    shares_with_buffered: bool,
    pub(super) processors: JobProcessors,
    pub(super) used: Option<ProcessorsRecord>,
    loop_read_bytes: Option<u64>,
}

#[track_caller]
pub(super) fn check(judgements: &[Validity], name: &str, ok: Option<bool>) {
    let found = judgements.iter().find(|validity| validity.check == name);
    assert_eq!(found.map(|validity| validity.ok), ok, "{name}: {found:?}");
}

#[test]
fn reads_without_device_io_came_from_memory() {
    check(&judge("", |_, _| {}), "page_cache", Some(true));
    let cached = judge("", |_, seen| seen.device_bytes = Some(MIB / 2));
    check(&cached, "page_cache", Some(false));
    let read_ahead = judge("", |_, seen| seen.device_bytes = Some(9 * MIB));
    check(&read_ahead, "page_cache", Some(true));
    check(&judge("--direct=1", |_, _| {}), "page_cache", None);
    check(&judge("--ioengine=null", |_, _| {}), "page_cache", None);
}

#[test]
fn direct_io_leaves_the_page_cache_alone() {
    check(&judge("--direct=1", |_, _| {}), "direct_io", Some(true));
    let filled = judge("--direct=1", |_, seen| {
        seen.cached_after.cached_bytes = MIB / 2
    });
    check(&filled, "direct_io", Some(false));
    check(&judge("", |_, _| {}), "direct_io", None);
}

#[test]
fn cache_filled_by_another_job_is_ignored() {
    let filled = |_: &mut JobRecord, seen: &mut Seen| {
        seen.cached_after.cached_bytes = MIB;
        seen.shares_with_buffered = true;
    };
    check(&judge("--direct=1", filled), "direct_io", None);
    let mapped = judge("--direct=1 --ioengine=mmap", |_, _| {});
    check(&mapped, "direct_io", Some(false));
}

#[test]
fn files_in_memory_fail_storage() {
    let memory = |_: &mut JobRecord, seen: &mut Seen| {
        seen.below.add(&in_memory());
    };
    for words in ["", "--direct=1"] {
        let judged = judge(words, memory);
        check(&judged, "storage", Some(false));
        check(&judged, "page_cache", None);
        check(&judged, "direct_io", None);
    }
    check(&judge("", |_, _| {}), "storage", None);
}

#[test]
fn reads_of_holes_fail_written() {
    let holes = |data_bytes| {
        move |_: &mut JobRecord, seen: &mut Seen| {
            seen.filled = AllocatedBytes {
                total_bytes: MIB,
                data_bytes,
            };
        }
    };
    check(&judge("", holes(MIB)), "written", Some(true));
    check(&judge("", holes(0)), "written", Some(false));
    check(&judge("", |_, _| {}), "written", None);
}

#[test]
fn shallow_queue_fails_unless_rate_limited() {
    let buffered = judge("--ioengine=libaio --iodepth=8", |_, seen| {
        seen.mean_depth = 7.5
    });
    check(&buffered, "queue_depth", Some(false));
    let words = "--ioengine=libaio --iodepth=8 --direct=1";
    check(
        &judge(words, |_, seen| seen.mean_depth = 7.5),
        "queue_depth",
        Some(true),
    );
    check(&judge(words, |_, _| {}), "queue_depth", Some(false));
    let rated = format!("{words} --rate_iops=5");
    check(&judge(&rated, |_, _| {}), "queue_depth", Some(true));
    check(&judge("", |_, _| {}), "queue_depth", None);
}

#[test]
fn busy_thread_fails_cpu_bound() {
    let busy = |user_us| {
        move |record: &mut JobRecord, _: &mut Seen| {
            record.cpu = CpuRecord {
                user_us,
                wall_us: 1000,
                ..CpuRecord::default()
            };
        }
    };
    check(&judge("", busy(990)), "cpu_bound", Some(false));
    check(&judge("", busy(500)), "cpu_bound", Some(true));
    check(
        &judge("--ioengine=null", busy(990)),
        "cpu_bound",
        Some(true),
    );
}

#[test]
fn stall_hidden_by_clat_is_reported() {
    let times = |resp_ns: u64| {
        move |record: &mut JobRecord, _: &mut Seen| {
            let latency = |ns: u64| {
                let mut latency = Latency::new(true);
                latency.record_n(ns, 100);
                Some(latency)
            };
            record.directions = PerDirectionRecord::default();
            record.directions.read.ios = 100;
            record.directions.read.clat = latency(100_000);
            record.directions.read.resp = latency(resp_ns);
        }
    };
    check(&judge("", times(900_000_000)), "response_time", Some(false));
    check(&judge("", times(150_000)), "response_time", Some(true));
    check(&judge("", |_, _| {}), "response_time", None);
}

/// Run of which only the stolen time is known, of 1 ms.
pub(super) fn run_of(stolen_us: u64) -> RunEvidence {
    RunEvidence {
        memory: MemoryLimit::default(),
        written_bytes: 0,
        disk_write_bytes: None,
        processor: None,
        processors: None,
        loop_read_bytes: None,
        io_limits: Vec::new(),
        cpu: Some((
            CpuTimes::default(),
            CpuTimes {
                total_us: 1000,
                idle_us: 0,
                stolen_us,
            },
        )),
        device_bytes: None,
        direct_read_bytes: 0,
        buffered_read_bytes: 0,
    }
}

#[test]
fn lost_cpu_time_is_reported_from_one_percent() {
    let run = run_of;
    check(&judge_run(&run(9)), "stolen_time", Some(true));
    check(&judge_run(&run(10)), "stolen_time", Some(false));
    check(&judge_run(&run(10)), "cpu_limit", None);
    let processor = |throttled_us| CpuLimit {
        cpus: 0.5,
        throttled_us,
        ..CpuLimit::default()
    };
    let limited = |held_us: u64| RunEvidence {
        processor: Some((processor(7), processor(7 + held_us), 1_000_000)),
        ..run(0)
    };
    check(&judge_run(&limited(9)), "cpu_limit", Some(true));
    check(&judge_run(&limited(10)), "cpu_limit", Some(false));
    let limited = RunEvidence {
        io_limits: vec!["8:0 rbps=5".into()],
        ..run(0)
    };
    check(&judge_run(&limited), "io_limit", Some(false));
}

fn in_memory() -> BackingStorage {
    BackingStorage {
        memory: Some("tmpfs".into()),
        ..BackingStorage::default()
    }
}

#[test]
fn one_file_in_memory_or_on_cached_loop_fails_storage() {
    let second = judge("--direct=1", |_, seen| {
        seen.below.add(&BackingStorage::default());
        seen.below.add(&in_memory());
    });
    check(&second, "storage", Some(false));
    assert!(second[0].sentence.starts_with("1 of 2 files are in memory"));
    let cached_loop = judge("--direct=1", |_, seen| {
        seen.below.add(&BackingStorage {
            cached_loop: Some("loop0".into()),
            ..BackingStorage::default()
        });
    });
    check(&cached_loop, "storage", Some(false));
}

#[test]
fn reads_through_a_cached_loop_device_are_compared_with_those_of_the_disk_beneath() {
    let beneath = |words: &str, bytes| {
        judge(words, |_, seen| {
            seen.below.add(&BackingStorage {
                cached_loop: Some("loop0".into()),
                ..BackingStorage::default()
            });
            seen.loop_read_bytes = bytes;
        })
    };
    for (bytes, words) in [
        (
            Some(MIB / 4),
            "at least 75 % of the bytes read came from memory",
        ),
        (Some(9 * MIB), "reads may come from memory"),
        (None, "reads may come from memory"),
    ] {
        let judged = beneath("--direct=1", bytes);
        check(&judged, "storage", Some(false));
        assert!(judged[0].sentence.contains(words), "{judged:?}");
        // The cache above the device proves nothing.
        check(&judged, "direct_io", None);
        check(&beneath("", bytes), "page_cache", None);
    }
}

#[test]
fn buffered_writes_pass_if_synced_and_written_by_disks() {
    let wrote = |reached: Option<u64>| {
        move |record: &mut JobRecord, seen: &mut Seen| {
            record.directions.write.ios = 256;
            seen.written_bytes = Some(MIB);
            seen.disk_write_bytes = reached;
        }
    };
    for rw in ["--rw=write", "--rw=randrw"] {
        let judge = |words: &str, reached| judge(&format!("{rw} {words}"), wrote(reached));
        check(&judge("", None), "page_cache", Some(false));
        check(&judge("", Some(9 * MIB)), "page_cache", Some(false));
        check(&judge("--end_fsync=1", None), "page_cache", Some(true));
        check(&judge("--end_fsync=1", Some(MIB)), "page_cache", Some(true));
        // A page that is overwritten a hundred times reaches the disk once.
        check(
            &judge("--end_fsync=1", Some(MIB / 9)),
            "page_cache",
            Some(false),
        );
    }
}

#[test]
fn synchronous_engine_fails_queue_depth() {
    for words in [
        "--ioengine=psync",
        "--ioengine=mmap",
        "--ioengine=psync --rate_iops=5",
    ] {
        let judged = judge(&format!("{words} --iodepth=32"), |_, _| {});
        check(&judged, "queue_depth", Some(false));
    }
}

/// vsync holds ops back in the program: to the device and the page cache it is like psync.
#[test]
fn vsync_is_synchronous_and_buffered_whatever_its_own_queue() {
    for engine in ["psync", "vsync"] {
        let words = format!("--ioengine={engine} --iodepth=16");
        let deep = |_: &mut JobRecord, seen: &mut Seen| {
            seen.mean_depth = 16.0;
            seen.device_bytes = Some(MIB / 2);
        };
        let judged = judge(&words, deep);
        check(&judged, "queue_depth", Some(false));
        check(&judged, "page_cache", Some(false));
        let direct = judge(&format!("{words} --direct=1"), deep);
        check(&direct, "queue_depth", Some(false));
        check(&direct, "page_cache", None);
        check(&direct, "direct_io", Some(true));
    }
}

/// Judges a job whose loop takes 40 ns per op and whose clats are all `clat_ns`.
fn own_cost(words: &str, clat_ns: u64) -> Option<Validity> {
    let judged = judge(words, |record, _| {
        let mut clat = Latency::new(true);
        clat.record_n(clat_ns, 256);
        record.directions.read.clat = Some(clat);
        record.own_cost = Some(OwnCostRecord {
            clock_read_ns: 20,
            loop_ns_per_op: Some(40.0),
        });
    });
    judged.into_iter().find(|it| it.check == "own_cost")
}

#[test]
fn own_work_is_said_above_a_twentieth_of_the_median_clat() {
    assert!(own_cost("", 1_000).is_some_and(|it| it.ok));
    // 402: the middle of its bucket.
    let near = own_cost("", 400).expect("a judgement");
    assert!(!near.ok);
    assert_eq!(
        near.sentence,
        "fathom's own work took 40 ns per op, 10 % of the median clat of 402 ns: up to that share \
         of the latencies is not the storage's"
    );
    assert_eq!(own_cost("--ioengine=null", 10).map(|it| it.ok), None);
    assert!(judge("", |_, _| {}).iter().all(|it| it.check != "own_cost"));
}

#[test]
fn own_work_is_not_compared_with_clats_of_ops_that_completed_in_their_submission() {
    let judged = |slat_ns: u64| {
        judge("--ioengine=io_uring --direct=1", |record, _| {
            let times = |ns: u64, times: u64| {
                let mut latency = Latency::new(true);
                latency.record_n(ns, times);
                latency
            };
            let mut clat = times(11, 150);
            clat.record_n(80_000, 106);
            record.directions.read.clat = Some(clat);
            record.directions.read.slat = Some(times(slat_ns, 256));
            record.own_cost = Some(OwnCostRecord {
                clock_read_ns: 20,
                loop_ns_per_op: Some(40.0),
            });
        })
    };
    let inline = judged(60_000);
    check(&inline, "submission", Some(false));
    check(&inline, "own_cost", None);
    let said = inline.iter().find(|it| it.check == "submission");
    assert_eq!(
        said.map(|it| it.sentence.as_str()),
        Some(
            "59 % of ops had completed when the call that submitted them returned: all of their \
             time is in slat, and clat, with its percentiles, is too low (lat_percentiles=1 shows \
             those of lat)"
        )
    );
    // An engine that takes no time to submit has nothing to hide.
    let instant = judged(30);
    check(&instant, "submission", None);
    check(&instant, "own_cost", Some(false));
}

#[test]
fn a_missed_latency_target_is_reported_instead_of_the_depth_that_it_allowed() {
    let words = "--ioengine=io_uring --iodepth=16 --latency_target=1ms --latency_window=1s \
                 --latency_percentile=99";
    let judged = |depth: u32, depth_met: Option<u32>| {
        judge(words, |record, seen| {
            record.latency_target = Some(LatencyTargetRecord {
                target_ns: 1_000_000,
                window_us: 1_000_000,
                share_percent: 99.0,
                depth,
                depth_met,
            });
            seen.mean_depth = 1.0;
        })
    };
    let missed = judged(1, Some(0));
    check(&missed, "latency_target", Some(false));
    check(&missed, "queue_depth", Some(true));
    let said = missed.iter().find(|it| it.check == "latency_target");
    assert_eq!(
        said.map(|it| it.sentence.as_str()),
        Some(
            "latency_target was missed: not even at queue depth 1 did 99 % of ops complete within \
             1.000 ms"
        )
    );
    check(&judged(4, Some(4)), "latency_target", Some(true));
    check(&judged(8, Some(4)), "latency_target", Some(false));
    check(&judged(1, None), "latency_target", Some(false));
    check(&judge("", |_, _| {}), "latency_target", None);
}
