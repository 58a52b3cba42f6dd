//! A controller as the job's thread sees it, with its I/O queues.

use std::sync::Arc;

use fathom_core::{EngineError, Errno, Nanos, Slot, Tick};
use fathom_engine::RepeatedRequests;
use fathom_nvme::ControllerFacts;
use fathom_sys::epoll::{Epoll, Interest, Waker};

use crate::initiator::admin::{QueueNeeds, Terms};
use crate::initiator::error::LinkError;
use crate::initiator::keeper::{Connected, Keeper, News};
use crate::initiator::path::Path;
use crate::initiator::slots::{Extent, Orphan, Slots};

/// Connection of a job to a controller. Files of the same subsystem share it.
#[derive(Debug)]
pub(crate) struct Session {
    /// Number in the engine's list.
    number: u32,
    terms: Terms,
    needs: QueueNeeds,
    /// Dropped before the keeper: I/O queues are closed before the controller is shut down.
    state: State,
    keeper: Option<Keeper>,
    facts: ControllerFacts,
    /// An op has completed on this connection, and the keeper was told.
    is_of_use: bool,
    /// Reason for which the last connection was lost or given up.
    failure: Option<String>,
    /// Counter of the ops that were sent again on another connection.
    repeated: RepeatedRequests,
    /// Files that are open.
    open: u32,
}

#[derive(Debug)]
enum State {
    /// Never connected, or closed.
    Closed,
    Up {
        /// Number of the connection.
        connection: u32,
        paths: Vec<Path>,
    },
    /// Lost; its ops wait.
    Down,
    /// Given up; its ops fail.
    Failed,
}

impl Session {
    pub(crate) const fn new(
        number: u32,
        terms: Terms,
        needs: QueueNeeds,
        repeated: RepeatedRequests,
    ) -> Self {
        Self {
            number,
            terms,
            needs,
            state: State::Closed,
            keeper: None,
            facts: EMPTY,
            is_of_use: false,
            failure: None,
            repeated,
            open: 0,
        }
    }

    pub(crate) const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the reason for which the controller was given up.
    pub(crate) fn failure(&self) -> Option<&str> {
        let is_failed = matches!(self.state, State::Failed);
        self.failure.as_deref().filter(|_| is_failed)
    }

    /// Adds a namespace, before the session is opened, and returns its index.
    pub(crate) fn add(&mut self, nsid: u32) -> usize {
        let namespaces = &mut self.terms.namespaces;
        if let Some(index) = namespaces.iter().position(|&known| known == nsid) {
            return index;
        }
        namespaces.push(nsid);
        namespaces.len() - 1
    }

    /// Opens a file; the first connects.
    pub(crate) fn open(&mut self, epoll: &Epoll, waker: &Arc<Waker>) -> Result<(), EngineError> {
        if self.open == 0 || matches!(self.state, State::Failed) {
            self.connect(epoll, waker).map_err(|error| {
                self.keeper = None;
                error.of_engine(&self.terms.address, self.terms.host_nqn())
            })?;
        }
        self.open += 1;
        Ok(())
    }

    /// Closes a file; the last shuts the controller down.
    pub(crate) fn close(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            self.state = State::Closed;
            self.keeper = None;
        }
    }

    /// Returns the terms of ops on a namespace, and its size.
    pub(crate) fn extent(&self, index: usize) -> (Extent, u64) {
        let namespace = self.facts.namespaces[index];
        let extent = Extent {
            session: self.number,
            nsid: self.terms.namespaces[index],
            block_shift: namespace.block_shift,
            part_bytes: part_bytes(&self.facts, namespace.block_shift),
        };
        (extent, namespace.blocks << namespace.block_shift)
    }

    /// Returns whether the controller has Dataset Management.
    pub(crate) const fn can_trim(&self) -> bool {
        self.facts.has_dataset_management
    }

    /// Queues a slot's op, or fails it if the controller was given up.
    #[inline]
    pub(crate) fn begin(&mut self, slot: Slot, slots: &mut Slots) {
        match &mut self.state {
            State::Up { paths, .. } => {
                let count = paths.len();
                paths[slot.index() % count].begin(slot, slots);
            }
            State::Down | State::Closed => {}
            State::Failed => slots.finish(slot, GIVEN_UP.result()),
        }
    }

    /// Sends what is queued.
    #[inline]
    pub(crate) fn flush(&mut self, slots: &mut Slots) {
        if let State::Up { paths, .. } = &mut self.state {
            let sent = paths.iter_mut().try_for_each(|path| path.flush(slots));
            if let Err(error) = sent {
                self.lose(&error);
            }
        }
    }

    /// Receives what is there; looks at each socket if `is_forced`.
    #[inline]
    pub(crate) fn receive(&mut self, slots: &mut Slots, is_forced: bool) {
        if let State::Up { paths, .. } = &mut self.state {
            let before = slots.ready();
            let received = paths
                .iter_mut()
                .try_for_each(|path| path.receive(slots, is_forced));
            if !self.is_of_use && slots.ready() > before {
                self.note_use();
            }
            if let Err(error) = received {
                self.lose(&error);
            }
        }
    }

    /// Gives the connection up if it has not answered an op for `limit`.
    #[cold]
    pub(crate) fn check_answers(&mut self, now: Tick, limit: Nanos, slots: &mut Slots) {
        if matches!(self.state, State::Up { .. }) && slots.are_overdue(self.number, now, limit) {
            self.lose(&LinkError::Unanswered(limit));
        }
    }

    /// Notes that a socket has changed, and whether the controller sends no more.
    #[inline]
    pub(crate) fn changed(&mut self, path: usize, is_closed: bool) {
        if let State::Up { paths, .. } = &mut self.state
            && let Some(path) = paths.get_mut(path)
        {
            path.changed(is_closed);
        }
    }

    /// Handles what the keeper has to tell; returns whether the terms of ops may have changed.
    #[inline]
    pub(crate) fn look(&mut self, epoll: &Epoll, slots: &mut Slots) -> bool {
        let mut has_news = false;
        while let Some(news) = self.keeper.as_ref().and_then(Keeper::news) {
            self.on_news(news, epoll, slots);
            has_news = true;
        }
        has_news
    }

    fn connect(&mut self, epoll: &Epoll, waker: &Arc<Waker>) -> Result<(), LinkError> {
        self.keeper = None;
        let keeper = Keeper::start(self.terms.clone(), self.needs, Arc::clone(waker))?;
        loop {
            match keeper.wait_for_news() {
                Some(News::Up(connected)) => {
                    self.install(connected, epoll)?;
                    self.keeper = Some(keeper);
                    return Ok(());
                }
                Some(News::Failed(error)) => return Err(error),
                Some(News::Down) => {}
                None => return Err(LinkError::Closed),
            }
        }
    }

    #[cold]
    fn on_news(&mut self, news: News, epoll: &Epoll, slots: &mut Slots) {
        match news {
            News::Up(connected) => {
                if let Err(error) = self.install(connected, epoll) {
                    return self.give_up(&error.to_string(), slots);
                }
                let orphans = self.orphans(slots);
                if orphans.is_empty() {
                    self.note_use();
                }
                for Orphan { slot, was_sent } in orphans {
                    if was_sent {
                        self.repeated.count();
                    }
                    self.begin(slot, slots);
                }
                self.flush(slots);
            }
            News::Down => self.state = State::Down,
            News::Failed(error) => {
                // The queue's error is more precise than the keeper's, which knows only that the
                // connection closed.
                let known = self.failure.take();
                let why = match (&error, known) {
                    (LinkError::Closed, Some(known)) => known,
                    _ => error.to_string(),
                };
                self.give_up(&why, slots);
            }
        }
    }

    /// Takes a connection, unless its namespaces are not those of the connection before: data must
    /// not go to others that only have their address.
    fn install(&mut self, connected: Connected, epoll: &Epoll) -> Result<(), LinkError> {
        let known = &self.facts.namespaces;
        if !known.is_empty() && *known != connected.facts.namespaces {
            return Err(LinkError::Replaced);
        }
        let ops = self.needs.ops as usize;
        let mut paths = Vec::with_capacity(connected.links.len());
        for (index, link) in (0..).zip(connected.links) {
            let token = u64::from(self.number) << 32 | index;
            let added = epoll.add(&link, token, Interest::Changes);
            added.map_err(|error| LinkError::Socket("epoll", error))?;
            paths.push(Path::new(self.number, link, ops));
        }
        self.facts = connected.facts;
        self.is_of_use = false;
        self.state = State::Up {
            connection: connected.number,
            paths,
        };
        Ok(())
    }

    /// Closes the I/O queues after a failure of one: like Linux, by giving up all of them.
    #[cold]
    fn lose(&mut self, error: &LinkError) {
        self.failure = Some(error.to_string());
        if let (State::Up { connection, .. }, Some(keeper)) = (&self.state, &self.keeper) {
            keeper.lost(*connection);
        }
        self.state = State::Down;
    }

    /// Tells the keeper that the connection is of use.
    #[cold]
    fn note_use(&mut self) {
        self.is_of_use = true;
        if let (State::Up { connection, .. }, Some(keeper)) = (&self.state, &self.keeper) {
            keeper.was_of_use(*connection);
        }
    }

    #[cold]
    fn give_up(&mut self, why: &str, slots: &mut Slots) {
        self.state = State::Failed;
        self.failure = Some(why.to_owned());
        for orphan in self.orphans(slots) {
            slots.finish(orphan.slot, GIVEN_UP.result());
        }
    }

    /// Returns the ops that have lost their commands.
    fn orphans(&self, slots: &mut Slots) -> Vec<Orphan> {
        slots.orphans(self.number, |shift| part_bytes(&self.facts, shift))
    }
}

/// Returns the bytes of data per command at most: whole blocks, of which there are at most 65,536.
fn part_bytes(facts: &ControllerFacts, block_shift: u8) -> u32 {
    let most = u64::from(facts.data_bytes_max).min(1 << (16 + block_shift));
    let whole = most >> block_shift << block_shift;
    u32::try_from(whole).unwrap_or(1 << 31)
}

/// Result of an op whose controller cannot be reached: the path to it is lost.
const GIVEN_UP: Errno = Errno::ENOLINK;

const EMPTY: ControllerFacts = ControllerFacts {
    cntlid: 0,
    queues: 0,
    commands_max: 0,
    data_bytes_max: 0,
    in_capsule_bytes: 0,
    has_dataset_management: false,
    model: String::new(),
    serial: String::new(),
    namespaces: Vec::new(),
};
