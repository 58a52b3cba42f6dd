use std::collections::HashMap;

use super::*;

/// Appends a read as `linux/blktrace_api.h` lays it out.
fn record(log: &mut Vec<u8>, time: u64, sector: u64, pdu: &[u8]) {
    for word in [0x6561_7407_u32, 1] {
        log.extend(word.to_le_bytes());
    }
    log.extend(time.to_le_bytes());
    log.extend(sector.to_le_bytes());
    for word in [4096_u32, 0x11_0001, 42, 8 << 20, 0] {
        log.extend(word.to_le_bytes());
    }
    log.extend([0, 0]);
    log.extend(u16::try_from(pdu.len()).expect("short").to_le_bytes());
    log.extend(pdu);
}

fn trace(times: &[u64], sector: u64) -> Vec<u8> {
    let mut log = Vec::new();
    for (index, &time) in (0..).zip(times) {
        record(
            &mut log,
            time,
            sector + index,
            &vec![7; (index % 3) as usize],
        );
    }
    log
}

fn plan(scalars: &[f64], iterations: &[u32]) -> MergePlan {
    let options = ReplayOptions {
        merge_to: Some("merged".into()),
        logs: vec!["a".into(), "b".into()],
        merge_scalars: scalars.to_vec(),
        merge_iterations: iterations.to_vec(),
        ..ReplayOptions::default()
    };
    MergePlan::of(&options).expect("valid").expect("a merge")
}

/// Merges traces `a` and `b` in pieces of any size; returns the bytes and the notes.
fn merge(plan: &MergePlan, a: &[u8], b: &[u8]) -> io::Result<(Vec<u8>, Vec<MergeNote>)> {
    let files = HashMap::from([("a", a.to_vec()), ("b", b.to_vec())]);
    let open = |path: &str| Ok(io::Cursor::new(files[path].clone()));
    let mut whole = Vec::new();
    let mut merged = MergedTrace::open(plan, open)?;
    merged.read_to_end(&mut whole)?;
    let mut pieces = MergedTrace::open(plan, open)?;
    let (mut all, mut piece) = (Vec::<u8>::new(), [0; 7]);
    loop {
        let count = pieces.read(&mut piece)?;
        if count == 0 {
            break;
        }
        all.extend(&piece[..count]);
    }
    assert_eq!(all, whole);
    Ok((whole, merged.notes()))
}

/// Returns the time and sector of each record of a merged trace, in order.
fn records(mut bytes: &[u8]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut sequence = 1_u32;
    while let Some((fixed, rest)) = bytes.split_first_chunk::<{ MergedRecord::BYTES }>() {
        let word = |at: usize| u64::from_le_bytes(fixed[at..at + 8].try_into().expect("8"));
        assert_eq!(fixed[4..8], sequence.to_le_bytes());
        sequence += 1;
        found.push((word(8), word(16)));
        let pdu = usize::from(u16::from_le_bytes([fixed[46], fixed[47]]));
        assert!(rest[..pdu].iter().all(|&byte| byte == 7));
        bytes = &rest[pdu..];
    }
    assert_eq!(bytes, [0; 0]);
    found
}

#[test]
fn traces_are_merged_by_time_from_their_starts() {
    let (a, b) = (trace(&[5, 15, 30], 0), trace(&[1_000, 1_010, 1_011], 100));
    let (merged, notes) = merge(&plan(&[], &[]), &a, &b).expect("a merge");
    let want = [(0, 0), (0, 100), (10, 1), (10, 101), (11, 102), (25, 2)];
    assert_eq!((records(&merged).as_slice(), notes), (&want[..], vec![]));
    let (merged, _) = merge(&plan(&[50.0, 100.0], &[]), &a, &b).expect("a merge");
    let want = [(0, 0), (0, 100), (5, 1), (10, 101), (11, 102), (12, 2)];
    assert_eq!(records(&merged), want);
}

#[test]
fn a_repeated_trace_follows_itself() {
    let (a, b) = (trace(&[5, 15], 0), trace(&[7, 27], 100));
    let (merged, _) = merge(&plan(&[100.0, 100.0], &[3, 1]), &a, &b).expect("a merge");
    let want = [
        (0, 0),
        (0, 100),
        (10, 1),
        (10, 0),
        (20, 1),
        (20, 0),
        (20, 101),
        (30, 1),
    ];
    assert_eq!(records(&merged), want);
}

#[test]
fn oddities_are_noted_and_what_is_no_trace_is_an_error() {
    let (a, mut b) = (trace(&[5, 3], 0), trace(&[7, 9], 100));
    b.truncate(60);
    let (merged, notes) = merge(&plan(&[], &[]), &a, &b).expect("a merge");
    assert_eq!(records(&merged), [(0, 0), (0, 1), (0, 100)]);
    let note = |log: &str, times_back, truncated_at| MergeNote {
        log: log.into(),
        times_back,
        truncated_at,
    };
    assert_eq!(notes, [note("a", 1, None), note("b", 0, Some(48))]);
    for bad in [
        &b""[..],
        b"short",
        b"fio version 3 iolog\n0 a add\n0 a open\n0 a read 0 4096\n",
    ] {
        let error = merge(&plan(&[], &[]), &a, bad).expect_err("no trace");
        assert_eq!(error.to_string(), "b: byte 0: not a binary blktrace");
    }
}

#[test]
fn lists_have_a_value_for_each_log() {
    let check = |options: ReplayOptions, want: &str| {
        let error = MergePlan::of(&options).expect_err(want);
        assert_eq!(error.message, want);
    };
    let options = ReplayOptions {
        merge_to: Some("m".into()),
        ..ReplayOptions::default()
    };
    check(
        options.clone(),
        "`merge_blktrace_file` without `read_iolog`: nothing to merge",
    );
    let options = ReplayOptions {
        logs: vec!["a".into(), "b".into()],
        merge_iterations: vec![1],
        ..options
    };
    check(
        options.clone(),
        "`merge_blktrace_iters` has 1 values for 2 logs",
    );
    let options = ReplayOptions {
        merge_to: None,
        ..options
    };
    check(
        options,
        "`merge_blktrace_iters` without `merge_blktrace_file`",
    );
}
