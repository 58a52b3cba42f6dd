//! The device time of reads of a file, traced on this machine as root.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fathom_core::Direction;
use fathom_sys::files::{Advice, advise};
use fathom_trace::{DiskMap, Joined, trace_spans};

#[test]
fn each_read_of_a_file_is_joined_with_its_request() {
    let scratch = Scratch::new();
    let map = match DiskMap::of(&scratch.0) {
        Ok(map) => map,
        Err(error) => return println!("skipped: {error}"),
    };
    let trace = match trace_spans(std::slice::from_ref(&map), &[], 1) {
        Ok(trace) => trace,
        Err(error) => return println!("skipped: {error}"),
    };
    let offsets: Vec<u64> = (0..BLOCKS)
        .map(|index| index * 7 % BLOCKS * BLOCK)
        .collect();
    let file = File::open(&scratch.0).unwrap();
    advise(&file, Advice::DontNeed, 0, 0).unwrap();
    advise(&file, Advice::Random, 0, 0).unwrap();
    let mut block = vec![0; 4096];
    for &offset in &offsets {
        file.read_exact_at(&mut block, offset).unwrap();
    }
    // From the page cache.
    file.read_exact_at(&mut block, 0).unwrap();
    let traced = trace.finish().unwrap();
    let spans = traced.of(&map).unwrap();
    if spans.is_empty() {
        return println!("skipped: the file was not read from its disk");
    }
    let mut joined = 0;
    for &offset in &offsets {
        let sectors = map.sectors(offset, BLOCK).unwrap();
        if let Joined::Device(time) = spans.join(Direction::Read, &sectors, 0..u64::MAX) {
            assert!(time.completed_ns > time.issued_ns);
            joined += 1;
        }
    }
    // A busy machine may lose events, which the trace says.
    assert!(
        joined == offsets.len() || traced.lost_events > 0,
        "{joined}"
    );
    let write = map.sectors(0, BLOCK).unwrap();
    assert_eq!(
        spans.join(Direction::Trim, &write, 0..u64::MAX),
        Joined::Absent
    );
}

/// A file of blocks on a disk, if the target directory is on one.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let name = format!("fathom-spans-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, vec![7; 64 * 4096]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

const BLOCKS: u64 = 64;
const BLOCK: u64 = 4096;
