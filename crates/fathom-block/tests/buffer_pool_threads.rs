//! The buffer pool under many thread schedules. It is the program's own code on shuttle's atomics
//! and locks; a lost wake-up is a deadlock, which shuttle reports with the schedule that led to it.

#![expect(
    unreachable_pub,
    dead_code,
    reason = "modules of the library, included once more"
)]

#[path = "../src/buffer_pool.rs"]
mod buffer_pool;
#[path = "../src/thread_buffers.rs"]
mod thread_buffers;

use fathom_core::{DataBuffer, Tick};
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use std::sync::Arc;

use buffer_pool::{BufferConfig, BufferPool, Sharing};
use thread_buffers::ThreadBuffers;

/// Stand-ins for the parts of `core` and `std` that the library uses.
mod sync {
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};
    pub(crate) use std::sync::PoisonError;
}

/// Stand-in for the pacers' state, which takes no part in the hand-over.
mod pacer {
    #[derive(Debug)]
    pub(crate) struct AutoShared;
}

/// The pool as threads use it: each sleeps on its own condition variable.
struct Target {
    pool: Arc<BufferPool>,
    beds: Vec<Bed>,
    out: AtomicU32,
    count: u32,
}

#[derive(Default)]
struct Bed {
    woken: Mutex<bool>,
    signal: Condvar,
}

impl Target {
    /// Runs `requests` requests of a thread that has up to `depth` of them at once.
    fn serve(&self, thread: u32, depth: u32, requests: u32) {
        let mut buffers = ThreadBuffers::new(Arc::clone(&self.pool), thread);
        let (mut wakes, mut held) = (Vec::new(), Vec::<Box<DataBuffer>>::new());
        let (mut waiting, mut left) = (0, requests);
        while left > 0 || waiting > 0 || !held.is_empty() {
            let in_flight = waiting + u32::try_from(held.len()).expect("few");
            let more = left.min(depth - in_flight);
            (left, waiting) = (left - more, waiting + more);
            while waiting > 0
                && let Some(buffer) = buffers.take(waiting)
            {
                waiting -= 1;
                let out = self.out.fetch_add(1, Ordering::SeqCst);
                assert!(out < self.count, "more buffers than there are");
                held.push(buffer);
            }
            if waiting == 0 {
                buffers.settle(&mut wakes);
            }
            self.wake(&mut wakes);
            if let Some(buffer) = held.pop() {
                self.out.fetch_sub(1, Ordering::SeqCst);
                buffers.put(buffer, waiting, &mut wakes);
                self.wake(&mut wakes);
            } else if waiting > 0 {
                self.sleep(thread);
            }
        }
        buffers.settle(&mut wakes);
        let mut now = Tick::ZERO;
        buffers.free_idle(now, &mut wakes);
        while let Some(next) = buffers.next() {
            assert!(
                now < next,
                "a thread that keeps buffers has a time for them"
            );
            now = next;
            buffers.free_idle(now, &mut wakes);
        }
        self.wake(&mut wakes);
        assert_eq!(buffers.cached(), 0, "an idle thread keeps buffers");
    }

    fn sleep(&self, thread: u32) {
        let bed = &self.beds[thread as usize];
        let mut woken = bed.woken.lock().expect("nobody panics");
        while !*woken {
            woken = bed.signal.wait(woken).expect("nobody panics");
        }
        *woken = false;
    }

    fn wake(&self, wakes: &mut Vec<u32>) {
        for thread in wakes.drain(..) {
            let bed = &self.beds[thread as usize];
            *bed.woken.lock().expect("nobody panics") = true;
            bed.signal.notify_one();
        }
    }
}

/// Runs one thread per entry of `depths`, each with a few requests.
fn check(count: u32, cache: u32, depths: &'static [u32]) {
    let run = move || {
        let config = BufferConfig {
            count: Some(count),
            bytes: 512,
            cache,
        };
        let sharing = Sharing {
            threads: u32::try_from(depths.len()).expect("few"),
            devices: 1,
        };
        let target = Arc::new(Target {
            pool: BufferPool::new(config, sharing),
            beds: depths.iter().map(|_| Bed::default()).collect(),
            out: AtomicU32::new(0),
            count,
        });
        let threads = depths.iter().zip(0_u32..).map(|(&depth, index)| {
            let target = Arc::clone(&target);
            thread::spawn(move || target.serve(index, depth, depth + 3))
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            assert!(thread.join().is_ok(), "a thread panicked");
        }
        assert!(target.pool.is_whole());
        let free = std::iter::from_fn(|| target.pool.take(0, 1).buffer).count();
        assert_eq!(free, count as usize, "buffers are lost");
    };
    shuttle::check_random(run, ORDERS);
    shuttle::check_pct(run, ORDERS, 3);
}

#[test]
fn one_buffer_goes_round() {
    check(1, 0, &[1, 1, 1]);
    check(1, 4, &[2, 3]);
}

#[test]
fn fewer_buffers_than_requests_reach_every_thread() {
    check(2, 0, &[2, 1, 2]);
    check(3, 0, &[4, 1]);
}

#[test]
fn caches_keep_nothing_from_others() {
    check(4, 1, &[3, 3]);
    check(8, 3, &[6, 1, 6]);
}

/// Schedules to try of each kind.
const ORDERS: usize = 400;
