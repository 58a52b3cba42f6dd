//! Cases, each a guarantee. A new one is a function here and a name in [`conformance!`].
//!
//! [`conformance!`]: crate::conformance

use fathom_core::{Errno, SyncKind, Tick};

use crate::subject::{BLOCK, BLOCKS, Subject};

/// Makes a test of each case, which it passes to a function: `conformance!(each)`.
#[macro_export]
macro_rules! conformance {
    ($each:ident) => {
        $crate::conformance! { $each:
            what_was_written_is_read_back
            every_op_of_a_full_queue_completes_once
            a_queue_is_refilled_while_it_drains
            submit_waits_for_what_it_is_asked_to
            wait_comes_back_with_completions_or_when_its_time_is_up
            completions_come_without_waiting_for_them
            the_rest_of_a_short_transfer_goes_where_it_belongs
            what_cannot_be_done_is_a_failed_op_and_nothing_worse
            one_bad_op_leaves_its_neighbours_alone
            adjacent_writes_land_in_their_places
            syncs_complete_like_any_op
            a_file_can_be_closed_and_opened_again
        }
    };
    ($each:ident: $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $each(|bench| $crate::cases::$case(bench));
            }
        )*
    };
}

/// Each write is found in the storage, and by reads in another order.
pub fn what_was_written_is_read_back<S: Subject>(bench: &mut S) {
    for block in 0..BLOCKS {
        // Not what is there already.
        bench.fill(0, block + 1);
        bench.run_one(bench.write(0, block));
        bench.check_stored(block, block + 1);
    }
    // Backwards, so that no engine gets away with ignoring offsets.
    for block in (0..BLOCKS).rev() {
        bench.run_one(bench.read(0, block));
        bench.check(0, block + 1);
    }
}

/// As many ops as there are slots, again and again.
pub fn every_op_of_a_full_queue_completes_once<S: Subject>(bench: &mut S) {
    for round in 0..20 {
        for slot in 0..bench.depth() {
            let block = (round * 7 + slot * 5) % BLOCKS;
            bench.fill(slot, block);
            bench.prepare(bench.write(slot, block));
        }
        bench.submit(0);
        bench.finish_all();
    }
}

/// Completions are reaped a few at a time, while others are issued.
pub fn a_queue_is_refilled_while_it_drains<S: Subject>(bench: &mut S) {
    let mut issued = 0;
    let mut free: Vec<u32> = (0..bench.depth()).collect();
    let mut block_of = vec![0; free.len()];
    while issued < 500 || bench.in_flight() > 0 {
        while let Some(slot) = free.pop().filter(|_| issued < 500) {
            let block = issued * 13 % BLOCKS;
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
}

/// `submit` returns with as many completions as it was to wait for.
pub fn submit_waits_for_what_it_is_asked_to<S: Subject>(bench: &mut S) {
    let depth = bench.depth();
    for with_ops in [true, false] {
        for slot in 0..depth {
            bench.prepare(bench.read(slot, slot % BLOCKS));
        }
        // And with nothing new to hand over.
        if !with_ops {
            bench.submit(0);
        }
        bench.submit(depth);
        assert_eq!(bench.reap(depth).len(), depth as usize);
    }
}

/// `wait` with a time far away, past, and none.
pub fn wait_comes_back_with_completions_or_when_its_time_is_up<S: Subject>(bench: &mut S) {
    bench.prepare(bench.read(0, 3));
    bench.submit(0);
    bench.wait(1, Some(Tick::MAX));
    assert_eq!(bench.reap(1).len(), 1);
    // A moment that has passed: no sleep, whether or not there is something.
    bench.prepare(bench.read(0, 2));
    bench.submit(0);
    bench.wait(1, Some(Tick::ZERO));
    bench.finish_all();
    bench.wait(0, None);
}

/// A job that polls never calls `wait`.
pub fn completions_come_without_waiting_for_them<S: Subject>(bench: &mut S) {
    for slot in 0..bench.depth() {
        bench.prepare(bench.read(slot, slot % BLOCKS));
    }
    bench.submit(0);
    let deadline = bench.in_a_while();
    while bench.in_flight() > 0 {
        bench.reap(3);
        assert!(!bench.has_passed(deadline), "{}", bench.title());
    }
}

/// A worker issues what a short transfer has left, from the middle of the buffer.
pub fn the_rest_of_a_short_transfer_goes_where_it_belongs<S: Subject>(bench: &mut S) {
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
    bench.check_part(0, 9, 1024..BLOCK as usize);
}

/// Ops past all files, and on a file that is closed.
pub fn what_cannot_be_done_is_a_failed_op_and_nothing_worse<S: Subject>(bench: &mut S) {
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
}

/// An op that fails among others that do not.
pub fn one_bad_op_leaves_its_neighbours_alone<S: Subject>(bench: &mut S) {
    if !bench.moves_data() || bench.depth() < 4 {
        return;
    }
    for slot in 0..4 {
        let mut op = bench.read(slot, slot);
        if slot == 1 {
            op.offset = 1 << 63;
        }
        bench.prepare(op);
    }
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
}

/// An engine may merge adjacent ops; each has its own data and completion.
pub fn adjacent_writes_land_in_their_places<S: Subject>(bench: &mut S) {
    for slot in 0..bench.depth() {
        bench.fill(slot, slot + 7);
        bench.prepare(bench.write(slot, slot));
    }
    bench.submit(0);
    bench.finish_all();
    for slot in 0..bench.depth() {
        bench.check_stored(slot, slot + 7);
    }
}

/// Syncs of every kind.
pub fn syncs_complete_like_any_op<S: Subject>(bench: &mut S) {
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
}

/// A job closes and opens files as its options say.
pub fn a_file_can_be_closed_and_opened_again<S: Subject>(bench: &mut S) {
    for _ in 0..3 {
        bench.close();
        bench.open();
        bench.run_one(bench.read(0, 3));
        bench.check(0, 3);
    }
}
