//! Waiters for tags: eight queues, linked by the waiters' numbers.

/// One who can wait, by a number that its set has room for: a thread, or a job of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(u32);

impl WaiterId {
    /// The waiter with this number, counted from 0.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The waiter's number, to index a table with.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Waiters to wake; the holder must wake them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "they sleep until they are woken"]
pub struct Wakes {
    waiters: [WaiterId; WAKES_MAX],
    count: u8,
}

impl Wakes {
    /// Nobody.
    pub(crate) const NONE: Self = Self {
        waiters: [WaiterId(0); WAKES_MAX],
        count: 0,
    };

    /// The waiters, in the order in which they are to be woken.
    #[must_use]
    #[inline]
    pub fn waiters(&self) -> &[WaiterId] {
        &self.waiters[..usize::from(self.count)]
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.count as usize == WAKES_MAX
    }

    pub(crate) fn push(&mut self, waiter: WaiterId) {
        self.waiters[usize::from(self.count)] = waiter;
        self.count += 1;
    }
}

/// State of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It does not wait.
    Idle,
    /// It stands in this queue.
    Queued { queue: usize },
    /// It has been woken and has not asked again yet.
    Woken,
}

/// The queues. All of it is behind one lock.
#[derive(Debug)]
pub(crate) struct WaitQueues {
    waiters: Box<[Waiter]>,
    queues: [Queue; QUEUES],
    /// The queue that the next waiter joins.
    join: usize,
    /// All that are queued.
    pub(crate) waiting: u32,
    /// Number of tags that all queued waiters need.
    pub(crate) needed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    state: State,
    need: u32,
    before: Option<WaiterId>,
    behind: Option<WaiterId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    first: Option<WaiterId>,
    last: Option<WaiterId>,
    len: u32,
}

impl WaitQueues {
    pub(crate) fn new(waiters: u32) -> Self {
        let idle = Waiter {
            state: State::Idle,
            need: 0,
            before: None,
            behind: None,
        };
        Self {
            waiters: vec![idle; waiters as usize].into_boxed_slice(),
            queues: [Queue::default(); QUEUES],
            join: 0,
            waiting: 0,
            needed: 0,
        }
    }

    pub(crate) fn state(&self, waiter: WaiterId) -> State {
        self.waiters[waiter.index()].state
    }

    /// Returns the number of tags requested by a queued or woken waiter.
    pub(crate) fn need(&self, waiter: WaiterId) -> u32 {
        self.waiters[waiter.index()].need
    }

    /// The waiter has its tags, or gave up, after it was woken.
    pub(crate) fn set_idle(&mut self, waiter: WaiterId) {
        self.waiters[waiter.index()].state = State::Idle;
    }

    /// Puts a waiter at the end of the next queue in rotation.
    pub(crate) fn join(&mut self, waiter: WaiterId, need: u32) {
        let queue = self.join;
        self.join = (queue + 1) % QUEUES;
        let last = self.queues[queue].last.replace(waiter);
        match last {
            Some(last) => self.waiters[last.index()].behind = Some(waiter),
            None => self.queues[queue].first = Some(waiter),
        }
        self.waiters[waiter.index()] = Waiter {
            state: State::Queued { queue },
            need,
            before: last,
            behind: None,
        };
        self.queues[queue].len += 1;
        self.waiting += 1;
        self.needed += need;
    }

    /// Takes a waiter out of its queue, wherever in it it stands.
    pub(crate) fn leave(&mut self, waiter: WaiterId, state: State) {
        let Waiter {
            state: State::Queued { queue },
            need,
            before,
            behind,
        } = self.waiters[waiter.index()]
        else {
            return;
        };
        match before {
            Some(before) => self.waiters[before.index()].behind = behind,
            None => self.queues[queue].first = behind,
        }
        match behind {
            Some(behind) => self.waiters[behind.index()].before = before,
            None => self.queues[queue].last = before,
        }
        self.waiters[waiter.index()].state = state;
        self.queues[queue].len -= 1;
        self.waiting -= 1;
        self.needed -= need;
    }

    pub(crate) fn first(&self, queue: usize) -> Option<WaiterId> {
        self.queues[queue].first
    }

    /// The first queue in rotation from `queue` on where anybody waits.
    pub(crate) fn next_from(&self, queue: usize) -> Option<usize> {
        let mut rotation = (queue..QUEUES).chain(0..queue);
        rotation.find(|&queue| self.queues[queue].len > 0)
    }

    /// The longest queue; of several, the first from `queue` on.
    pub(crate) fn longest_from(&self, queue: usize) -> Option<usize> {
        let longest = self.queues.iter().map(|queue| queue.len).max()?;
        let mut rotation = (queue..QUEUES).chain(0..queue);
        rotation.find(|&queue| longest > 0 && self.queues[queue].len == longest)
    }

    /// By how much the longest queue is longer than the shortest.
    pub(crate) fn imbalance(&self) -> u32 {
        let lens = || self.queues.iter().map(|queue| queue.len);
        lens().max().unwrap_or(0) - lens().min().unwrap_or(0)
    }
}

/// Number of queues, as in the published mechanism.
pub(crate) const QUEUES: usize = 8;
/// The most that one call wakes; a batch of the published mechanism.
pub(crate) const WAKES_MAX: usize = 8;
