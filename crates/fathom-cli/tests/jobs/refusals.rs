//! Bad input is refused with a message and exit code 2, and nothing is created.

use crate::common::{self, Folder};

/// Command lines, and what the message must contain.
const LINES: &[(&str, &[&str])] = &[
    ("run", &["no job"]),
    ("run --name=t --rw=randread", &["size="]),
    ("run --name=t --bs=4q --size=1m", &["4q"]),
    (
        "run --name=t --ioengine=psnyc --size=1m",
        &["psnyc", "psync"],
    ),
    (
        "run --name=t --no_such_option=1 --size=1m",
        &["no_such_option"],
    ),
    (
        "run --name=t --bs=8k --size=4k --rw=read",
        &["8192", "4096"],
    ),
    ("run --name=t --size=99999999999999999999999g", &["size"]),
    ("run --name=t --size=-1", &["-1"]),
    (
        "run --name=t --filename=/dev/no_such_disk --size=1m --rw=read",
        &["/dev/no_such_disk"],
    ),
    (
        "run --name=t --filename=. --size=1m --rw=read",
        &["directory"],
    ),
    (
        "run --name=t --directory=missing --size=1m --rw=read",
        &["missing"],
    ),
    (
        "run --name=t --rw=read --size=64k --readonly",
        &["read-only", "hint: create the file first"],
    ),
    (
        "run --name=t --rw=read --size=64k --readonly --create_serialize=0",
        &["read-only"],
    ),
    (
        "run --name=t --rw=write --size=1m --readonly",
        &["--readonly"],
    ),
    (
        "run --name=t --rw=read --size=1m --cpus_allowed=8000",
        &["8000"],
    ),
    (
        "run --name=t --rw=randread --size=1m --rate=1m --rate_iops=5",
        &["rate"],
    ),
    (
        "run --name=t --rw=read --size=1m --allow_file_create=0",
        &["allow_file_create"],
    ),
    ("run --name=t --rw=read --size=50%", &["percent"]),
    (
        "run --name=t --rw=write --size=1m --verify=pattern",
        &["verify_pattern"],
    ),
    ("run missing.fio", &["missing.fio"]),
    (
        "run --name=t --size=4g --bs=1g --iodepth=65536 --ioengine=libaio",
        &["memory"],
    ),
    ("rum", &["rum"]),
    ("--name=t --size=1m", &["run"]),
];

#[test]
fn command_lines() {
    for (words, wanted) in LINES {
        let folder = Folder::new();
        let run = folder.fathom(words).expect(2);
        for text in *wanted {
            assert!(run.err.contains(text), "{words}: no `{text}` in {run:#?}");
        }
        assert_eq!(run.out, "", "{words}");
        assert!(
            folder.names().is_empty(),
            "{words} left {:?}",
            folder.names()
        );
    }
}

/// Job files, and what the message must contain besides the file's name.
const FILES: &[(&[u8], &[&str])] = &[
    (b"", &["no sections"]),
    (b"\x7fELF\x02\x01\x01\0\0\0\xff\xfe", &[]),
    (b"[t\nsize=1m\n", &["1"]),
    (b"[t]\nsize=\n", &["size", "2"]),
    (b"size=1m\n[t]\n", &["1"]),
    (b"[t]\nsize=1m\nbs=9z\nrw=sideways\n", &["9z", "sideways"]),
    (
        b"[t]\nsize=1m\ninclude missing.inc\n",
        &["missing.inc", "3"],
    ),
    (b"[t]\nsize=1m\ninclude bad.fio\n", &["bad.fio"]),
    (
        b"[t]\nsize=1m\nrw=randrw\nrwmixread=70\nrwmixwrite=70\n",
        &["rwmix"],
    ),
];

#[test]
fn job_files() {
    for (text, wanted) in FILES {
        let folder = Folder::new();
        folder.write("bad.fio", text);
        let run = folder.fathom("run bad.fio").expect(2);
        let shown = String::from_utf8_lossy(text);
        for text in *wanted {
            assert!(run.err.contains(text), "{shown}: no `{text}` in {run:#?}");
        }
        assert_eq!(run.out, "", "{shown}");
        assert_eq!(folder.names(), ["bad.fio"], "{shown}");
    }
}

#[test]
fn all_jobs_are_judged_at_once_and_nothing_is_laid_out() {
    let folder = Folder::new();
    let text =
        "[good]\nrw=read\nsize=1m\n[bad]\nrw=read\n[worse]\nrw=read\nsize=1m\ndirectory=gone\n";
    folder.write("some.fio", text);
    let run = folder.fathom("run some.fio").expect(2);
    for wanted in ["bad", "size=", "worse", "gone"] {
        assert!(run.err.contains(wanted), "no `{wanted}` in {run:#?}");
    }
    assert_eq!(folder.names(), ["some.fio"]);
}

#[test]
fn errors_of_parser_and_preflight_are_reported_together() {
    let folder = Folder::new();
    let text = "[a]\nbs=k\nsize=1m\nfilename=/dev/no_such_disk\n\
                [b]\nsize=1m\ndirectory=gone\n[c]\nfilename=of_an_earlier_job\n\
                [d]\nsize=4k\nfilename=/dev/no_such_disk\n";
    folder.write("j.fio", text);
    let told = |run: &common::Run| -> Vec<String> {
        let lines = run.err.lines().filter(|line| line.contains(": j.fio:"));
        let places = lines.map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": "));
        places.collect()
    };
    let run = folder.fathom("run j.fio").expect(2);
    let want = [
        "fathom: j.fio:2:4",
        "fathom: j.fio:7:11",
        "fathom: j.fio:12:10",
    ];
    assert_eq!(told(&run), want, "{run:#?}");
    assert_eq!(folder.names(), ["j.fio"]);
    let run = folder.fio("j.fio").expect(1);
    assert_eq!(told(&run), want.map(|line| line.replace("fathom", "fio")));
    // The parser has said it already.
    let run = folder
        .fathom("run --readonly --name=t --rw=write --size=1m")
        .expect(2);
    assert_eq!(run.err.matches("--readonly").count(), 3, "{run:#?}");
}

#[test]
fn a_report_does_not_replace_its_job_file() {
    let folder = Folder::new();
    let text = "[t]\nioengine=null\nsize=4k\n";
    folder.write("j.fio", text);
    for (run, code) in [
        (folder.fathom("run --output=./j.fio j.fio"), 2),
        (folder.fio("--output j.fio j.fio --name=u --bs=4q"), 1),
    ] {
        let run = run.expect(code);
        assert!(run.err.contains("would replace the job file"), "{run:#?}");
        let left = std::fs::read_to_string(folder.path().join("j.fio")).unwrap();
        assert_eq!(left, text);
    }
}

#[test]
fn endless_files_are_refused_as_job_files() {
    let run = Folder::new().fathom("run /dev/zero").expect(2);
    assert!(run.err.contains("not a text file"), "{run:#?}");
}

#[test]
fn a_directory_that_cannot_be_written() {
    let folder = Folder::new();
    // Even root cannot make files there.
    let run = folder
        .fathom("run --name=t --rw=read --size=1m --directory=/proc/self")
        .expect(2);
    assert!(run.err.contains("/proc/self"), "{run:#?}");
}

#[test]
fn a_disk_without_room() {
    let folder = Folder::new();
    let run = folder
        .fathom("run --name=t --rw=read --size=900t")
        .expect(2);
    assert!(run.err.contains("not enough space"), "{run:#?}");
    assert!(folder.names().is_empty());
}

#[test]
fn an_engine_that_the_kernel_refuses() {
    let folder = Folder::new();
    // The kernel's limit is 32768 entries.
    let words = "run --name=t --ioengine=io_uring --rw=read --bs=512 --size=1m --iodepth=65536";
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains("io_uring"), "{run:#?}");
    assert!(folder.names().is_empty());
}

#[test]
fn readonly_refuses_before_anything_is_touched() {
    let folder = Folder::new();
    let data = folder.write("data", "do not touch");
    for rw in ["write", "randtrim", "randrw"] {
        let words = format!("run --readonly --name=t --rw={rw} --size=1m --filename=data");
        folder.fathom(&words).expect(2);
        assert_eq!(std::fs::read_to_string(&data).unwrap(), "do not touch");
    }
}

#[test]
fn preflight_errors_have_their_position() {
    let folder = Folder::new();
    let text = "[t]\nrw=randwrite\nsize=1m\nfilename=/dev/no_such_disk\n\
                [u]\nsize=1m\ndirectory=gone\n";
    folder.write("two.fio", text);
    let run = folder.fathom("run two.fio").expect(2);
    for wanted in [
        "fathom: two.fio:4:10: job `t`: ",
        "4 | filename=/dev/no_such_disk",
        "fathom: two.fio:7:11: job `u`: ",
        "7 | directory=gone",
        "\nhint: ",
    ] {
        assert!(run.err.contains(wanted), "no `{wanted}` in {run:#?}");
    }
}

#[test]
fn a_long_line_keeps_its_columns() {
    let folder = Folder::new();
    let long = "x".repeat(200);
    let run = folder
        .fathom(&format!("run --name={long} --size=1m --bs=4q"))
        .expect(2);
    let first = "fathom: command line, argument 3: ";
    assert!(run.err.starts_with(first), "{run:#?}");
    assert!(run.err.contains("--bs=4q"), "{run:#?}");
}

#[test]
fn system_limits_are_checked_before_files_are_created() {
    let folder = Folder::new();
    let limit = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap();
    if limit.trim().parse::<u64>().unwrap() >= 4 * 65536 {
        println!("skipped: fs.aio-max-nr is too large to be used up");
        return;
    }
    let words = "run --name=t --ioengine=libaio --iodepth=65536 --numjobs=4 --bs=512 --size=64k";
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains("aio-max-nr"), "{run:#?}");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}
