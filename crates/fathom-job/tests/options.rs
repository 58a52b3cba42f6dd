//! What each option's values mean, and which are refused, option by option.

mod world;

use fathom_core::{Direction, IoPriority, Nanos, PerDirection};
use fathom_job::{
    AccessZone, BlockSize, ClockSource, ContinueOnError, CpuPolicy, DedupeMode, FadviseHint,
    Fallocate, FileService, MemoryKind, Options, PriorityShare, RandomDistribution,
    RandomGenerator, RateProcess, ReadWrite, Size, Verify, ZoneLength,
};
use world::{World, check, job, refuse};

/// The options are accepted, with this note.
#[track_caller]
fn note(options: &str, code: &str) {
    let notes = World::default().notes(&format!("--name=x {options}"));
    let codes: Vec<_> = notes
        .iter()
        .filter_map(|note| note.split(' ').nth(1))
        .collect();
    assert_eq!(codes, [code], "{options}");
}

fn fixed(sizes: &PerDirection<BlockSize>) -> [u64; 3] {
    Direction::ALL.map(|direction| match sizes[direction] {
        BlockSize::Fixed(bytes) => bytes,
        _ => 0,
    })
}

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
fn patterns() {
    let modes = [
        ("read", ReadWrite::Read, false),
        ("write", ReadWrite::Write, false),
        ("trim", ReadWrite::Trim, false),
        ("randread", ReadWrite::Read, true),
        ("randwrite", ReadWrite::Write, true),
        ("randtrim", ReadWrite::Trim, true),
        ("rw", ReadWrite::Mixed, false),
        ("readwrite", ReadWrite::Mixed, false),
        ("randrw", ReadWrite::Mixed, true),
        ("trimwrite", ReadWrite::TrimWrite, false),
        ("randtrimwrite", ReadWrite::TrimWrite, true),
    ];
    for (word, rw, random) in modes {
        check(&format!("--rw={word}"), |o| {
            (o.rw, o.random) == (rw, random)
        });
    }
    refuse("--rw=READ", "bad-value");
    let suffix = |o: &Options| o.rw_suffix.map(|suffix| suffix.number);
    check("--rw=read:8k", |o| suffix(o) == Some(8192));
    check("--rw=read:-8k", |o| suffix(o) == Some(-8192));
    check("--rw=randread:8", |o| suffix(o) == Some(8));
    check("--rw=read:4k --rw=randread", |o| suffix(o).is_none());
    refuse("--rw=randread:-8", "bad-sequencer");
    refuse("--rw=read:x", "not-a-number");
    check("--rw_sequencer=identical", |o| o.rw_identical);
    check("--rwmixread=30", |o| o.rwmixread == 30);
    check("--rwmixwrite=30", |o| o.rwmixread == 70);
    check("--rwmixread=30 --rwmixwrite=70", |o| o.rwmixread == 30);
    refuse("--rwmixread=30 --rwmixwrite=60", "bad-mix");
    refuse("--rwmixread=101", "out-of-range");
    let line = "--rwmixread=30 --name=x --rwmixwrite=60";
    assert_eq!(World::default().plan(line).jobs[0].options.rwmixread, 40);
}

#[test]
fn block_sizes() {
    check("--bs=8k", |o| fixed(&o.block_sizes) == [8192; 3]);
    check("--blocksize=,8k", |o| {
        fixed(&o.block_sizes) == [4096, 8192, 8192]
    });
    check("--bs=8k,,1k", |o| {
        fixed(&o.block_sizes) == [8192, 4096, 1024]
    });
    check("--bs=(2*4k)", |o| fixed(&o.block_sizes) == [8192; 3]);
    note("--bs=4k-8k", "not-a-range");
    note("--bs=4kib", "reversed-units");
    note("--bs=4kib --size=1mib", "reversed-units");
    refuse("--bs=0", "out-of-range");
    refuse("--bs=4q", "bad-suffix");
    refuse("--bs=1k,2k,3k,4k", "too-many-values");
    let range = |min, max| BlockSize::Range { min, max };
    check("--bsrange=4k-64k", |o| {
        o.block_sizes == PerDirection::all(range(4096, 65536))
    });
    check("--bsrange=64k:4k", |o| {
        o.block_sizes.write == range(4096, 65536)
    });
    check("--bsrange=1k-2k,,4k-8k", |o| {
        o.block_sizes
            == PerDirection::new(range(1024, 2048), BlockSize::Fixed(4096), range(4096, 8192))
    });
    refuse("--bsrange=4k", "bad-range");
    refuse("--bsrange=1k-2k/3k-5k", "bad-range");
    // As in the jobs that fio is tested with: meant for `bssplit`.
    for text in ["512/25:1k:25:2k:25:4k/25", "512-1k/25", "1k/2:512/3"] {
        check(&format!("--bsrange={text}"), |o| {
            o.block_sizes.write
                == BlockSize::Range {
                    min: 512,
                    max: 1024,
                }
        });
    }
    // So writes a script that fio is tested with.
    check("--filesize=64k)", |o| o.filesize == Some((65_536, 65_536)));
    refuse("--bsrange=1k-", "no-number");
    let split = |o: &Options, direction: Direction| match &o.block_sizes[direction] {
        BlockSize::Split(entries) => entries.clone(),
        _ => Vec::new(),
    };
    check("--bssplit=4k/10:64k/50:32k/40", |o| {
        split(o, Direction::Trim) == [(4096, 10), (65536, 50), (32768, 40)]
    });
    check("--bssplit=4k:8k", |o| {
        split(o, Direction::Read) == [(4096, 50), (8192, 50)]
    });
    check("--bssplit=4k/50:8k/:16k/", |o| {
        split(o, Direction::Read) == [(4096, 50), (8192, 25), (16384, 25)]
    });
    check("--bssplit=4k/50:8k/50,", |o| {
        split(o, Direction::Write).is_empty()
    });
    note("--bssplit=4k/33:8k/33:16k/33", "bad-split");
    refuse("--bssplit=4k/60:8k/60", "bad-split");
    refuse("--bssplit=4k/x", "bad-percent");
    check("--blockalign=512", |o| {
        o.blockalign == PerDirection::all(Some(512))
    });
    check("--ba=512,", |o| {
        o.blockalign == PerDirection::new(Some(512), None, None)
    });
}

#[test]
fn sizes() {
    check("--size=1g", |o| o.size == Some(Size::Bytes(1 << 30)));
    check("--size=50%", |o| o.size == Some(Size::Percent(50)));
    refuse("--size=101%", "bad-percent");
    refuse("--size=-1", "out-of-range");
    refuse("--size=1.5g", "fraction");
    refuse("--size=4z", "bad-zones");
    refuse("--size=99999999999999999999", "overflow");
    check("--io_limit=4g", |o| o.io_size == Some(Size::Bytes(4 << 30)));
    check("--filesize=1m-4m", |o| {
        o.filesize == Some((1 << 20, 4 << 20))
    });
    check("--filesize=1m", |o| o.filesize == Some((1 << 20, 1 << 20)));
    check("--offset=10%", |o| o.offset == Size::Percent(10));
    check("--fileoffset=1k", |o| o.offset == Size::Bytes(1024));
    check("--offset_increment=1m", |o| {
        o.offset_increment == Size::Bytes(1 << 20)
    });
    check("--number_ios=7", |o| o.number_ios == Some(7));
    check("--number_ios=0", |o| o.number_ios.is_none());
    refuse("--size=4k --bs=8k", "bs-too-large");
    refuse("--filesize=4k --bs=8k", "bs-too-large");
    check("--size=4k --bs=4k,8k", |o| {
        o.size == Some(Size::Bytes(4096))
    });
    refuse("--size=10k --nrfiles=3", "bs-too-large");
}

#[test]
fn files() {
    check("--filename=a:b --nrfiles=1", |o| o.nrfiles == 1);
    check("--nrfiles=1 --filename=a:b", |o| o.nrfiles == 2);
    refuse("--filename=:", "no-value");
    check("--directory=/a:/b", |o| {
        o.directory == Some(vec!["/a".into(), "/b".into()])
    });
    check("--filename_format=$jobnum", |o| {
        o.filename_format == "$jobnum"
    });
    check("--nr_files=4", |o| o.nrfiles == 4);
    for (word, mode) in [
        ("none", Fallocate::None),
        ("0", Fallocate::None),
        ("native", Fallocate::Native),
        ("posix", Fallocate::Posix),
        ("1", Fallocate::Posix),
        ("keep", Fallocate::Keep),
        ("truncate", Fallocate::Truncate),
    ] {
        check(&format!("--fallocate={word}"), |o| o.fallocate == mode);
    }
    check("--fsync=3 --fdatasync=4", |o| {
        (o.fsync, o.fdatasync) == (3, 4)
    });
    check("--end_fsync=1 --fsync_on_close=1", |o| {
        o.end_fsync && o.fsync_on_close
    });
    check("--sync=dsync", |o| o.sync == 2);
    check("--sync=1", |o| o.sync == 1);
    refuse("--sync=2", "bad-value");
    check("--create_serialize=0 --create_fsync=0", |o| {
        !o.create_serialize && !o.create_fsync
    });
    check("--create_on_open=1 --create_only=1", |o| {
        o.create_on_open && o.create_only
    });
    check("--allow_file_create=0", |o| !o.allow_file_create);
    check("--allow_mounted_write=1", |o| o.allow_mounted_write);
    check("--unlink=1 --overwrite=1", |o| o.unlink && o.overwrite);
    check("--invalidate=0 --pre_read=1", |o| {
        !o.invalidate && o.pre_read
    });
}

#[test]
fn queues_and_engines() {
    check("--ioengine=io_uring --iodepth=32", |o| o.iodepth == 32);
    check("--ioengine=aio", |o| o.ioengine == "libaio");
    refuse("--ioengine=io_urin", "unknown-engine");
    refuse("--ioengine=posixaio", "not-yet");
    refuse("--ioengine=external:/x.so", "not-yet");
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
        |o| o.sqthread_poll && o.sqthread_poll_cpu == Some(1),
    );
    check(
        "--ioengine=io_uring --fixedbufs --registerfiles --hipri",
        |o| o.fixedbufs && o.registerfiles && o.hipri,
    );
    check(
        "--ioengine=io_uring --nonvectored=1 --force_async=4 --uncached=1",
        |o| o.nonvectored && o.force_async == 4 && o.uncached,
    );
    check("--ioengine=libaio --userspace_reap", |o| o.userspace_reap);
    refuse("--ioengine=libaio --fixedbufs", "other-engine");
}

#[test]
fn randomness() {
    check("--norandommap --softrandommap=1", |o| {
        o.norandommap && o.softrandommap
    });
    check("--randrepeat=0", |o| !o.randrepeat);
    check("--allrandrepeat=0", |o| !o.randrepeat);
    check("--randseed=0x99", |o| o.randseed == Some(0x99));
    check("--random_generator=lfsr", |o| {
        o.random_generator == RandomGenerator::Lfsr
    });
    let distributions = [
        ("random", RandomDistribution::Random),
        ("zipf", RandomDistribution::Zipf(1.1, None)),
        ("zipf:1.2:0.5", RandomDistribution::Zipf(1.2, Some(0.5))),
        ("pareto:0.3", RandomDistribution::Pareto(0.3, None)),
        ("normal:20", RandomDistribution::Normal(20.0, None)),
    ];
    for (text, want) in distributions {
        check(&format!("--random_distribution={text}"), |o| {
            o.random_distribution == want
        });
    }
    for text in [
        "zipf:1.0",
        "zipf:0",
        "pareto:1",
        "pareto:0.3:2",
        "normal:101",
    ] {
        refuse(&format!("--random_distribution={text}"), "out-of-range");
    }
    refuse("--random_distribution=zipf:x", "not-a-number");
    refuse("--random_distribution=random:4", "too-many-values");
    check("--percentage_random=80,", |o| {
        o.percentage_random == PerDirection::new(80, 100, 100)
    });
    refuse("--percentage_random=101", "out-of-range");
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
    check("--thinktime_blocks=8", |o| o.thinktime_blocks == 8);
    check("--thinktime_blocks_type=issue", |o| {
        o.thinktime_blocks_issue
    });
    check("--thinktime_iotime=2", |o| {
        o.thinktime_iotime == Nanos::from_secs(2)
    });
}

#[test]
fn content_and_verification() {
    check("--zero_buffers --refill_buffers", |o| {
        o.zero_buffers && o.refill_buffers
    });
    check("--scramble_buffers=0", |o| {
        o.scramble_buffers == Some(false)
    });
    check("--buffer_pattern=0xab", |o| {
        o.buffer_pattern == Some(vec![0xab]) && o.scramble_buffers == Some(false)
    });
    refuse("--buffer_pattern=abc", "bad-pattern");
    refuse("--buffer_pattern='missing'", "no-pattern-file");
    refuse("--buffer_pattern='missing", "bad-pattern");
    check("--verify=crc32c-intel", |o| o.verify == Verify::Crc32c);
    check("--verify=md5 --do_verify=0", |o| {
        o.verify == Verify::Md5 && !o.do_verify
    });
    check("--verify=pattern --verify_pattern=0xff", |o| {
        o.verify == Verify::Pattern && o.verify_pattern == Some(vec![0xff])
    });
    refuse("--verify=pattern", "no-pattern");
    refuse("--verify_pattern=0xff", "not-yet");
    refuse("--verify=sha1", "not-yet");
    refuse("--verify=none", "bad-value");
    refuse("--verify=md5 --rw=write --bs=32", "bs-too-small");
    note(
        "--verify=md5 --rw=write --time_based --runtime=1",
        "no-verify-phase",
    );
    note("--verifysort=1", "ignored");
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

#[test]
fn choice_of_file_and_zones() {
    check("--file_service_type=random:8", |o| {
        o.file_service == FileService::Random(8)
    });
    check("--file_service_type=zipf", |o| {
        o.file_service == FileService::Zipf(1.1)
    });
    check("--file_service_type=gauss:20", |o| {
        o.file_service == FileService::Normal(20.0)
    });
    check("--file_service_type=sequential", |o| {
        o.file_service == FileService::Sequential
    });
    check("--openfiles=4", |o| o.openfiles == Some(4));
    refuse("--file_service_type=roundrobin:x", "not-a-number");
    refuse("--file_service_type=roundrobin:0", "out-of-range");
    refuse("--file_service_type=sequential:2", "too-many-values");
    refuse("--file_service_type=best", "bad-value");
    let strided = "--zonemode=strided --zonesize=8k";
    check(strided, |o| (o.zones.size, o.zones.range) == (8192, 8192));
    check(&format!("{strided} --zoneskip=2z --size=3z"), |o| {
        o.zones.skip == Size::Bytes(16_384) && o.size == Some(Size::Bytes(24_576))
    });
    refuse("--zonesize=8k", "bad-zones");
    refuse("--zonemode=strided", "bad-zones");
    refuse("--io_size=4z", "bad-zones");
    refuse(&format!("{strided} --zoneskip=10%"), "bad-zones");
}

#[test]
fn zoned_distributions() {
    let percent = |access, percent| AccessZone {
        access,
        length: ZoneLength::Percent(percent),
    };
    check("--random_distribution=zoned:60/10:30/20:10/", |o| {
        let zones = o.access_zones.as_ref().expect("zones");
        zones.read == [percent(60, 10), percent(30, 20), percent(10, 70)]
            && zones.read == zones.trim
    });
    check("--random_distribution=zoned_abs:60/1m:40/9m,100/1m", |o| {
        let zones = o.access_zones.as_ref().expect("zones");
        zones.read[1].length == ZoneLength::Bytes(9 << 20) && zones.write.len() == 1
    });
    check(
        "--random_distribution=zoned:50/50:50/50 --random_distribution=zipf",
        |o| o.access_zones.is_none(),
    );
    for text in [
        "zoned:50/50",
        "zoned:50/60:50/60",
        "zoned:50:50",
        "zoned:/50:100/50",
        "zoned:",
        "zoned_abs:60/1m:40/",
    ] {
        let words = format!("--name=x --random_distribution={text}");
        assert_eq!(World::default().errors(&words).len(), 1, "{text}");
    }
}

#[test]
fn content_that_compresses_and_repeats() {
    check("--buffer_compress_percentage=40", |o| {
        o.content.compress_percentage == Some(40) && o.content.compress_chunk == 512
    });
    check("--buffer_compress_chunk=4k", |o| {
        o.content.compress_chunk == 4096
    });
    check("--dedupe_percentage=30 --dedupe_mode=working_set", |o| {
        o.content.dedupe_percentage == 30 && o.content.dedupe_mode == DedupeMode::WorkingSet
    });
    refuse("--dedupe_percentage=101", "out-of-range");
    let set = "--dedupe_percentage=70 --dedupe_mode=working_set --dedupe_working_set_percentage";
    check(&format!("{set}=30"), |o| {
        o.content.dedupe_working_set_percentage == 30
    });
    refuse(&format!("{set}=31"), "contradiction");
    refuse("--buffer_compress_percentage=101", "out-of-range");
}

#[test]
fn memory_and_files() {
    check("--mem=malloc", |o| o.memory.kind == MemoryKind::Private);
    check("--iomem=mmapshared:/tmp/x:y --mem_align=512", |o| {
        o.memory.file.as_deref() == Some("/tmp/x:y") && o.memory.align == 512
    });
    check("--mem=shmhuge --hugepage-size=1g", |o| {
        (o.memory.kind, o.memory.hugepage_size) == (MemoryKind::SharedHuge, 1 << 30)
    });
    refuse("--mem=shm:x", "bad-value");
    refuse("--mem=mmap:", "bad-value");
    refuse("--mem=cudamalloc", "not-yet");
    refuse("--hugepage-size=3m", "bad-page-size");
    check("--opendir=/tmp", |o| {
        o.files.opendir.as_deref() == Some("/tmp")
    });
    check("--fadvise_hint=noreuse --write_hint=long", |o| {
        (o.files.fadvise_hint, o.files.write_hint) == (FadviseHint::NoReuse, 4)
    });
    check("--offset_align=1m --file_append=1", |o| {
        (o.files.offset_align, o.files.append) == (1 << 20, true)
    });
    check("--fill_fs=1 --filetype=file --unique_filename=0", |o| {
        o.fill_device
    });
    check("--serialize_overlap=1 --rate_ignore_thinktime=1", |o| {
        o.serialize_overlap && o.rate_ignore_thinktime
    });
    refuse("--write_hint=brief", "bad-value");
}

#[test]
fn a_pattern_from_a_file_is_read_however_long_it_is() {
    let world = World::default()
        .with_file("p", "abc")
        .with_file("long", vec![7; 600]);
    let pattern = |value: &str| {
        let plan = world.plan(&format!("--name=x --buffer_pattern={value}"));
        plan.jobs[0]
            .options
            .buffer_pattern
            .clone()
            .expect("a pattern")
    };
    assert_eq!(pattern("'p'\"xy\"'p'"), b"abcxyabc");
    assert_eq!(pattern("'long'"), [7; 600]);
    assert_eq!(pattern("'long'1").len(), 601);
    let plan = world.plan("--name=x --verify=pattern --verify_pattern='p'1");
    let verified = plan.jobs[0].options.verify_pattern.as_deref();
    assert_eq!(verified, Some(b"abc\x01".as_slice()));
}
