//! Command lines of tools that call fio, taken from their sources, and the output they look for.

use crate::common::Folder;

const NULL: &str = "--ioengine=null --size=64k";

#[test]
fn blktests_probes_before_it_runs() {
    let folder = Folder::new();
    folder.fio("--parse-only --terse-version=4").expect(0);
    let help = folder.fio("--cmdhelp=zonemode").expect(0);
    assert!(help.out.contains("zbd"), "{}", help.out);
    // cut -c 5- | sed 's/-.*//'
    let version = folder.fio("--version").expect(0).out;
    let number = version.trim()[4..].split('-').next().unwrap().to_owned();
    let (major, minor) = number.split_once('.').unwrap();
    assert!(major.parse::<u32>().unwrap() == 3 && minor.parse::<u32>().unwrap() >= 38);
    let words = format!(
        "{NULL} --bs=4k --rw=randread --norandommap --name=reads --output=out \
         --output-format=terse --terse-version=4 --group_reporting=1"
    );
    folder.fio(&words).expect(0);
    let report = std::fs::read_to_string(folder.path().join("out")).unwrap();
    assert_eq!(report.lines().count(), 1, "{report}");
}

#[test]
fn xfstests_asks_for_engines_and_tries_a_job() {
    let folder = Folder::new();
    let engines = folder.fio("--enghelp").expect(0).out;
    for name in ["libaio", "psync", "mmap", "io_uring"] {
        assert!(
            engines.split_whitespace().any(|word| word == name),
            "{engines}"
        );
    }
    folder.write("job.fio", "[t]\nioengine=null\nsize=64k\nrw=randwrite\n");
    folder.fio("--warnings-fatal --showcmd job.fio").expect(0);
    folder
        .fio("--alloc-size=16384 --output=out job.fio")
        .expect(0);
    folder
        .fio(&format!("--name=t {NULL} --ignore_error=,EIO"))
        .expect(0);
}

#[test]
fn kdiskmark_reads_all_of_standard_output() {
    let folder = Folder::new();
    let words = "--output-format=json --create_only=1 --filename=data --size=1m --zero_buffers=0 \
                 --name=prepare";
    assert_eq!(folder.fio(words).expect(0).json()["jobs"][0]["error"], 0);
    let words = "--output-format=json --ioengine=libaio --randrepeat=0 --refill_buffers=1 \
                 --end_fsync=1 --direct=0 --rwmixread=70 --size=1m --bs=4k --runtime=5 --rw=randrw \
                 --iodepth=1 --numjobs=1 --filename=data --name=mix --group_reporting";
    let job = &folder.fio(words).expect(0).json()["jobs"][0];
    for direction in ["read", "write"] {
        assert!(
            job[direction]["bw"].is_u64() && job[direction]["iops"].is_f64(),
            "{job}"
        );
        assert!(job[direction]["clat_ns"]["mean"].is_f64(), "{job}");
    }
}

#[test]
fn lisa_abbreviates() {
    let folder = Folder::new();
    let words = "--ioengine=null --filename=data --readwrite=randread --iodepth=4 --name=lisa \
                 --runtime=5 --bs=4k --numjob=2 --direct=1 --gtod_reduce=1 --size=64k \
                 --group_reporting";
    let text = folder.fio(words).expect(0).out;
    assert!(text.contains("IOPS="), "{text}");
}

#[test]
fn single_dashes_and_blanks_are_taken() {
    let folder = Folder::new();
    let words = "-name t -rw=read -ioengine null -size 5M -bs 4096B -runtime 60 -numjobs=1";
    assert!(folder.fio(words).expect(0).out.contains("READ: bw="));
}

#[test]
fn yabs_greps_the_line_of_its_job() {
    let folder = Folder::new();
    let words = "--name=rand_rw_4k --ioengine=null --rw=randrw --rwmixread=50 --bs=4k --iodepth=64 \
                 --numjobs=2 --size=2m --runtime=30 --gtod_reduce=1 --direct=1 --filename=data \
                 --group_reporting --minimal";
    let text = folder.fio(words).expect(0).out;
    let line = text
        .lines()
        .find(|line| line.contains("rand_rw_4k"))
        .unwrap();
    let fields: Vec<&str> = line.split(';').collect();
    for number in [7, 8, 48, 49] {
        assert!(
            fields[number - 1].parse::<u64>().unwrap() > 0,
            "{number}: {line}"
        );
    }
}

#[test]
fn the_exporter_streams_layout_5() {
    let folder = Folder::new();
    let words = "--name=t --ioengine=null --rw=read --size=1g --rate_iops=500 --runtime=2 \
                 --time_based --output-format=terse --terse-version=5 --lat_percentiles=1 \
                 --clat_percentiles=0 --status-interval=1 --group_reporting";
    let text = folder.fio(words).expect(0).out;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("5;fio-"))
        .collect();
    assert!(
        lines.len() >= 2,
        "one while it runs, one at the end: {text}"
    );
    for line in lines {
        let fields: Vec<&str> = line.split(';').collect();
        let (percent, _) = fields[27].split_once('=').unwrap();
        assert!(percent.ends_with('%'), "{line}");
    }
}

#[test]
fn pbench_knows_logs_by_name_and_row() {
    let folder = Folder::new();
    let words = "--name=t --ioengine=null --rw=read --size=64k --write_iops_log=fio \
                 --write_lat_log=fio --log_unix_epoch=1 --clocksource=gettimeofday --max-jobs=4 \
                 --output-format=json";
    folder.fio(words).expect(0);
    for kind in ["iops", "lat", "slat", "clat"] {
        let log = std::fs::read_to_string(folder.path().join(format!("fio_{kind}.1.log")));
        for line in log.unwrap().lines() {
            // (\d+),\s+(\d+),\s+(\d+),\s+(\d+)
            let numbers: Vec<_> = line.split(", ").take(4).map(str::parse::<u64>).collect();
            assert!(
                numbers.len() == 4 && numbers.iter().all(Result::is_ok),
                "{line}"
            );
        }
    }
}

#[test]
fn fiovisualizer_splits_a_command_line() {
    let folder = Folder::new();
    folder.write(
        "job.fio",
        "[t]\nioengine=null\nsize=64k\ndescription=two words\n",
    );
    let line = folder.fio("--showcmd job.fio").expect(0).out;
    let parts: Vec<&str> = line.trim().split(" --").collect();
    let own = [
        "name=t",
        "ioengine=null",
        "size=64k",
        "description=\"two words\"",
    ];
    assert_eq!(parts, [&["fio"], &own[..]].concat());
}
