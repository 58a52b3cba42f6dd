use super::*;

const K: u64 = 1024;
const MISSING: Existing = Existing {
    bytes: None,
    fixed: false,
};

fn file(bytes: u64) -> Existing {
    Existing {
        bytes: Some(bytes),
        fixed: false,
    }
}

fn device(bytes: u64) -> Existing {
    Existing {
        bytes: Some(bytes),
        fixed: true,
    }
}

fn ask(files: &[Existing]) -> SizeRequest<'_> {
    SizeRequest {
        size: None,
        io_size: None,
        loops: 1,
        pass_end: PassEnd::Range,
        reads_back: false,
        time_based: false,
        filesize: None,
        offset: Size::Bytes(0),
        offset_increment: Size::Bytes(0),
        clone: 0,
        smallest: 4 * K,
        begins_in_range: false,
        offset_align: 0,
        append: false,
        fill: false,
        op_per_file: false,
        files,
    }
}

/// Files as (offset, length, bytes), and the bytes per pass.
type Layout = (Vec<(u64, u64, u64)>, u64);

fn solve(request: &SizeRequest<'_>) -> Result<Layout, SizeFault> {
    let found = sizes(request, &mut |_, high| high)?;
    let files = found.files.iter().map(|f| (f.offset, f.length, f.bytes));
    Ok((files.collect(), found.bytes_per_pass))
}

#[expect(clippy::too_many_lines, reason = "a table, one case for each rule")]
#[test]
fn sizes_follow_the_options() {
    let (one, three) = ([MISSING], [MISSING; 3]);
    let (four, eight) = ([file(4 * K)], [file(1000 * K)]);
    let two = [file(4 * K), file(6 * K)];
    let bytes = |n| Some(Size::Bytes(n));
    let cases: Vec<(&str, SizeRequest<'_>, Layout)> = vec![
        (
            "a size",
            SizeRequest {
                size: bytes(64 * K),
                ..ask(&one)
            },
            (vec![(0, 64 * K, 64 * K)], 64 * K),
        ),
        (
            "a tail that no op fits into counts",
            SizeRequest {
                size: bytes(10 * K),
                ..ask(&one)
            },
            (vec![(0, 10 * K, 10 * K)], 10 * K),
        ),
        (
            "10k over three files with 1k ops are 3413 bytes each",
            SizeRequest {
                size: bytes(10 * K),
                smallest: K,
                ..ask(&three)
            },
            (vec![(0, 3413, 3413); 3], 3 * 3413),
        ),
        (
            "leftover ops go to the first files",
            SizeRequest {
                size: bytes(11),
                smallest: 1,
                ..ask(&three)
            },
            (vec![(0, 4, 4), (0, 4, 4), (0, 3, 3)], 11),
        ),
        (
            "io_size in percent is of the files, up to the size",
            SizeRequest {
                size: bytes(32 * K),
                filesize: Some((48 * K, 48 * K)),
                io_size: Some(Size::Percent(50)),
                ..ask(&one)
            },
            (vec![(0, 48 * K, 48 * K)], 24 * K),
        ),
        (
            "and no more than the size",
            SizeRequest {
                size: bytes(16 * K),
                filesize: Some((64 * K, 64 * K)),
                io_size: Some(Size::Percent(50)),
                ..ask(&one)
            },
            (vec![(0, 64 * K, 64 * K)], 16 * K),
        ),
        (
            "a file that ends at the offset is skipped",
            SizeRequest {
                offset: Size::Bytes(4 * K),
                ..ask(&two)
            },
            (vec![(4 * K, 0, 4 * K), (4 * K, 2 * K, 6 * K)], 2 * K),
        ),
        (
            "no size: what is there",
            ask(&four),
            (vec![(0, 4 * K, 4 * K)], 4 * K),
        ),
        (
            "percent of what is there, whole ops",
            SizeRequest {
                size: Some(Size::Percent(33)),
                ..ask(&eight)
            },
            (vec![(0, 328 * K, 328 * K)], 328 * K),
        ),
        (
            "a size in percent does not lead beyond what is there",
            SizeRequest {
                size: Some(Size::Percent(100)),
                offset: Size::Percent(25),
                ..ask(&eight)
            },
            (vec![(252 * K, 748 * K, 1000 * K)], 748 * K),
        ),
        (
            "the offset moves the range, it does not shorten it",
            SizeRequest {
                size: bytes(16 * K),
                offset: Size::Bytes(8 * K),
                ..ask(&one)
            },
            (vec![(8 * K, 16 * K, 24 * K)], 16 * K),
        ),
        (
            "without a size the range ends with the file",
            SizeRequest {
                offset: Size::Percent(50),
                ..ask(&eight)
            },
            (vec![(500 * K, 500 * K, 1000 * K)], 500 * K),
        ),
        (
            "an offset in percent is rounded up",
            SizeRequest {
                offset: Size::Percent(33),
                ..ask(&eight)
            },
            (vec![(332 * K, 668 * K, 1000 * K)], 668 * K),
        ),
        (
            "each clone begins further on",
            SizeRequest {
                size: bytes(16 * K),
                offset_increment: Size::Bytes(16 * K),
                clone: 2,
                ..ask(&one)
            },
            (vec![(32 * K, 16 * K, 48 * K)], 16 * K),
        ),
        (
            "steps in percent are added up before they are rounded",
            SizeRequest {
                offset_increment: Size::Percent(33),
                clone: 2,
                ..ask(&eight)
            },
            (vec![(660 * K, 340 * K, 1000 * K)], 340 * K),
        ),
        (
            "an offset in percent, aligned as asked",
            SizeRequest {
                offset: Size::Percent(33),
                offset_align: 512,
                ..ask(&eight)
            },
            (vec![(337_920, 686_080, 1000 * K)], 686_080),
        ),
        (
            "behind what is there",
            SizeRequest {
                size: bytes(8 * K),
                // Without effect.
                offset: Size::Bytes(K),
                append: true,
                ..ask(&four)
            },
            (vec![(4 * K, 8 * K, 12 * K)], 8 * K),
        ),
        (
            "as far as there is room",
            SizeRequest {
                fill: true,
                ..ask(&one)
            },
            (vec![(0, 1 << 62, 0)], 1 << 62),
        ),
        (
            "more I/O than size",
            SizeRequest {
                size: bytes(8 * K),
                io_size: bytes(32 * K),
                ..ask(&one)
            },
            (vec![(0, 8 * K, 8 * K)], 32 * K),
        ),
        (
            "half of size",
            SizeRequest {
                size: bytes(8 * K),
                io_size: Some(Size::Percent(50)),
                ..ask(&one)
            },
            (vec![(0, 8 * K, 8 * K)], 4 * K),
        ),
        (
            "filesize wins over size, which is capped to the sum",
            SizeRequest {
                size: bytes(1000 * K),
                filesize: Some((4 * K, 4 * K)),
                ..ask(&three)
            },
            (vec![(0, 4 * K, 4 * K); 3], 12 * K),
        ),
        (
            "a file inside the filesize range stays",
            SizeRequest {
                filesize: Some((2 * K, 8 * K)),
                ..ask(&four)
            },
            (vec![(0, 4 * K, 4 * K)], 4 * K),
        ),
    ];
    for (what, request, expected) in cases {
        assert_eq!(solve(&request), Ok(expected), "{what}");
    }
}

#[test]
fn a_device_cannot_grow() {
    let disk = [device(64 * K)];
    let request = SizeRequest {
        size: Some(Size::Bytes(100 * K)),
        ..ask(&disk)
    };
    let found = sizes(&request, &mut |low, _| low).expect("sizes");
    assert!(found.files[0].cut);
    assert_eq!(
        (found.files[0].length, found.bytes_per_pass),
        (64 * K, 64 * K)
    );
}

#[test]
fn passes_beyond_size_go_on_to_the_end_of_the_files() {
    let found = |filesize: u64| {
        let request = SizeRequest {
            size: Some(Size::Bytes(64 * K)),
            filesize: Some((filesize * K, filesize * K)),
            io_size: Some(Size::Bytes(100 * K)),
            loops: 3,
            ..ask(&[MISSING])
        };
        let found = sizes(&request, &mut |low, _| low).expect("sizes");
        (found.bytes_per_pass / K, found.loops, found.bytes_in_all)
    };
    assert_eq!(found(100), (100, 3, None));
    assert_eq!(found(64), (64, 3, None));
}

#[test]
fn loops_go_on_where_io_size_ended() {
    #[track_caller]
    fn check(io_size: u64, loops: u32, time_based: bool, want: (u64, u32, Option<u64>)) {
        let found = sizes(
            &SizeRequest {
                size: Some(Size::Bytes(100 * K)),
                io_size: Some(Size::Bytes(io_size * K)),
                loops,
                time_based,
                ..ask(&[MISSING])
            },
            &mut |low, _| low,
        )
        .expect("sizes");
        let bytes = found.bytes_in_all.map(|bytes| bytes / K);
        assert_eq!((found.bytes_per_pass / K, found.loops, bytes), want);
    }
    check(60, 1, false, (60, 1, None));
    check(30, 3, false, (90, 1, None));
    check(60, 3, false, (100, 3, Some(180)));
    check(60, 1, true, (100, 1, None));
    check(250, 1, true, (100, 1, None));
    check(250, 1, false, (250, 1, None));
    check(250, 2, false, (100, 3, None));
    check(100, 2, false, (100, 2, None));
}

#[test]
fn what_is_read_back_counts_towards_io_size() {
    for (io_size, loops, want) in [(5, 1, 3), (5, 2, 3), (3, 1, 2), (4, 2, 2), (2, 3, 3)] {
        let request = SizeRequest {
            size: Some(Size::Bytes(1 << 20)),
            io_size: Some(Size::Bytes(io_size << 20)),
            loops,
            reads_back: true,
            ..ask(&[MISSING])
        };
        let found = sizes(&request, &mut |low, _| low).expect("sizes");
        assert_eq!((found.bytes_per_pass, found.loops), (1 << 20, want));
    }
}

#[test]
fn passes_move_no_bytes_of_a_tail_too_short_for_an_op() {
    #[track_caller]
    fn check(words: (u64, u64, u64), reads_back: bool, files: &[Existing], want: u32) {
        let (size, io_size, smallest) = words;
        let request = SizeRequest {
            size: Some(Size::Bytes(size * K)),
            io_size: Some(Size::Bytes(io_size * K)),
            loops: if reads_back { 1 } else { 2 },
            reads_back,
            smallest: smallest * K,
            begins_in_range: true,
            ..ask(files)
        };
        let found = sizes(&request, &mut |low, _| low).expect("sizes");
        assert_eq!(found.loops, want, "{words:?}");
    }
    // fio 3.33 makes as many passes: 16 writes, 8, and 8 that are read back.
    check((7, 64, 4), false, &[MISSING], 16);
    check((10, 30, 4), false, &[MISSING], 4);
    check((100, 1024, 64), true, &[MISSING], 8);
    // Of each of two files.
    check((14, 64, 4), false, &[MISSING; 2], 8);
    // An op that begins in the range may end after it, where the file goes on.
    check((7, 64, 4), false, &[file(100 * K)], 10);
    check((7, 64, 4), false, &[file(7 * K)], 16);
    // Less than an op is left after five passes.
    check((22, 102, 4), false, &[MISSING], 5);
    // No op at all.
    check((3, 64, 4), false, &[MISSING], 22);
}

#[test]
fn passes_that_end_anywhere_and_of_blocks_that_repeat_have_no_bytes_of_their_own() {
    #[track_caller]
    fn check(pass_end: PassEnd, words: (u64, u32, bool), want: (u64, u32, Option<u64>)) {
        let (io_size, loops, time_based) = words;
        let request = SizeRequest {
            size: Some(Size::Bytes(100)),
            io_size: Some(Size::Bytes(io_size)),
            loops,
            time_based,
            pass_end,
            smallest: 1,
            ..ask(&[MISSING])
        };
        let found = sizes(&request, &mut |low, _| low).expect("sizes");
        let got = (found.bytes_per_pass, found.loops, found.bytes_in_all);
        assert_eq!(got, want, "{pass_end:?}");
    }
    let mix = PassEnd::FirstDirection;
    check(mix, (100, 1, false), (100, 1, None));
    check(mix, (250, 1, false), (250, 1, None));
    check(
        mix,
        (100, 2, false),
        (WorkerConfig::WHOLE_PATTERN, 2, Some(200)),
    );
    check(
        mix,
        (130, 3, false),
        (WorkerConfig::WHOLE_PATTERN, 3, Some(390)),
    );
    check(mix, (100, 1, true), (WorkerConfig::WHOLE_PATTERN, 1, None));
    let map = PassEnd::FullMap;
    check(
        map,
        (90, 1, false),
        (WorkerConfig::WHOLE_PATTERN, 1, Some(90)),
    );
    check(
        map,
        (250, 2, false),
        (WorkerConfig::WHOLE_PATTERN, 2, Some(500)),
    );
    check(PassEnd::Never, (60, 3, false), (180, 1, None));
    check(PassEnd::Never, (100, 2, false), (100, 2, None));
    check(PassEnd::Never, (250, 2, false), (500, 1, None));
    check(PassEnd::Never, (250, 2, true), (100, 2, None));
}

#[test]
fn io_size_counts_the_bytes_of_ops_and_not_those_between_and_behind_them() {
    #[track_caller]
    fn check(
        pass_end: PassEnd,
        words: (u64, u64, u32),
        files: &[Existing],
        want: (u64, u32, Option<u64>),
    ) {
        let (size, io_size, loops) = words;
        let request = SizeRequest {
            size: Some(Size::Bytes(size * K)),
            io_size: (io_size > 0).then_some(Size::Bytes(io_size * K)),
            loops,
            pass_end,
            smallest: 4 * K,
            begins_in_range: true,
            ..ask(files)
        };
        let found = sizes(&request, &mut |low, _| low).expect("sizes");
        let bytes = found.bytes_in_all.map(|bytes| bytes / K);
        let per_pass = match found.bytes_per_pass {
            WorkerConfig::WHOLE_PATTERN => 0,
            bytes => bytes / K,
        };
        assert_eq!((per_pass, found.loops, bytes), want, "{words:?}");
    }
    let gap = |kib: u64| PassEnd::Gap(kib * K);
    // fio 3.33 makes 15 ops of 4 KiB, 8 in a pass, and 16 in two.
    check(gap(4), (64, 60, 1), &[file(256 * K)], (0, 1, Some(60)));
    check(gap(4), (64, 60, 2), &[file(256 * K)], (0, 2, Some(120)));
    check(gap(4), (64, 0, 2), &[file(256 * K)], (64, 2, None));
    // In 60 KiB, the gap after the third op leads past the end of the file: back to the start.
    check(gap(20), (60, 64, 2), &[file(64 * K)], (128, 1, None));
    check(gap(20), (60, 64, 2), &[file(256 * K)], (0, 2, Some(128)));
    // Five ops are asked for, and three files of 22 KiB in all hold three.
    check(PassEnd::Range, (22, 20, 1), &[MISSING; 3], (0, 1, Some(20)));
    check(PassEnd::Range, (22, 12, 1), &[MISSING; 3], (12, 1, None));
    check(PassEnd::Range, (22, 22, 1), &[MISSING], (22, 1, None));
}

#[test]
fn what_cannot_be_is_refused() {
    let (one, four) = ([MISSING], [file(4 * K)]);
    let cases = [
        (ask(&one), SizeFault::NoSize(0)),
        (
            SizeRequest {
                size: Some(Size::Percent(10)),
                ..ask(&one)
            },
            SizeFault::PercentOfNothing(0),
        ),
        (
            SizeRequest {
                offset: Size::Bytes(4 * K),
                ..ask(&four)
            },
            SizeFault::OffsetBehindEnd {
                file: 0,
                offset: 4 * K,
                bytes: 4 * K,
            },
        ),
        (
            SizeRequest {
                size: Some(Size::Bytes(u64::MAX)),
                offset: Size::Bytes(4 * K),
                ..ask(&one)
            },
            SizeFault::TooLarge,
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(solve(&request), Err(expected));
    }
}
