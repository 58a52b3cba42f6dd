//! Poll group: the loop of one thread over its connections, devices and buffers.

use std::io;
use std::sync::Arc;

use fathom_block::Admission;
use fathom_core::{Nanos, Tick};
use fathom_sys::clock::Clock;
use fathom_sys::epoll::{Epoll, Events, Interest};

use super::connections::Connections;
use super::devices::Devices;
use super::listener::Listener;
use super::log::Ended;
use super::mailbox::Message;
use super::running::Shared;
use super::statistics::ThreadStatistics;
use super::timers::Timers;
use super::work::Work;

/// One thread of a target.
///
/// A turn serves all that is ready: receives and starts commands, reaps devices, sends responses.
/// Each connection may do a bounded amount of work in a turn, so that a busy one delays neither
/// others nor new ones. Between turns the thread sleeps until a socket, device, message or timer
/// asks for it.
#[derive(Debug)]
pub(crate) struct PollGroup {
    epoll: Epoll,
    events: Events,
    clock: Clock,
    /// Listening sockets, on the first thread.
    listener: Option<Listener>,
    connections: Connections,
    timers: Timers,
    work: Work,
    /// Memory of the next list of connections with input.
    served: Vec<u32>,
    /// Buffers came back in the last round, for which requests may wait.
    has_grants: bool,
    stops_at: Option<Tick>,
}

impl PollGroup {
    /// Creates the group of the calling thread.
    pub(crate) fn new(
        thread: u32,
        shared: &Arc<Shared>,
        listener: Option<Listener>,
        (devices, admission): (Devices, Admission),
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let waker = shared.config.wakers.of(thread);
        epoll.add(waker, WAKER, Interest::Readable)?;
        for socket in listener.iter().flat_map(Listener::sockets) {
            epoll.add(socket, LISTENER, Interest::Changes)?;
        }
        let mut failed = Ok(());
        devices.descriptors(&mut |fd| {
            if let Err(error) = epoll.add(fd, DEVICE, Interest::Readable) {
                failed = Err(error);
            }
        });
        failed?;
        let limits = &shared.config.limits;
        let clock = shared.clock;
        Ok(Self {
            epoll,
            events: Events::new(EVENTS),
            clock,
            listener,
            connections: Connections::default(),
            timers: Timers::new(limits),
            work: Work::new(thread, shared, (devices, admission), clock.now()),
            served: Vec::new(),
            has_grants: false,
            stops_at: None,
        })
    }

    /// Serves until the target stops; returns the counters then.
    pub(crate) fn run(mut self) -> io::Result<ThreadStatistics> {
        loop {
            let timeout = self.timeout();
            self.epoll.wait(&mut self.events, timeout)?;
            self.work.now = self.clock.now();
            self.work.counters.turns += 1;
            self.take_events();
            self.serve();
            if self.timers.is_due(self.work.now) {
                self.check_timers();
            }
            self.remove_ended();
            while let Some(thread) = self.work.admission.wake() {
                self.work.shared.config.wakers.wake(thread);
            }
            if self.has_stopped() {
                return Ok(self.statistics());
            }
        }
    }

    /// Returns the longest time to sleep.
    fn timeout(&self) -> Option<Nanos> {
        let work = &self.work;
        let is_busy = !work.active.is_empty() || !work.dirty.is_empty() || self.has_grants;
        if is_busy || work.shared.config.busy_poll {
            return Some(Nanos::ZERO);
        }
        let now = self.clock.now();
        let listener = self.listener.as_ref().and_then(Listener::next);
        let timers = self.timers.next(self.connections.count > 0);
        let coarse = [listener, self.stops_at, timers]
            .into_iter()
            .flatten()
            .min();
        let exact = [work.devices.next(), work.admission.next()];
        let exact = exact.into_iter().flatten().min();
        let waits = [
            coarse.map(|time| time.since(now)),
            exact.map(|time| before_wake_up(time.since(now))),
        ];
        waits.into_iter().flatten().min()
    }

    fn take_events(&mut self) {
        let mut has_mail = false;
        let mut has_arrivals = false;
        let mut is_idle = true;
        for event in self.events.iter() {
            is_idle = false;
            match event.token {
                WAKER => has_mail = true,
                LISTENER => has_arrivals = true,
                DEVICE => {}
                _ => self.connections.set_ready(event, &mut self.work),
            }
        }
        self.work.counters.idle_turns += u64::from(is_idle);
        if has_mail {
            self.work.devices.rouse();
            self.take_messages();
        }
        let now = self.work.now;
        if let Some(listener) = &mut self.listener
            && (has_arrivals || listener.next().is_some_and(|next| next <= now))
        {
            listener.accept(&mut self.work);
            self.take_messages();
        }
    }

    fn take_messages(&mut self) {
        let shared = Arc::clone(&self.work.shared);
        let mailbox = &shared.mailboxes[self.work.thread as usize];
        shared.config.wakers.of(self.work.thread).clear();
        for message in mailbox.take() {
            match message {
                Message::Accepted(stream, peer) => {
                    let added = self
                        .connections
                        .add((stream, peer), &self.epoll, &mut self.work);
                    if added.is_err() {
                        shared.forget(peer);
                        mailbox.subtract_load();
                    }
                }
                Message::Close(id, reason) => {
                    if let Some(connection) = self.connections.find(id) {
                        connection.close(reason, &mut self.work);
                    }
                }
                Message::Count(reply) => {
                    // Fails where the caller has gone.
                    let _gone = reply.send(self.statistics());
                }
                Message::Stop => self.stop(),
            }
        }
    }

    /// Handles all input and output that is ready.
    fn serve(&mut self) {
        // Those that go on gather in the other list; neither gives its memory up.
        let mut active = std::mem::replace(&mut self.work.active, std::mem::take(&mut self.served));
        for &index in &active {
            if let Some(connection) = self.connections.get(index) {
                connection.is_active = false;
                connection.receive(&mut self.work);
            }
        }
        active.clear();
        self.served = active;
        self.has_grants = false;
        for _ in 0..ROUNDS {
            let is_settled = self.settle();
            if is_settled && self.work.dirty.is_empty() {
                return;
            }
            self.flush();
        }
        // What became free in the last round, or is left, is for the next turn.
        self.has_grants = true;
    }

    /// Reaps devices and passes buffers on until nothing moves any more, or there was enough of it:
    /// commands on large ranges are many commands of a device that may complete each at once.
    /// Returns whether nothing moves.
    fn settle(&mut self) -> bool {
        let (connections, work) = (&mut self.connections, &mut self.work);
        work.reaps_left = REAPS;
        while work.reaps_left > 0 {
            let mut is_done = true;
            while work.reaps_left > 0
                && let Some(reaped) = work.devices.completed(work.now)
            {
                work.reaps_left -= 1;
                work.admission.served(reaped.device, reaped.took);
                let owner = reaped.owner;
                if let Some(connection) = connections.get(owner.connection) {
                    connection.handle_finished(owner.slot, reaped.finished, work);
                }
                is_done = false;
            }
            while let Some(owner) = work.devices.retry() {
                if let Some(connection) = connections.get(owner.connection) {
                    connection.issue_again(owner.slot, work);
                }
                is_done = false;
            }
            while let Some((ticket, buffer)) = work.admission.granted(work.now) {
                let (connection, slot) = owner_of(ticket);
                if let Some(connection) = connections.get(connection) {
                    connection.granted(slot, buffer, work);
                }
                is_done = false;
            }
            if is_done {
                return true;
            }
        }
        work.devices.pass_turn();
        false
    }

    /// Sends what connections have queued.
    fn flush(&mut self) {
        let mut dirty = std::mem::take(&mut self.work.dirty);
        for &index in &dirty {
            if let Some(connection) = self.connections.get(index) {
                connection.flush(&mut self.work);
            }
        }
        dirty.clear();
        // A send adds nothing to send.
        std::mem::swap(&mut self.work.dirty, &mut dirty);
        self.work.dirty.extend(dirty);
    }

    fn check_timers(&mut self) {
        let limits = self.work.shared.config.limits;
        let now = self.work.now;
        self.timers.begin(now);
        (self.work.shared).publish(self.work.thread, &self.work.namespaces);
        for connection in self.connections.list.iter_mut().flatten() {
            match connection.deadline(&limits) {
                Some((deadline, reason)) if deadline <= now => {
                    connection.close(reason, &mut self.work);
                }
                Some((deadline, _)) => self.timers.add(deadline),
                None => {}
            }
        }
    }

    /// Drops connections that are over.
    fn remove_ended(&mut self) {
        for index in std::mem::take(&mut self.work.ended) {
            if self.connections.get(index).is_some_and(|one| one.is_over()) {
                let peer = self.connections.remove(index);
                self.work.shared.forget(peer);
            }
        }
    }

    /// Ends all connections; devices finish what they have.
    fn stop(&mut self) {
        self.listener = None;
        self.stops_at = Some(self.work.now + STOP_MAX);
        for connection in self.connections.list.iter_mut().flatten() {
            connection.flush(&mut self.work);
            connection.close(Ended::Stopped, &mut self.work);
        }
    }

    fn has_stopped(&self) -> bool {
        self.stops_at
            .is_some_and(|stops_at| self.connections.count == 0 || stops_at <= self.work.now)
    }

    fn statistics(&self) -> ThreadStatistics {
        let work = &self.work;
        let connections = self.connections.list.iter().flatten();
        ThreadStatistics {
            thread: work.thread,
            turns: work.counters.turns,
            idle_turns: work.counters.idle_turns,
            receives: work.counters.receives,
            sends: work.counters.sends,
            received_bytes: work.counters.received_bytes,
            sent_bytes: work.counters.sent_bytes,
            accepted: work.counters.accepted,
            turned_away: work.counters.turned_away,
            refused_connects: work.counters.refused_connects,
            admission: work.admission.statistics(),
            namespaces: work.namespaces.clone(),
            unnamed: work.unnamed,
            connections: connections.map(|one| one.statistics()).collect(),
        }
    }
}

/// Returns how long to sleep before something that is due in `wait`: less by the time that a
/// wake-up may take, which is spent polling. A delay of 1 ms would become one of 1.1 ms.
fn before_wake_up(wait: Nanos) -> Nanos {
    Nanos::new(wait.get().saturating_sub(WAKE_UP.get()))
}

/// Returns the connection and the slot of a ticket.
fn owner_of(ticket: u64) -> (u32, u16) {
    let connection = u32::try_from(ticket >> 16).unwrap_or(u32::MAX);
    // Cannot truncate: 16 bits.
    let slot = u16::try_from(ticket & 0xffff).unwrap_or(u16::MAX);
    (connection, slot)
}

const WAKER: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
const DEVICE: u64 = u64::MAX - 2;

/// Events of one wait: some more than are ready at a time.
const EVENTS: u16 = 256;
/// Completions of devices that are handled before their responses are sent; one after which its
/// request goes on counts as many.
const REAPS: u32 = 256;
/// Rounds of sending and passing buffers on before sockets have their turn again.
const ROUNDS: u32 = 4;
/// Time that the kernel may take to wake a thread: it is below this on common machines, virtual
/// ones included. Polling costs this much per device time that is waited for, and nothing while
/// nothing is in flight.
const WAKE_UP: Nanos = Nanos::from_micros(80);
/// Longest wait for devices when the target stops.
const STOP_MAX: Nanos = Nanos::from_secs(2);
