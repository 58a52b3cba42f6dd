//! Pool of data buffers that the threads of a target share.
//!
//! ```text
//!  thread 0: in flight, cache ─┐  one buffer at a time   ┌─ free, the last one returned first
//!  thread 1: in flight, cache ─┼────── lock ─────────────┤
//!  thread 2: waits             ─┘                         └─► mail of the waiting thread that
//!                                                            holds the fewest buffers, and a wake
//! ```
//!
//! Nothing blocks and nothing is woken here: `take` registers a thread that finds nothing, and the
//! calls that hand it a buffer say that it is to be woken.
//!
//! Why no wake-up is lost: a thread registers under the lock that it found nothing free under, and
//! each buffer that comes back later is given to a registered thread first. Caches together are
//! smaller than the pool by a buffer per thread, so a registered thread always waits for a buffer
//! in flight. A thread gives up cached buffers that it does not use
//! ([`ThreadBuffers`](crate::thread_buffers::ThreadBuffers)), so that an idle one keeps none.

use std::sync::{Arc, OnceLock};

use fathom_core::DataBuffer;

use crate::pacer::AutoShared;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Configuration of a buffer pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Number of buffers, allocated at the start; `None` for as many as are asked for, allocated on
    /// demand and freed when idle.
    pub count: Option<u32>,
    /// Bytes of each buffer.
    pub bytes: u32,
    /// Buffers that a thread keeps without sharing them. Lowered where the caches together would
    /// leave less than a buffer per thread.
    pub cache: u32,
}

/// Number of threads and devices that share a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Threads that take buffers, numbered from 0 on.
    pub threads: u32,
    /// Devices that buffers are taken for, numbered from 0 on.
    pub devices: u32,
}

/// Pool of buffers, shared by the threads of a target.
///
/// A thread reaches it through its [`Admission`](crate::Admission).
#[derive(Debug)]
pub struct BufferPool {
    config: BufferConfig,
    sharing: Sharing,
    cache: u32,
    shared: Mutex<Shared>,
    /// Fewest buffers held by a waiting thread; [`NOBODY`] if none waits.
    neediest: AtomicU32,
    threads: Box<[Counters]>,
    /// Requests in flight per device, where a pacer wants to know.
    in_flight: Box<[AtomicU32]>,
    /// State of automatic pacing, where that is the policy.
    auto: OnceLock<Arc<AutoShared>>,
}

/// Counters of a thread, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    in_use: AtomicU32,
    /// Set while buffers lie in the thread's mail.
    has_mail: AtomicBool,
}

/// Result of [`BufferPool::take`].
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) buffer: Option<Box<DataBuffer>>,
    /// The thread waits for more, or has more in its mail.
    pub(crate) is_registered: bool,
}

/// State behind the lock.
#[derive(Debug)]
struct Shared {
    #[expect(
        clippy::vec_box,
        reason = "boxes move to and from commands as they are"
    )]
    free: Vec<Box<DataBuffer>>,
    places: Box<[Place]>,
    /// Number of registrations so far: their order.
    turns: u64,
}

/// Share of one thread.
#[derive(Debug, Default)]
struct Place {
    /// Buffers in flight, in its cache and in its mail.
    held: u32,
    /// Requests that wait and have been promised no buffer; the thread is registered while any do.
    wanted: u32,
    /// Order among registered threads that hold equally many buffers.
    turn: u64,
    #[expect(
        clippy::vec_box,
        reason = "boxes move to and from commands as they are"
    )]
    mail: Vec<Box<DataBuffer>>,
}

impl BufferPool {
    /// Creates a pool.
    ///
    /// # Panics
    /// If there are no threads, or a fixed number of buffers is zero.
    #[must_use]
    pub fn new(config: BufferConfig, sharing: Sharing) -> Arc<Self> {
        assert!(sharing.threads > 0, "a thread that takes buffers");
        assert!(config.count != Some(0), "a pool has a buffer");
        let count = config.count.unwrap_or(0);
        let free = (0..count).map(|_| Box::new(DataBuffer::new(config.bytes)));
        let per_thread = |_| Place::default();
        Arc::new(Self {
            config,
            sharing,
            cache: cache_of(config, sharing),
            shared: Mutex::new(Shared {
                free: free.collect(),
                places: (0..sharing.threads).map(per_thread).collect(),
                turns: 0,
            }),
            neediest: AtomicU32::new(NOBODY),
            threads: (0..sharing.threads).map(|_| Counters::default()).collect(),
            in_flight: (0..sharing.devices).map(|_| AtomicU32::new(0)).collect(),
            auto: OnceLock::new(),
        })
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> BufferConfig {
        self.config
    }

    /// Returns the number of threads and devices.
    #[must_use]
    pub const fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Returns the number of buffers that requests hold, over all threads.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        // Relaxed: counters alone, of threads that go on meanwhile.
        let counters = self.threads.iter();
        counters.map(|one| one.in_use.load(Ordering::Relaxed)).sum()
    }

    /// Returns true if no request holds a buffer: each that was taken has come back.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.in_use() == 0
    }

    /// Returns the number of buffers that a thread may cache.
    pub(crate) const fn cache(&self) -> u32 {
        self.cache
    }

    /// Returns the place of automatic pacing's shared state.
    pub(crate) const fn auto(&self) -> &OnceLock<Arc<AutoShared>> {
        &self.auto
    }

    /// Returns the number of a device's requests in flight, over all threads.
    pub(crate) fn in_flight(&self, device: u32) -> u32 {
        // Relaxed, as the changes: a limit that is checked before may be passed by as many requests
        // as there are threads, for a moment.
        self.in_flight[device as usize].load(Ordering::Relaxed)
    }

    /// Counts a request of a device that begins.
    pub(crate) fn begin(&self, device: u32) {
        self.in_flight[device as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request of a device that ends.
    pub(crate) fn end(&self, device: u32) {
        self.in_flight[device as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Publishes the number of buffers that the requests of a thread hold.
    #[inline]
    pub(crate) fn set_in_use(&self, thread: usize, in_use: u32) {
        // Relaxed: each thread writes its own; readers want a number, not an order.
        self.threads[thread].in_use.store(in_use, Ordering::Relaxed);
    }

    /// Returns the fewest buffers that a waiting thread holds; [`NOBODY`] if none waits.
    #[inline]
    pub(crate) fn neediest(&self) -> u32 {
        // Relaxed: a stale value lets a thread keep a buffer once more; its last one in flight is
        // returned under the lock in any case.
        self.neediest.load(Ordering::Relaxed)
    }

    /// Returns true if other threads have left buffers for this one.
    #[inline]
    pub(crate) fn has_mail(&self, thread: usize) -> bool {
        // Acquire is not needed: the buffers themselves change hands under the lock.
        self.threads[thread].has_mail.load(Ordering::Relaxed)
    }

    /// Takes a buffer for one of `wanted` requests of `thread`, if there is one, and registers the
    /// thread for the others.
    pub(crate) fn take(&self, thread: usize, wanted: u32) -> Taken {
        let shared = &mut *self.lock();
        let place = &mut shared.places[thread];
        let buffer = place.mail.pop().or_else(|| {
            let free = shared.free.pop();
            place.held += u32::from(free.is_some());
            free
        });
        let promised = u32::try_from(place.mail.len()).unwrap_or(u32::MAX);
        let wanted = if shared.free.is_empty() {
            wanted.saturating_sub(promised + u32::from(buffer.is_some()))
        } else {
            // The next call finds one: others may have come back before the mail was read.
            0
        };
        if place.wanted == 0 && wanted > 0 {
            place.turn = shared.turns;
            shared.turns += 1;
        }
        place.wanted = wanted;
        self.set_has_mail(thread, promised > 0);
        self.publish_neediest(shared);
        Taken {
            buffer,
            is_registered: wanted > 0 || promised > 0,
        }
    }

    /// Returns a buffer of `thread`, and the thread to wake if one waited for it.
    pub(crate) fn put(&self, thread: usize, buffer: Box<DataBuffer>) -> Option<u32> {
        let shared = &mut *self.lock();
        let place = &mut shared.places[thread];
        place.held -= 1;
        // Behind those that hold as few but have not just had one.
        place.turn = shared.turns;
        shared.turns += 1;
        let woken = self.pass_on(shared, buffer);
        self.publish_neediest(shared);
        woken
    }

    /// Ends the wait of `thread`. Buffers in its mail go to others, whom `wakes` collects.
    pub(crate) fn leave(&self, thread: usize, wakes: &mut Vec<u32>) {
        let shared = &mut *self.lock();
        let place = &mut shared.places[thread];
        place.wanted = 0;
        let mail = std::mem::take(&mut place.mail);
        self.set_has_mail(thread, false);
        for buffer in mail {
            shared.places[thread].held -= 1;
            wakes.extend(self.pass_on(shared, buffer));
        }
        self.publish_neediest(shared);
    }

    /// Gives a buffer to the registered thread that holds the fewest, or adds it to the free ones.
    fn pass_on(&self, shared: &mut Shared, buffer: Box<DataBuffer>) -> Option<u32> {
        let waiting = shared.places.iter_mut().zip(0_u32..);
        let waiting = waiting.filter(|(place, _)| place.wanted > 0);
        let neediest = waiting.min_by_key(|(place, _)| (place.held, place.turn));
        let Some((place, thread)) = neediest else {
            shared.free.push(buffer);
            return None;
        };
        place.held += 1;
        place.wanted -= 1;
        place.turn = shared.turns;
        shared.turns += 1;
        place.mail.push(buffer);
        self.set_has_mail(thread as usize, true);
        Some(thread)
    }

    fn publish_neediest(&self, shared: &Shared) {
        let waiting = shared.places.iter().filter(|place| place.wanted > 0);
        let fewest = waiting.map(|place| place.held).min();
        // Relaxed: see `neediest`.
        self.neediest
            .store(fewest.unwrap_or(NOBODY), Ordering::Relaxed);
    }

    fn set_has_mail(&self, thread: usize, has_mail: bool) {
        // Relaxed: the wake that follows orders it for the reader.
        self.threads[thread]
            .has_mail
            .store(has_mail, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the size of a thread's cache: as configured, or what leaves each thread a buffer that no
/// other one caches.
fn cache_of(config: BufferConfig, sharing: Sharing) -> u32 {
    match config.count {
        Some(count) => config
            .cache
            .min((count / sharing.threads).saturating_sub(1)),
        None => config.cache,
    }
}

/// Fewest buffers held by a waiting thread, while none waits.
pub(crate) const NOBODY: u32 = u32::MAX;
