//! Mismatches as a user sees them: texts, counts, exit codes, saved blocks.

use crate::common::{Folder, Run};
use serde_json::Value;

/// Writes a verified file, and damages bytes of it.
fn damaged(words: &str, places: &[usize]) -> Folder {
    let folder = Folder::new();
    folder
        .fathom(&format!("run {JOB} --rw=write {words}"))
        .expect(0);
    let path = folder.path().join("data");
    let mut data = std::fs::read(&path).unwrap();
    places.iter().for_each(|&place| data[place] ^= 1);
    std::fs::write(&path, data).unwrap();
    folder
}

fn read(folder: &Folder, words: &str) -> Run {
    let read = format!("run {JOB} --rw=read --output-format=json {words}");
    folder.fathom(&read).expect(1)
}

fn job(run: &Run) -> Value {
    run.json()["jobs"][0].clone()
}

#[test]
fn a_mismatch_names_file_place_and_write() {
    let folder = damaged("", &[8192 + 100]);
    let run = read(&folder, "");
    let job = job(&run);
    let text = job["fathom"]["error_text"].as_str().unwrap();
    for part in [
        "verify: ",
        "data",
        "8192",
        "crc32c: verify failed (expected ",
        "write 2 of job 1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // That of the block, and that in its header.
    assert_eq!(text.matches("offset 8192").count(), 2, "{text}");
    // The text of EILSEQ is about characters.
    assert!(!text.contains("os error"), "{text}");
    assert_eq!(job["error"], 84);
    assert_eq!(job["fathom"]["verify"]["mismatches"], 1);
}

/// Clocks by which an op may be issued before it starts.
#[test]
fn with_a_coarse_clock_all_writes_are_read_back() {
    for clock in ["--gtod_cpu=0", "--clocksource=gettimeofday"] {
        let folder = Folder::new();
        let run = folder.fathom(&format!(
            "run --name=t --rw=write --bs=512 --size=4m --ioengine=posixaio --iodepth=8 \
             --verify=crc32c --output-format=json {clock}"
        ));
        let run = run.expect(0).json();
        let job = &run["jobs"][0];
        assert_eq!(job["write"]["total_ios"], 8192, "{clock}");
        assert_eq!(job["read"]["total_ios"], 8192, "{clock}");
        assert_eq!(job["fathom"]["verify"]["compared"], 8192, "{clock}");
    }
}

#[test]
fn tolerated_mismatches_are_all_told() {
    let places: Vec<usize> = (0..16).map(|block| block * 4096 + 200).collect();
    let folder = damaged("", &places);
    let run = read(&folder, "--continue_on_error=verify");
    let job = job(&run);
    assert_eq!(
        (&job["total_err"], &job["first_error"]),
        (&16.into(), &84.into())
    );
    let verify = &job["fathom"]["verify"];
    assert_eq!(verify["mismatches"], 16);
    assert_eq!(verify["first"].as_array().unwrap().len(), 16);
    assert_eq!(
        run.err.matches("crc32c: verify failed").count(),
        16,
        "{run:#?}"
    );
}

#[test]
fn a_fatal_mismatch_is_the_last() {
    let folder = damaged("", &[100, 8292, 20_580]);
    let run = read(&folder, "--continue_on_error=verify --verify_fatal=1");
    let job = job(&run);
    assert_eq!((&job["error"], &job["total_err"]), (&84.into(), &1.into()));
    assert_eq!(job["read"]["total_ios"], 1);
}

#[test]
fn blocks_are_saved_as_fio_names_them() {
    // The payload of block 1, and the header of block 3.
    let folder = damaged("", &[4096 + 100, 3 * 4096 + 20]);
    read(&folder, "--continue_on_error=verify --verify_dump=1");
    let file = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let names: Vec<_> = folder.names();
    let dumped: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("data."))
        .collect();
    assert_eq!(
        dumped,
        [
            "data.12288.hdr_fail",
            "data.4096.expected",
            "data.4096.received"
        ]
    );
    let data = file("data");
    assert_eq!(file("data.4096.received"), data[4096..8192]);
    assert_eq!(file("data.12288.hdr_fail"), data[3 * 4096..4 * 4096]);
    let mut expected = data[4096..8192].to_vec();
    expected[100] ^= 1;
    assert_eq!(file("data.4096.expected"), expected);
}

#[test]
fn saved_blocks_of_files_of_one_name_are_kept_apart() {
    let folder = Folder::new();
    for (name, byte) in [("a", 1), ("b", 2)] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        folder.write(&format!("{name}/data"), vec![byte; 4096]);
    }
    let words = "run --rw=read --verify=crc32c --verify_dump=1 --size=4k --bs=4k \
                 --name=x --filename=a/data --name=y --filename=b/data";
    folder.fathom(words).expect(1);
    let saved = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(saved("a_data.0.hdr_fail"), [1; 4096]);
    assert_eq!(saved("b_data.0.hdr_fail"), [2; 4096]);
}

#[test]
fn expected_blocks_are_generated_again() {
    for words in [
        "--verify_pattern=0x0102%o --verify_interval=512",
        "--verify=pattern --verify_pattern=0xdeadbeef99",
        "--verify=sha256 --verify_offset=700",
        "--verify=crc64 --verify_interval=1024 --verify_header=fio-3.33",
    ] {
        let place = 5 * 4096 + 300;
        let folder = damaged(words, &[place]);
        read(&folder, &format!("{words} --verify_dump=1"));
        let names = folder.names();
        let name = names.iter().find(|name| name.ends_with(".expected"));
        let name = name.unwrap_or_else(|| panic!("{words}: {names:?}"));
        let from: usize = name.split('.').nth(1).unwrap().parse().unwrap();
        let expected = std::fs::read(folder.path().join(name)).unwrap();
        let mut written = std::fs::read(folder.path().join("data")).unwrap();
        written[place] ^= 1;
        assert_eq!(expected, written[from..from + expected.len()], "{words}");
    }
}

/// Reads from the page cache complete as they are submitted: none waits for the queue to be full.
#[test]
fn blocks_are_checked_as_soon_as_they_are_read() {
    let folder = damaged("", &[]);
    let words = "--ioengine=io_uring --iodepth=16 --invalidate=0 --output-format=json";
    let run = folder.fathom(&format!("run {JOB} --rw=read {words}"));
    if let Some(why) = run.refused() {
        println!("skipped: {why}");
        return;
    }
    let levels = &job(&run.expect(0))["iodepth_level"];
    assert_eq!(levels["16"], 0.0, "{levels:#}");
}

#[test]
fn threads_find_what_the_job_finds() {
    let places: Vec<usize> = (0..16).map(|block| block * 4096 + 200).collect();
    let folder = damaged("", &places);
    let alone = read(&folder, "--continue_on_error=verify");
    let words = "--verify_async=3 --verify_async_cpus=0";
    let found = read(&folder, &format!("--continue_on_error=verify {words}"));
    let mismatches = |run: &Run| {
        let verify = job(run)["fathom"]["verify"].clone();
        let mut texts = verify["first"].as_array().unwrap().clone();
        texts.sort_by_key(Value::to_string);
        (verify["mismatches"].clone(), texts)
    };
    assert_eq!(mismatches(&alone), mismatches(&found));
    assert_eq!(job(&read(&folder, words))["error"], 84);
    let whole = "--rw=randwrite --iodepth=8 --ioengine=posixaio --verify_async=2 --loops=3";
    folder.fathom(&format!("run {JOB} {whole}")).expect(0);
}

const JOB: &str = "--name=t --bs=4k --size=64k --filename=data --verify=crc32c";
