//! Real files through every engine, from the command line to the JSON.

use crate::common::Folder;
use fathom_checksum::CHECKSUMS;
use serde_json::Value;

const FILE_ENGINES: [&str; 10] = [
    "psync", "sync", "vsync", "pvsync", "pvsync2", "splice", "mmap", "posixaio", "libaio",
    "io_uring",
];

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn every_block_is_read_once() {
    for engine in FILE_ENGINES {
        let folder = Folder::new();
        let words = format!(
            "run --name=t --rw=randread --bs=4k --size=1m --iodepth=4 --ioengine={engine} \
             --output-format=json"
        );
        let run = folder.fathom(&words);
        if let Some(why) = run.refused() {
            println!("skipped: {engine}: {why}");
            continue;
        }
        let run = run.expect(0);
        let job = &run.json()["jobs"][0];
        assert_eq!(number(&job["read"]["total_ios"]), 256, "{engine}");
        assert_eq!(number(&job["read"]["io_bytes"]), 1 << 20, "{engine}");
        assert_eq!(number(&job["write"]["total_ios"]), 0, "{engine}");
        assert_eq!(number(&job["error"]), 0, "{engine}");
        assert_eq!(folder.names(), ["t.0.0"], "{engine}");
        let length = std::fs::metadata(folder.path().join("t.0.0"))
            .unwrap()
            .len();
        assert_eq!(length, 1 << 20, "{engine}");
    }
}

#[test]
fn written_data_are_in_the_file() {
    for engine in FILE_ENGINES {
        let folder = Folder::new();
        let words = format!(
            "run --name=t --rw=write --bs=8k --size=256k --filename=data --iodepth=4 \
             --buffer_pattern=0xab --ioengine={engine} --output-format=json"
        );
        let run = folder.fathom(&words);
        if let Some(why) = run.refused() {
            println!("skipped: {engine}: {why}");
            continue;
        }
        assert_eq!(
            number(&run.expect(0).json()["jobs"][0]["write"]["total_ios"]),
            32,
            "{engine}"
        );
        let data = std::fs::read(folder.path().join("data")).unwrap();
        assert_eq!(data, vec![0xab; 256 << 10], "{engine}");
    }
}

#[test]
fn written_data_verify() {
    for engine in ["psync", "libaio", "io_uring"] {
        for verify in verify_methods() {
            let folder = Folder::new();
            let words = format!(
                "run --name=t --rw=randwrite --bs=4k --size=128k --iodepth=8 --verify={verify} \
                 --ioengine={engine} --output-format=json"
            );
            let run = folder.fathom(&words);
            if let Some(why) = run.refused() {
                println!("skipped: {engine}: {why}");
                continue;
            }
            let json = run.expect(0).json();
            let job = &json["jobs"][0];
            assert_eq!(number(&job["write"]["total_ios"]), 32, "{engine} {verify}");
            assert_eq!(number(&job["read"]["total_ios"]), 32, "{engine} {verify}");
        }
    }
}

/// Values of `verify=`.
fn verify_methods() -> impl Iterator<Item = &'static str> {
    let checksums = CHECKSUMS.iter().map(|row| row.name);
    checksums.chain(["pattern --verify_pattern=0xdeadbeef"])
}

#[test]
fn damage_is_found() {
    let folder = Folder::new();
    let job = "--name=t --bs=4k --size=64k --filename=data --verify=crc32c";
    folder.fathom(&format!("run {job} --rw=write")).expect(0);
    let path = folder.path().join("data");
    let mut data = std::fs::read(&path).unwrap();
    data[5 * 4096 + 100] ^= 1;
    std::fs::write(&path, data).unwrap();
    let run = folder.fathom(&format!("run {job} --rw=read")).expect(1);
    assert!(run.err.contains("verify"), "{run:#?}");
    assert!(run.err.contains("20480"), "the offset is told: {run:#?}");
}

#[test]
fn direct_io_is_in_force() {
    for engine in ["psync", "libaio", "io_uring"] {
        let folder = Folder::new();
        let words = format!(
            "run --name=t --rw=randread --bs=4k --size=4m --direct=1 --iodepth=8 \
             --ioengine={engine} --output-format=json"
        );
        let run = folder.fathom(&words);
        if let Some(why) = run.refused() {
            println!("skipped: {engine}: {why}");
            continue;
        }
        if run.err.contains("Invalid argument") {
            println!("skipped: {engine}: no direct I/O on this file system");
            continue;
        }
        let json = run.expect(0).json();
        let validity = json["fathom"]["validity"].as_array().unwrap();
        let find = |name: &str| validity.iter().find(|check| check["check"] == name);
        if find("storage").is_some() {
            println!("skipped: files lie in memory here");
            return;
        }
        let direct = find("direct_io").unwrap();
        assert_eq!(direct["ok"], true, "{engine}: {direct}");
    }
}

#[test]
fn reads_of_holes_are_reported() {
    let folder = Folder::new();
    let data = std::fs::File::create(folder.path().join("data")).unwrap();
    data.set_len(1 << 20).unwrap();
    let words = "run --name=t --rw=randread --size=1m --filename=data --output-format=normal,json";
    let run = folder.fathom(words).expect(0);
    if !run.out.contains("never_written_percent\": 100") {
        println!("skipped: this file system does not report holes");
        return;
    }
    assert!(
        run.out
            .contains("note: t: 100 % of the bytes that the job reads"),
        "{run:#?}"
    );
}
