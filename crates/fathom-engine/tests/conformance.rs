//! Conformance suite of all engines: the guarantees of the contract on which a worker relies.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the whole file is a test, its helpers too"
)]

mod bench;

use bench::{Bench, Setup};
use fathom_core::{Direction, Errno, OpKind, SyncKind, Tick};

/// Runs a case on every engine and every depth that it has.
fn each(case: impl Fn(&mut Bench)) {
    each_with(&Setup::default(), case);
}

fn each_with(base: &Setup, case: impl Fn(&mut Bench)) {
    for setup in Setup::all(base) {
        if let Some(mut bench) = Bench::new(&setup) {
            case(&mut bench);
            bench.finish();
        }
    }
}

#[test]
fn what_was_written_is_read_back() {
    each(|bench| {
        for block in 0..64 {
            // Not what is there already.
            bench.fill(0, block + 1);
            bench.run_one(bench.write(0, block));
            bench.check_file_holds(block, block + 1);
        }
        // Backwards, so that no engine gets away with ignoring offsets.
        for block in (0..64).rev() {
            bench.run_one(bench.read(0, block));
            bench.check(0, block + 1);
        }
    });
}

#[test]
fn every_op_of_a_full_queue_completes_once() {
    each(|bench| {
        for round in 0..20 {
            for slot in 0..bench.depth() {
                let block = (round * 7 + slot * 5) % 64;
                bench.fill(slot, block);
                bench.prepare(bench.write(slot, block));
            }
            bench.submit(0);
            bench.finish_all();
        }
    });
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
fn a_queue_is_refilled_while_it_drains() {
    each(|bench| {
        let mut issued = 0;
        let mut free: Vec<u32> = (0..bench.depth()).collect();
        let mut block_of = vec![0; free.len()];
        while issued < 500 || bench.in_flight() > 0 {
            while let Some(slot) = free.pop().filter(|_| issued < 500) {
                let block = issued * 13 % 64;
                block_of[slot as usize] = block;
                bench.prepare(bench.read(slot, block));
                issued += 1;
                // Every third goes to the kernel with the next.
                if issued % 3 > 0 {
                    bench.submit(0);
                }
            }
            bench.submit(1);
            for completion in bench.reap(2) {
                assert_eq!(completion.result, bench.block_bytes());
                let slot = completion.slot.get();
                bench.check(slot, block_of[slot as usize]);
                free.push(slot);
            }
        }
    });
}

#[test]
fn submit_waits_for_what_it_is_asked_to() {
    each(|bench| {
        for slot in 0..bench.depth() {
            bench.prepare(bench.read(slot, slot % 64));
        }
        bench.submit(bench.depth());
        assert_eq!(bench.reap(bench.depth()).len(), bench.depth() as usize);
        // And with nothing new to hand over.
        for slot in 0..bench.depth() {
            bench.prepare(bench.read(slot, slot % 64));
        }
        bench.submit(0);
        bench.submit(bench.depth());
        assert_eq!(bench.reap(bench.depth()).len(), bench.depth() as usize);
    });
}

#[test]
fn wait_comes_back_with_completions_or_when_its_time_is_up() {
    each(|bench| {
        bench.prepare(bench.read(0, 3));
        bench.submit(0);
        let never = Tick::MAX;
        bench.wait(1, Some(never));
        assert_eq!(bench.reap(1).len(), 1);
        // A moment that has passed: no sleep, whether or not there is something.
        bench.prepare(bench.read(0, 2));
        bench.submit(0);
        bench.wait(1, Some(Tick::ZERO));
        bench.finish_all();
        bench.wait(0, None);
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
fn the_rest_of_a_short_transfer_goes_where_it_belongs() {
    each(|bench| {
        if !bench.moves_data() {
            return;
        }
        bench.fill(0, 9);
        let mut op = bench.write(0, 1);
        op.buffer_offset = 1024;
        op.offset += 1024;
        op.length -= 1024;
        let done = bench.run(op);
        assert_eq!(done.result, bench.block_bytes() - 1024);
        bench.run_one(bench.read(0, 1));
        bench.check_part(0, 1, 0..1024);
        bench.check_part(0, 9, 1024..bench.block() as usize);
    });
}

#[test]
fn what_cannot_be_done_is_a_failed_op_and_nothing_worse() {
    each(|bench| {
        if !bench.moves_data() {
            return;
        }
        let mut op = bench.read(0, 0);
        op.offset = 1 << 63;
        assert!(bench.run(op).result <= 0, "an offset past all files");
        bench.close();
        assert_eq!(bench.run(bench.read(0, 0)).result, Errno::EBADF.result());
        bench.open();
        bench.run_one(bench.read(0, 0));
        bench.check(0, 0);
    });
}

#[test]
fn one_bad_op_leaves_its_neighbours_alone() {
    each(|bench| {
        if !bench.moves_data() || bench.depth() < 4 {
            return;
        }
        bench.prepare(bench.read(0, 0));
        let mut bad = bench.read(1, 1);
        bad.offset = 1 << 63;
        bench.prepare(bad);
        bench.prepare(bench.read(2, 2));
        bench.prepare(bench.read(3, 3));
        bench.submit(0);
        for completion in bench.collect() {
            match completion.slot.get() {
                1 => assert!(completion.result <= 0),
                slot => {
                    assert_eq!(completion.result, bench.block_bytes());
                    bench.check(slot, slot);
                }
            }
        }
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
fn adjacent_writes_land_in_their_places() {
    each(|bench| {
        for slot in 0..bench.depth() {
            bench.fill(slot, slot + 7);
            bench.prepare(bench.write(slot, slot));
        }
        bench.submit(0);
        bench.finish_all();
        for slot in 0..bench.depth() {
            bench.check_file_holds(slot, slot + 7);
        }
    });
}

#[test]
fn syncs_complete_like_any_op() {
    each(|bench| {
        bench.fill(0, 1);
        bench.run_one(bench.write(0, 1));
        let kinds = [
            SyncKind::Full,
            SyncKind::Data,
            SyncKind::Range(7),
            SyncKind::FileSystem,
        ];
        for kind in kinds {
            assert_eq!(bench.run(bench.sync(0, kind)).result, 0);
        }
    });
}

#[test]
fn a_sync_may_be_queued_where_the_engine_says_so() {
    each(|bench| {
        if bench.depth() > 1 && bench.capabilities().queued_sync {
            bench.fill(0, 1);
            bench.prepare(bench.write(0, 1));
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
fn a_file_can_be_closed_opened_again_and_invalidated() {
    each(|bench| {
        bench.invalidate();
        for _ in 0..3 {
            bench.close();
            bench.open();
            bench.run_one(bench.read(0, 3));
            bench.check(0, 3);
            bench.invalidate();
        }
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
    // A read of a pipe that nobody has written to yet.
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
fn completions_come_without_waiting_for_them() {
    let setup = Setup {
        direct: true,
        ..Setup::default()
    };
    each_with(&setup, |bench| {
        for slot in 0..bench.depth() {
            bench.prepare(bench.read(slot, slot));
        }
        bench.submit(0);
        let deadline = bench.in_a_while();
        while bench.in_flight() > 0 {
            bench.reap(3);
            assert!(!bench.has_passed(deadline), "{}", bench.title());
        }
    });
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for setup in Setup::all(&Setup::default()) {
        bench::missing_file(&setup, "/dev/fathom-no-such-device");
    }
}
