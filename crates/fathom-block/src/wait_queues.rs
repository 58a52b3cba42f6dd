//! Waiters for tags: eight queues, linked by the waiters' numbers.

/// Number of a waiter, below the limit of its set: a thread, or a job of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(u32);

impl WaiterId {
    /// Creates the waiter with this number, counted from 0.
    #[must_use]
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the waiter's number, as an index.
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
    /// Empty list.
    pub(crate) const NONE: Self = Self {
        waiters: [WaiterId(0); WAKES_MAX],
        count: 0,
    };

    /// Iterates over the waiters, in the order in which to wake them.
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
    /// Not waiting.
    Idle,
    /// In this queue.
    Queued { queue: usize },
    /// Woken, and has not repeated its request yet.
    Woken,
}

/// The queues, protected by one lock.
#[derive(Debug)]
pub(crate) struct WaitQueues {
    waiters: Box<[Waiter]>,
    queues: [Queue; QUEUES],
    /// Queue that the next waiter joins.
    join: usize,
    /// Number of queued waiters.
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

    /// Ends the wait of a woken waiter, which has its tags or gave up.
    pub(crate) fn set_idle(&mut self, waiter: WaiterId) {
        self.waiters[waiter.index()].state = State::Idle;
    }

    /// Appends a waiter to the next queue in rotation.
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

    /// Removes a waiter from its queue, at any position.
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

    /// Returns the first queue in rotation, from `queue` on, with waiters.
    pub(crate) fn next_from(&self, queue: usize) -> Option<usize> {
        let mut rotation = (queue..QUEUES).chain(0..queue);
        rotation.find(|&queue| self.queues[queue].len > 0)
    }

    /// Returns the longest queue; of equally long ones, the first from `queue` on.
    pub(crate) fn longest_from(&self, queue: usize) -> Option<usize> {
        let longest = self.queues.iter().map(|queue| queue.len).max()?;
        let mut rotation = (queue..QUEUES).chain(0..queue);
        rotation.find(|&queue| longest > 0 && self.queues[queue].len == longest)
    }

    /// Returns the difference between the longest and the shortest queue.
    pub(crate) fn imbalance(&self) -> u32 {
        let lens = || self.queues.iter().map(|queue| queue.len);
        lens().max().unwrap_or(0) - lens().min().unwrap_or(0)
    }
}

/// Number of queues, as in the published mechanism.
pub(crate) const QUEUES: usize = 8;
/// Largest number of waiters that one call wakes; a batch of the published mechanism.
pub(crate) const WAKES_MAX: usize = 8;
