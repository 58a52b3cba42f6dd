//! The built-in engines under the conformance suite, and what files of theirs guarantee beyond it.

use crate::bench::{self, Bench, Setup};
use fathom_conformance::{Subject as _, cases, conformance};
use fathom_core::{Direction, Errno, OpKind, Queueing, SyncKind};

/// Runs a case on every engine and every depth that it has.
fn each(case: impl Fn(&mut Bench)) {
    each_with(&Setup::default(), case);
}

conformance!(each);

fn each_with(base: &Setup, case: impl Fn(&mut Bench)) {
    for setup in Setup::all(base) {
        if let Some(mut bench) = Bench::new(&setup) {
            case(&mut bench);
            bench.finish();
        }
    }
}

#[test]
fn ops_laid_down_together_each_have_their_place() {
    each(|bench| {
        for round in 0..20 {
            let blocks: Vec<u32> = (0..bench.depth())
                .map(|slot| (round * 11 + slot * 23) % 64)
                .collect();
            bench.prepare_reads(&blocks);
            bench.submit(0);
            bench.finish_all();
            for (slot, &block) in (0..).zip(&blocks) {
                bench.check(slot, block);
            }
        }
    });
}

#[test]
fn a_read_across_the_end_is_short_and_one_past_it_is_empty() {
    each(|bench| {
        if !bench.moves_data() {
            return;
        }
        bench.close();
        bench.truncate(u64::from(bench.block()) + 512);
        bench.open();
        let short = bench.run(bench.read(0, 1));
        assert_eq!(short.result, 512);
        let empty = bench.run(bench.read(0, 40));
        assert_eq!(empty.result, 0);
    });
}

#[test]
fn a_file_that_shrinks_fails_ops_and_nothing_worse() {
    each(|bench| {
        if !bench.moves_data() {
            return;
        }
        bench.truncate(u64::from(bench.block()));
        assert!(bench.run(bench.read(0, 40)).result <= 0);
        bench.run_one(bench.read(0, 0));
        bench.check(0, 0);
    });
}

#[test]
fn adjacent_ops_are_told_apart_at_the_end_of_the_file() {
    each(|bench| {
        if !bench.moves_data() || bench.depth() < 4 {
            return;
        }
        bench.close();
        bench.truncate(u64::from(bench.block()) * 2 + 512);
        bench.open();
        for slot in 0..4 {
            bench.prepare(bench.read(slot, slot));
        }
        bench.submit(0);
        for completion in bench.collect() {
            let slot = completion.slot.get();
            let want = [bench.block_bytes(), bench.block_bytes(), 512, 0];
            assert_eq!(completion.result, want[slot as usize], "{}", bench.title());
            bench.check_part(slot, slot, 0..completion.result.unsigned_abs() as usize);
        }
    });
}

#[test]
fn a_sync_may_be_queued_where_the_engine_says_so() {
    each(|bench| {
        let syncs = bench.capabilities().syncs;
        if bench.depth() > 1 && syncs != Queueing::Alone {
            bench.fill(0, 1);
            bench.prepare(bench.write(0, 1));
            if syncs == Queueing::Inline {
                bench.submit(0);
            }
            bench.prepare(bench.sync(1, SyncKind::Data));
            bench.submit(0);
            bench.finish_all();
        }
    });
}

#[test]
fn a_trim_of_a_file_leaves_zeros() {
    each(|bench| {
        let mut trim = bench.read(0, 1);
        trim.kind = OpKind::Data(Direction::Trim);
        let done = bench.run(trim);
        if !bench.performs(Direction::Trim) {
            assert_eq!(done.result, Errno::EINVAL.result(), "{}", bench.title());
            return;
        }
        if done.result == Errno::EOPNOTSUPP.result() {
            println!("skipped: {}: no holes on this filesystem", bench.title());
            return;
        }
        assert_eq!(done.result, bench.block_bytes());
        if !bench.moves_data() {
            return;
        }
        bench.run_one(bench.read(0, 1));
        assert!(bench.buffer(0).iter().all(|&byte| byte == 0));
        bench.run_one(bench.read(0, 2));
        bench.check(0, 2);
    });
}

#[test]
fn a_file_can_be_invalidated() {
    each(|bench| {
        bench.invalidate();
        bench.run_one(bench.read(0, 3));
        bench.check(0, 3);
        bench.invalidate();
    });
}

#[test]
fn an_engine_may_be_dropped_with_ops_in_flight() {
    for setup in Setup::all(&Setup::default()) {
        let Some(mut bench) = Bench::new(&setup) else {
            continue;
        };
        for slot in 0..bench.depth() {
            bench.prepare(bench.read(slot, slot % 64));
        }
        bench.submit(0);
        bench.reap(1);
        drop(bench);
    }
    // And with some that were never handed over.
    for setup in Setup::all(&Setup::default()) {
        if let Some(mut bench) = Bench::new(&setup) {
            bench.prepare(bench.read(0, 1));
            drop(bench);
        }
    }
}

#[test]
fn direct_io_moves_the_same_bytes() {
    let setup = Setup {
        direct: true,
        ..Setup::default()
    };
    each_with(&setup, |bench| {
        for block in 0..64 {
            bench.run_one(bench.read(0, block));
            bench.check(0, block);
        }
    });
}

#[test]
fn a_wait_ends_with_its_time_when_nothing_completes() {
    let setup = Setup {
        name: "io_uring",
        ..Setup::default()
    };
    // A read of a pipe that has no data yet.
    if let Some(mut bench) = Bench::over_pipe(&setup) {
        let mut read = bench.read(0, 0);
        read.length = 4;
        bench.prepare(read);
        bench.submit(0);
        bench.wait(1, Some(bench.in_a_moment()));
        assert_eq!(bench.reap(1), []);
        bench.write_to_pipe(b"data");
        assert_eq!(bench.collect()[0].result, 4);
        bench.finish();
    }
}

#[test]
fn completions_of_direct_io_come_without_waiting_for_them() {
    let setup = Setup {
        direct: true,
        ..Setup::default()
    };
    each_with(&setup, |bench| {
        cases::completions_come_without_waiting_for_them(bench);
    });
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for setup in Setup::all(&Setup::default()) {
        bench::missing_file(&setup, "/dev/fathom-no-such-device");
    }
}
