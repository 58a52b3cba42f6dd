//! Values of options on the I/O pattern.

use crate::world::{World, check, note, refuse};
use fathom_core::{Direction, PerDirection};
use fathom_job::{
    AccessZone, BlockSize, FileService, Options, RandomDistribution, RandomGenerator, ReadWrite,
    Size, ZoneLength,
};

fn fixed(sizes: &PerDirection<BlockSize>) -> [u64; 3] {
    Direction::ALL.map(|direction| match sizes[direction] {
        BlockSize::Fixed(bytes) => bytes,
        _ => 0,
    })
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
    check("--size=0", |o| o.size.is_none());
    check("--size=1g --io_size=0", |o| o.io_size.is_none());
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
    refuse("--size=10k --nrfiles=3 --rw=randread", "bs-too-large");
    // Where the files are longer than that, one sequential op fits: seen when they are looked at.
    check("--size=10k --nrfiles=3", |o| o.nrfiles == 3);
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
    refuse("--zrwa=1", "bad-zones");
    refuse(&format!("{strided} --zrwa=1"), "bad-zones");
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
