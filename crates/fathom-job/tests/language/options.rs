//! Values of options on the job as a whole, its rate, queue and measurement, accepted and refused.

use crate::world::{World, check, job, note, refuse};
use fathom_core::{IoPriority, Nanos, PerDirection};
use fathom_engine::options::{
    FIXEDBUFS, FORCE_ASYNC, HIPRI, NONVECTORED, REGISTERFILES, SQTHREAD_POLL, SQTHREAD_POLL_CPU,
    UNCACHED, USERSPACE_REAP,
};
use fathom_job::{ClockSource, ContinueOnError, CpuPolicy, Options, PriorityShare, RateProcess};

#[test]
fn general_options() {
    check("--description=words", |o| {
        o.description.as_deref() == Some("words")
    });
    check("--loops=3", |o| o.loops == 3);
    check("--loops=0", |o| o.loops == 1);
    check("--numjobs=4", |o| o.numjobs == 4);
    refuse("--numjobs=0", "out-of-range");
    refuse("--numjobs=4097", "too-many-jobs");
    check("--startdelay=5", |o| {
        o.startdelay == (Nanos::from_secs(5), Nanos::from_secs(5))
    });
    check("--startdelay=2s-1s", |o| {
        o.startdelay == (Nanos::from_secs(1), Nanos::from_secs(2))
    });
    refuse("--startdelay=1-2-3", "bad-range");
    check("--runtime=500ms", |o| {
        o.runtime == Some(Nanos::from_millis(500))
    });
    check("--timeout=2", |o| o.runtime == Some(Nanos::from_secs(2)));
    check("--runtime=0", |o| o.runtime.is_none());
    refuse("--runtime=1min", "bad-time-unit");
    refuse("--runtime=-1", "negative");
    check("--time_based --runtime=1", |o| o.time_based);
    check("--time_based=0 --runtime=1", |o| !o.time_based);
    note("--time_based", "no-runtime");
    check("--time_based", |o| !o.time_based);
    check("--ramp_time=2", |o| o.ramp_time == Nanos::from_secs(2));
    check("--clocksource=cpu", |o| o.clocksource == ClockSource::Cpu);
    check("--gtod_cpu=1", |o| o.gtod_cpu == Some(1));
    check("--stonewall", |o| o.stonewall);
    check("--wait_for_previous=1", |o| o.stonewall);
    check("--new_group", |o| o.new_group);
    check("--thread=1", |o| o.thread);
    refuse("--thread=2", "not-a-boolean");
    refuse("--thread=true", "not-a-boolean");
    check("--kb_base=1000", |o| o.kb_base == 1000);
    refuse("--kb_base=1k", "bad-value");
    check("--unit_base=8", |o| o.unit_base == 8);
    check("--cpus_allowed=0-1,3", |o| {
        o.cpus_allowed == Some(vec![0, 1, 3])
    });
    refuse("--cpus_allowed=4", "bad-cpu");
    refuse("--cpus_allowed=1-0", "bad-range");
    refuse("--cpus_allowed=a", "bad-cpu");
    check("--cpus_allowed_policy=split", |o| {
        o.cpus_allowed_policy == CpuPolicy::Split
    });
    check("--nice=-20", |o| o.nice == -20);
    refuse("--nice=20", "out-of-range");
    check("--prio=7 --prioclass=3", |o| {
        (o.prio, o.prioclass) == (Some(7), Some(3))
    });
    refuse("--prio=8", "out-of-range");
    check("--prioclass=0", |o| {
        (o.prio, o.prioclass) == (None, Some(0))
    });
    check("--priohint=1023", |o| o.priohint == Some(1023));
    refuse("--priohint=1024", "out-of-range");
    note("--flow_watermark=3", "ignored");
}

#[test]
fn priorities_of_single_ops() {
    let check = |words: &str, holds: fn(&Options) -> bool| {
        for engine in ["io_uring", "libaio"] {
            check(&format!("--ioengine={engine} {words}"), holds);
        }
    };
    let refuse = |words: &str, code: &str| refuse(&format!("--ioengine=libaio {words}"), code);
    check("--cmdprio_percentage=30", |o| {
        o.cmdprio_percentage == PerDirection::all(30) && o.cmdprio_class == PerDirection::all(1)
    });
    check("--cmdprio_percentage=30,20 --cmdprio_class=1,3", |o| {
        (o.cmdprio_percentage.read, o.cmdprio_percentage.write) == (30, 20)
            && (o.cmdprio_class.read, o.cmdprio_class.write) == (1, 3)
    });
    check("--cmdprio=,7 --cmdprio_hint=1023", |o| {
        (o.cmdprio.read, o.cmdprio.write) == (0, 7) && o.cmdprio_hint == PerDirection::all(1023)
    });
    let spelled = |class, level, hint| Some(IoPriority { class, level, hint });
    check("--cmdprio_bssplit=4k/60", |o| {
        let share = PriorityShare {
            bytes: 4096,
            percent: 60,
            priority: None,
        };
        o.cmdprio_bssplit == PerDirection::all(vec![share])
    });
    let shares = PerDirection::new(
        vec![
            (4096, 60, spelled(2, 3, 0)),
            (4096, 40, spelled(3, 1, 5)),
            (8192, 100, None),
        ],
        vec![],
        vec![],
    );
    let got = job("--ioengine=libaio --cmdprio_bssplit=4k/60/2/3:4k/40/3/1/5:8k/100,");
    let got = got.options.cmdprio_bssplit.map(|list| {
        let parts = |share: &PriorityShare| (share.bytes, share.percent, share.priority);
        list.iter().map(parts).collect::<Vec<_>>()
    });
    assert_eq!(got, shares);
    refuse("--cmdprio_percentage=101", "out-of-range");
    refuse("--cmdprio_class=0", "out-of-range");
    refuse("--cmdprio_class=4", "out-of-range");
    refuse("--cmdprio=8", "out-of-range");
    refuse("--cmdprio_hint=1024", "out-of-range");
    refuse("--cmdprio_bssplit=4k", "bad-split");
    refuse("--cmdprio_bssplit=4k/50/2", "bad-split");
    refuse("--cmdprio_bssplit=4k/60:4k/60", "bad-split");
    refuse("--cmdprio_bssplit=4k/50/0/3", "out-of-range");
    refuse("--cmdprio_bssplit=4k/50/2/9", "out-of-range");
    refuse("--cmdprio_bssplit=0/50", "out-of-range");
    refuse("--cmdprio_bssplit=4k/1,4k/1,4k/1,4k/1", "too-many-values");
    refuse(
        "--cmdprio_percentage=30 --cmdprio_bssplit=4k/50",
        "contradiction",
    );
}

#[test]
fn queues_and_engines() {
    check("--ioengine=io_uring --iodepth=32", |o| o.iodepth == 32);
    check("--ioengine=aio", |o| o.engine.name == "libaio");
    refuse("--ioengine=io_urin", "unknown-engine");
    check("--ioengine=posixaio --iodepth=8", |o| o.iodepth == 8);
    check("--ioengine=libiscsi --iodepth=8", |o| o.iodepth == 8);
    refuse("--ioengine=external:/x.so", "not-in-fathom");
    refuse("--iodepth=0", "out-of-range");
    note("--iodepth=4", "depth-capped");
    note("--warnings-fatal --iodepth=4", "depth-capped");
    check("--ioengine=null --iodepth=1k", |o| o.iodepth == 1024);
    check("--iodepth_batch_submit=4", |o| o.iodepth_batch == 4);
    check("--iodepth_batch_complete=4", |o| {
        o.iodepth_batch_complete_min == 4
    });
    refuse(
        "--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=2",
        "contradiction",
    );
    let line = "--iodepth_batch_complete_max=2 --name=x --iodepth_batch_complete_min=4";
    let max = World::default().plan(line).jobs[0]
        .options
        .iodepth_batch_complete_max;
    assert_eq!(max, 4);
    check("--iodepth_low=2", |o| o.iodepth_low == 2);
    check("--direct=1", |o| o.direct);
    check("--buffered=0", |o| o.direct);
    check("--direct=1 --buffered=0", |o| o.direct);
    refuse("--direct=1 --buffered=1", "contradiction");
    refuse("--direct=2", "not-a-boolean");
    check(
        "--ioengine=io_uring --sqthread_poll --sqthread_poll_cpu=1",
        |o| {
            let cpu = o.engine_values.number(&SQTHREAD_POLL_CPU);
            o.engine_values.flag(&SQTHREAD_POLL) && cpu == Some(1)
        },
    );
    check(
        "--ioengine=io_uring --fixedbufs --registerfiles --hipri",
        |o| {
            let on = |option| o.engine_values.flag(option);
            on(&FIXEDBUFS) && on(&REGISTERFILES) && on(&HIPRI)
        },
    );
    check(
        "--ioengine=io_uring --nonvectored=1 --force_async=4 --uncached=1",
        |o| {
            let on = |option| o.engine_values.flag(option);
            on(&NONVECTORED) && on(&UNCACHED) && o.engine_values.number(&FORCE_ASYNC) == Some(4)
        },
    );
    check("--ioengine=libaio --userspace_reap", |o| {
        o.engine_values.flag(&USERSPACE_REAP)
    });
    refuse("--ioengine=libaio --fixedbufs", "other-engine");
    let errors = World::default().parse("--name=a --ioengine=psync --thp=1");
    let text = errors.unwrap_err().render("fio", false);
    let want = "`thp` applies to `mmap`, but the job's engine is `psync`";
    assert!(text.contains(want), "{text}");
}

#[test]
fn pace() {
    check("--rate=1m,500k", |o| {
        o.rate.read == Some(1 << 20) && o.rate.trim == Some(500 << 10)
    });
    check("--rate=0", |o| o.rate.read.is_none());
    check("--rate_iops=100", |o| {
        o.rate_iops == PerDirection::all(Some(100))
    });
    refuse("--rate=1m --rate_iops=5", "contradiction");
    refuse("--rate=1m --rate_min=5m", "contradiction");
    refuse("--rate_min=1m --rate_iops_min=5", "contradiction");
    check("--ratemin=1k", |o| o.rate_min.write == Some(1024));
    check("--rate_iops_min=9", |o| o.rate_iops_min.write == Some(9));
    check("--rate_process=poisson", |o| {
        o.rate_process == RateProcess::Poisson
    });
    check("--rate_cycle=500", |o| {
        o.rate_cycle == Nanos::from_millis(500)
    });
    check("--thinktime=10", |o| o.thinktime == Nanos::new(10_000));
    check("--thinktime_spin=1ms", |o| {
        o.thinktime_spin == Nanos::from_millis(1)
    });
    check("--thinktime_blocks=8", |o| o.thinktime_blocks == Some(8));
    check("--thinktime_blocks_type=issue", |o| {
        o.thinktime_blocks_issue
    });
    check("--thinktime_iotime=2", |o| {
        o.thinktime_iotime == Nanos::from_secs(2)
    });
}

#[test]
fn measuring() {
    check("--group_reporting", |o| o.group_reporting);
    check("--stats=0 --disk_util=0", |o| !o.stats && !o.disk_util);
    check(
        "--clat_percentiles=0 --lat_percentiles=1 --slat_percentiles=1",
        |o| !o.clat_percentiles && o.lat_percentiles && o.slat_percentiles,
    );
    check("--percentile_list=99.99:50", |o| {
        o.percentile_list == [50.0, 99.99] && o.percentile_precision == 2
    });
    refuse("--percentile_list=101", "bad-percentile");
    refuse("--percentile_list=1:2:x", "bad-percentile");
    refuse("--percentile_list=1::2", "bad-percentile");
    check("--significant_figures=6", |o| o.significant_figures == 6);
    check("--disable_lat=1 --disable_clat=1 --disable_slat=1", |o| {
        o.disable_lat && o.disable_clat && o.disable_slat
    });
    check("--disable_bw=1", |o| o.disable_bw);
    check("--gtod_reduce=1", |o| {
        o.gtod_reduce && o.disable_clat && o.disable_bw && !o.clat_percentiles
    });
    let errors = |read, write, verify| ContinueOnError {
        read,
        write,
        verify,
    };
    check("--continue_on_error=io", |o| {
        o.continue_on_error == errors(true, true, false)
    });
    check("--continue_on_error=1", |o| {
        o.continue_on_error == errors(true, true, true)
    });
}
