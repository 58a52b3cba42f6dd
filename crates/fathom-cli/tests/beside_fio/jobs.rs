//! What both are given.

/// Not here: `fdatasync`, which fio 3.33 counts among short reads; `fsync` at depth, where the
/// count depends on when ops complete; `allrandrepeat`, an option of its own there, an alias since.
///
/// Each line is one run; `--name=t` is put in front where it begins with two dashes.
pub(crate) const JOBS: &[&str] = &[
    "--ioengine=null --rw=read --size=64k --bs=4k",
    "--ioengine=null --rw=randread --size=1m --bs=4k --iodepth=8",
    "--ioengine=null --rw=read --size=10k --bs=4k",
    "--ioengine=null --rw=randwrite --size=1m --io_size=16k",
    "--ioengine=null --rw=write --size=16k --io_size=64k",
    "--ioengine=null --rw=randread --size=64k --loops=3",
    "--ioengine=null --rw=randread --size=64k --numjobs=3",
    "--ioengine=null --rw=randread --size=64k --numjobs=3 --group_reporting",
    "--ioengine=null --rw=randread --size=64k --norandommap --iodepth=4",
    "--ioengine=null --rw=write --bs=,8k --size=64k",
    "--ioengine=null --rw=read --bssplit=8k/100 --size=64k",
    "--ioengine=null --rw=read --bsrange=2k-2k --size=64k",
    "--ioengine=null --rw=read --size=64ki --bs=4096",
    "--ioengine=null --rw=read --size=256kib --bs=1kib",
    "-name=u -ioengine null -rw=randread -size 64k -bs=4k",
    "--ioengine=null --readwrite=read --size=64k --blocksize=8k",
    "--ioengine=null --rw=read --size=64k --gtod_reduce=1",
    "--ioengine=null --rw=read --size=64k --disable_clat=1 --lat_percentiles=1",
    "--ioengine=null --rw=read --size=64k --clat_percentiles=1 --percentile_list=50:99:99.9",
    "--ioengine=null --rw=read --size=64k --description=words",
    "--ioengine=null --rw=read --size=64k --continue_on_error=all",
    "--ioengine=null --rw=randtrim --size=64k --bs=4k",
    "--ioengine=null --rw=rw --rwmixread=100 --size=64k --bs=4k",
    "--ioengine=null --rw=randread --size=64k --bs=4k --blockalign=8k --norandommap",
    "--ioengine=null --rw=randread --size=1m --iodepth=8 --iodepth_batch=4 --iodepth_low=4",
    "--ioengine=null --rw=randread --size=1m --iodepth=8 --iodepth_batch_complete_min=2",
    "--ioengine=null --rw=randread --size=64k --softrandommap=1 --randrepeat=0",
    "--ioengine=null --rw=randread --size=64k --random_generator=lfsr --randrepeat=1",
    "--ioengine=null --rw=randread --size=64k --random_generator=tausworthe64 --randseed=7",
    "--ioengine=null --rw=randread --size=64k --random_distribution=zipf:1.2",
    "--ioengine=null --rw=randread --size=64k --random_distribution=pareto:0.2",
    "--ioengine=null --rw=randread --size=64k --random_distribution=normal:20",
    "--ioengine=null --rw=randread --size=64k --percentage_random=50 --norandommap",
    "--ioengine=null --rw=randread --size=64k --random_distribution=zoned:60/10:40/90",
    "--ioengine=null --rw=randread --size=400k --random_distribution=zoned_abs:60/20k:40/80k",
    "--ioengine=null --rw=read --size=64k --zonemode=strided --zonesize=8k --zonerange=16k",
    "--ioengine=null --rw=read --size=64k --zonemode=strided --zonesize=8k --zonerange=16k \
     --zoneskip=4k",
    "--ioengine=null --rw=randread --size=64k --zonemode=strided --zonesize=16k --zonerange=8k",
    "--ioengine=null --rw=read --size=4z --zonemode=strided --zonesize=8k --zoneskip=1z",
    "--ioengine=null --rw=read --size=64k --io_size=4z --zonemode=strided --zonesize=8k",
    "--ioengine=null --rw=read --size=40k --nrfiles=3 --file_service_type=roundrobin:2",
    "--ioengine=null --rw=read --size=48k --nrfiles=4 --file_service_type=random:2",
    "--ioengine=null --rw=read --size=48k --nrfiles=4 --file_service_type=zipf:1.1",
    "--ioengine=null --rw=read --size=48k --nrfiles=4 --file_service_type=sequential --openfiles=2",
    "--ioengine=null --rw=write --size=64k --bs=4k,8k --bs_is_seq_rand=1",
    "--ioengine=psync --rw=write --size=64k --buffer_compress_percentage=50 \
     --buffer_compress_chunk=4k",
    "--ioengine=psync --rw=write --size=64k --dedupe_percentage=50",
    "--ioengine=psync --rw=write --size=64k --dedupe_percentage=50 --dedupe_mode=working_set",
    "--ioengine=null --rw=randread:4 --size=64k --norandommap",
    "--ioengine=null --rw=read --size=64k --rate_iops=1000",
    "--ioengine=null --rw=read --size=64k --rate=4m",
    "--ioengine=null --rw=read --size=64k --rate_iops=1000 --rate_process=poisson",
    "--ioengine=null --rw=read --size=64k --thinktime=1ms --thinktime_blocks=4",
    "--ioengine=null --rw=read --size=64k --iodepth=4 --slat_percentiles=1 --lat_percentiles=1",
    "--ioengine=null --rw=write --size=64k --refill_buffers=1 --scramble_buffers=0",
    "--ioengine=null --rw=write --size=64k --zero_buffers=1 --cpus_allowed=0 --nice=5",
    "--ioengine=null --rw=write --size=64k --buffer_pattern=0xdeadbeef --prioclass=2 --prio=4",
    "--ioengine=null --rw=read --size=64k --kb_base=1000 --unit_base=8 --thread",
    "--ioengine=psync --rw=read --size=64k --bs=4k",
    "--ioengine=psync --rw=randread --size=64k --bs=4k --direct=1 --invalidate=0",
    "--ioengine=psync --rw=write --size=64k --fallocate=posix --create_serialize=0",
    "--ioengine=psync --rw=write --size=64k --fallocate=keep --create_on_open=1",
    "--ioengine=psync --rw=write --size=64k --fallocate=truncate --create_fsync=0",
    "--ioengine=psync --rw=randread --filesize=32k --size=32k",
    "--ioengine=psync --rw=randread --size=64k --bs=4k --nrfiles=4",
    "--ioengine=psync --rw=write --size=10k --bs=1k --nrfiles=3",
    "--ioengine=psync --rw=write --size=64k --bs=4k --fsync=4",
    "--ioengine=psync --rw=write --size=64k --bs=4k --end_fsync=1 --fsync_on_close=1",
    "--ioengine=psync --rw=write --size=64k --bs=4k --fallocate=none --overwrite=1",
    "--ioengine=psync --rw=randwrite --size=64k --bs=4k --verify=crc32c",
    "--ioengine=psync --rw=write --size=64k --bs=4k --verify=md5",
    "--ioengine=psync --rw=write --size=64k --bs=4k --verify=pattern --verify_pattern=0xdeadbeef",
    "--ioengine=psync --rw=read:4k --size=64k --bs=4k",
    "--ioengine=psync --rw=write:8k --size=64k --bs=4k --loops=2",
    "--ioengine=psync --rw=read:4k --size=64k --bs=4k --offset=16k",
    "--ioengine=psync --rw=read --size=64k --bs=4k --offset=16k",
    "--ioengine=psync --rw=read --size=64k --offset_increment=64k --numjobs=2 --filename=one",
    "--ioengine=psync --rw=read --size=64k --filename=a:b",
    "--ioengine=psync --rw=write --size=64k --filename_format=$jobname.$jobnum.$filenum.x",
    "--ioengine=psync --rw=write --size=64k --unlink=1",
    "--ioengine=psync --rw=read --size=64k --create_only=1",
    "--ioengine=sync --rw=randread --size=64k --bs=4k",
    "--ioengine=vsync --rw=read --size=64k --bs=4k",
    "--ioengine=pvsync --rw=randwrite --size=64k --bs=4k",
    "--ioengine=pvsync2 --rw=randread --size=64k --bs=4k",
    "--ioengine=mmap --rw=randread --size=64k --bs=4k",
    "--ioengine=mmap --rw=write --size=64k --bs=4k --fsync=8",
    "--ioengine=libaio --rw=randread --size=64k --bs=4k --iodepth=4 --direct=1",
    "--ioengine=libaio --rw=randread --size=64k --bs=4k --iodepth=4 --userspace_reap",
    "--ioengine=io_uring --rw=randread --size=64k --bs=4k --iodepth=4",
    "--ioengine=io_uring --rw=randread --size=64k --bs=4k --iodepth=4 --fixedbufs --registerfiles",
    "--ioengine=io_uring --rw=randread --size=64k --bs=4k --iodepth=4 --nonvectored=0",
    "--ioengine=io_uring --rw=randread --size=64k --bs=4k --iodepth=4 --force_async=2",
    "--ioengine=io_uring --rw=randwrite --size=64k --bs=4k --iodepth=4",
];

/// Job files, by what they try.
pub(crate) const JOB_FILES: &[(&str, &str)] = &[
    (
        "inheritance",
        "[global]\nioengine=null\nbs=4k\nsize=64k\n[a]\nrw=read\n[b]\nrw=write\nbs=8k\n",
    ),
    (
        "comments",
        "; one\n# two\n[a]\nioengine=null ; not a comment? no: one\nrw=read\nsize=64k\n",
    ),
    (
        "stonewall",
        "[global]\nioengine=null\nsize=64k\n[a]\n[b]\nstonewall\nnumjobs=2\n",
    ),
    ("include", "[global]\ninclude more.fio\n[a]\nrw=randread\n"),
    (
        "keywords",
        "[a]\nioengine=psync\nrw=write\nsize=$pagesize\nfilename=x.$jobnum\n",
    ),
    (
        "later globals",
        "[global]\nioengine=null\nsize=64k\n[a]\nrw=read\n[global]\nsize=32k\n[b]\nrw=read\n",
    ),
    (
        "groups",
        "[global]\nioengine=null\nsize=8k\ngroup_reporting\nnumjobs=2\n[a]\n[b]\nnew_group\n",
    ),
];

/// Included by one of the job files.
pub(crate) const MORE: &str = "ioengine=null\nsize=64k\nbs=4k\n";

/// What both refuse.
pub(crate) const REFUSED: &[&str] = &[
    "--ioengine=null --size=64k --rw=nonsense",
    "--ioengine=nonsense --size=64k",
    "--ioengine=null --size=64k --nonsense=1",
    "--ioengine=null --size=64k --iodepth=many",
    "--ioengine=null --size=64k --iodepth=0",
    "--ioengine=psync --rw=read",
    "--ioengine=null --rw=read --size=64k --zonesize=8k",
    "--ioengine=null --rw=read --size=64k --zonemode=strided",
    "--ioengine=null --rw=randread --size=64k --random_distribution=zoned:50/50",
    "--ioengine=psync --rw=write --size=64k --readonly",
    "missing.fio",
];

/// What fio takes for sense, and measures something else than was meant.
pub(crate) const NONSENSE: &[&str] = &[
    "--ioengine=null --size=64k --bs=4q",
    "--ioengine=null --size=64k --direct=0--invalidate=0",
    "--ioengine=null --size=64k --rw=rw --rwmixread=30 --rwmixwrite=30",
];
