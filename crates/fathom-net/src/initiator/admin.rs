//! The admin queue of a controller: from the first connection to its shutdown.

use fathom_core::{Nanos, Tick};
use fathom_nvme::{
    AdminCommand, CommandData, Completion, ControllerFacts, HostConfig, HostController,
    HostQueueConfig,
};
use fathom_sys::clock::Clock;
use fathom_sys::epoll::{Epoll, Events, Interest, Waker};

use crate::initiator::address::ControllerAddress;
use crate::initiator::error::LinkError;
use crate::initiator::link::{Link, Owner};
use crate::initiator::options::Options;

/// Connected controller, by its admin queue.
#[derive(Debug)]
pub(crate) struct Admin {
    link: Link,
    controller: HostController,
    answer: Answer,
    clock: Clock,
    epoll: Epoll,
    events: Events,
}

/// A controller to connect to, and the terms.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) address: ControllerAddress,
    pub(crate) options: Options,
    /// Namespaces to identify.
    pub(crate) namespaces: Vec<u32>,
    pub(crate) clock: Clock,
}

/// Needs of the I/O queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueNeeds {
    /// Queues; 0: identify the controller only.
    pub(crate) queues: u16,
    /// Ops in flight on each.
    pub(crate) ops: u32,
    /// Bytes of an op.
    pub(crate) op_bytes: u32,
}

impl Terms {
    /// Returns the NQN under which the host connects.
    pub(crate) fn host_nqn(&self) -> &str {
        let own = self.address.host_nqn.as_ref();
        own.unwrap_or(&self.options.host_nqn)
    }
}

impl Admin {
    /// Connects, enables and identifies a controller.
    pub(crate) fn connect(terms: &Terms) -> Result<Self, LinkError> {
        let timeout = terms.options.connect_timeout;
        let config = HostQueueConfig {
            commands: HostController::ADMIN_COMMANDS,
            digests: terms.options.digests,
            in_capsule_bytes: IN_CAPSULE_BYTES,
            data_bytes_max: ANSWER_BYTES_MAX,
        };
        let link = Link::connect(&terms.address, config, BUFFER_BYTES, timeout)?;
        let host = HostConfig {
            subsystem_nqn: terms.address.subsystem_nqn.clone(),
            host_nqn: terms.host_nqn().to_owned(),
            host_id: terms.options.host_id,
            keep_alive: terms.options.keep_alive,
            queues: terms.options.queues,
            namespaces: terms.namespaces.clone(),
            timeout,
        };
        let failed = |error| LinkError::Socket("epoll", error);
        let epoll = Epoll::new().map_err(failed)?;
        epoll.add(&link, LINK, Interest::Changes).map_err(failed)?;
        let mut admin = Self {
            link,
            controller: HostController::new(host, terms.clock.now()),
            answer: Answer::default(),
            clock: terms.clock,
            epoll,
            events: Events::new(2),
        };
        admin.initialize(timeout)?;
        while admin.controller.facts().is_none() {
            admin.step(None)?;
        }
        Ok(admin)
    }

    /// Returns the facts about the controller.
    pub(crate) fn facts(&self) -> &ControllerFacts {
        self.controller.facts().expect("it was identified")
    }

    /// Connects the I/O queues.
    pub(crate) fn connect_queues(
        &mut self,
        terms: &Terms,
        needs: QueueNeeds,
    ) -> Result<Vec<Link>, LinkError> {
        let granted = self.facts().queues;
        if granted < needs.queues {
            let wanted = needs.queues;
            return Err(LinkError::Queues { wanted, granted });
        }
        let each = (1..=needs.queues).map(|qid| self.connect_queue(terms, needs, qid));
        each.collect()
    }

    /// Sends Keep Alives until the controller is lost, or until `stop` says to look elsewhere after
    /// its waker was used.
    pub(crate) fn keep(&mut self, waker: &Waker, stop: impl Fn() -> bool) -> Result<(), LinkError> {
        let failed = |error| LinkError::Socket("epoll", error);
        self.epoll
            .add(waker, WAKER, Interest::Readable)
            .map_err(failed)?;
        while !stop() {
            self.step(Some(waker))?;
        }
        Ok(())
    }

    /// Shuts the controller down. I/O queues are closed by then, as Linux does it.
    pub(crate) fn shut_down(mut self) {
        self.controller.shut_down(self.clock.now());
        while !self.controller.has_ended() {
            // A controller that does not answer loses its connection anyway.
            if self.step(None).is_err() {
                return;
            }
        }
    }

    /// Initializes the connection.
    fn initialize(&mut self, timeout: Nanos) -> Result<(), LinkError> {
        let deadline = self.clock.now() + timeout;
        while !self.answer.is_initialized {
            self.link.flush(&mut self.answer)?;
            let place = (&self.epoll, &mut self.events);
            wait(place, &mut self.link, &self.clock, deadline)?;
            self.receive()?;
        }
        Ok(())
    }

    /// Sends what is due, and waits until something happens.
    fn step(&mut self, waker: Option<&Waker>) -> Result<(), LinkError> {
        let now = self.clock.now();
        self.controller.check(now)?;
        if let Some(command) = self.controller.next(now) {
            send(&mut self.link, &mut self.answer, &command)?;
        }
        self.link.flush(&mut self.answer)?;
        let timeout = self
            .controller
            .deadline()
            .map(|deadline| remaining(deadline, now));
        if self.answer.completion.is_none() {
            let waited = self.epoll.wait(&mut self.events, timeout);
            waited.map_err(|error| LinkError::Socket("epoll", error))?;
        }
        for event in self.events.iter() {
            match (event.token, waker) {
                (LINK, _) => self.link.changed(event.is_closed),
                (WAKER, Some(waker)) => waker.clear(),
                _ => {}
            }
        }
        let received = self.receive();
        // A refusal says more than the end that follows it.
        if let Some(completion) = self.answer.completion.take() {
            let data = self.answer.data.as_slice();
            self.controller
                .complete(&completion, data, self.clock.now())?;
        }
        received
    }

    /// Receives what is there.
    fn receive(&mut self) -> Result<(), LinkError> {
        while self.link.receive(&mut self.answer)? {}
        Ok(())
    }

    fn connect_queue(&self, terms: &Terms, needs: QueueNeeds, qid: u16) -> Result<Link, LinkError> {
        let timeout = terms.options.connect_timeout;
        let facts = self.facts();
        let parts = needs.op_bytes.div_ceil(facts.data_bytes_max.max(1)).max(1);
        let commands = needs
            .ops
            .saturating_mul(parts)
            .min(facts.commands_max.into());
        let commands = u16::try_from(commands).unwrap_or(u16::MAX);
        let config = HostQueueConfig {
            commands: commands.clamp(1, fathom_nvme::HostQueue::COMMANDS_MAX),
            digests: terms.options.digests,
            in_capsule_bytes: facts.in_capsule_bytes,
            data_bytes_max: facts.data_bytes_max,
        };
        let buffer = buffer_bytes(needs);
        let mut link = Link::connect(&terms.address, config, buffer, timeout)?;
        let failed = |error| LinkError::Socket("epoll", error);
        let epoll = Epoll::new().map_err(failed)?;
        epoll.add(&link, LINK, Interest::Changes).map_err(failed)?;
        let (mut events, mut answer) = (Events::new(1), Answer::default());
        let deadline = self.clock.now() + timeout;
        let mut is_sent = false;
        let completion = loop {
            if answer.is_initialized && !is_sent {
                let connect = self.controller.connect_queue(qid, config.commands);
                send(&mut link, &mut answer, &connect)?;
                is_sent = true;
            }
            link.flush(&mut answer)?;
            if let Some(completion) = answer.completion {
                break completion;
            }
            wait((&epoll, &mut events), &mut link, &self.clock, deadline)?;
            while link.receive(&mut answer)? {}
        };
        match completion.status.is_success() {
            true => Ok(link),
            false => Err(HostController::queue_refused(&completion).into()),
        }
    }
}

/// Answer to the one command in flight.
#[derive(Debug, Default)]
struct Answer {
    is_initialized: bool,
    data: Vec<u8>,
    completion: Option<Completion>,
}

impl Owner for Answer {
    fn place(&mut self, _tag: u32, offset: u32, length: u32) -> &mut [u8] {
        &mut self.data[offset as usize..][..length as usize]
    }

    fn data(&self, _tag: u32, _offset: u32, _length: u32) -> &[u8] {
        // Commands of the admin queue carry copies of their data.
        &[]
    }

    fn completed(&mut self, _tag: u32, completion: &Completion) {
        self.completion = Some(*completion);
    }

    fn initialized(&mut self) {
        self.is_initialized = true;
    }
}

/// Sends a command and makes room for its answer.
fn send(link: &mut Link, answer: &mut Answer, command: &AdminCommand) -> Result<(), LinkError> {
    answer.completion = None;
    answer.data.clear();
    answer.data.resize(command.answer_bytes as usize, 0);
    let data = match (command.data.is_empty(), command.answer_bytes) {
        (false, _) => CommandData::Inline(&command.data),
        (true, 0) => CommandData::None,
        (true, bytes) => CommandData::Read(bytes),
    };
    let is_taken = link.submit(command.command, 0, 0, data);
    debug_assert!(is_taken, "one command is in flight at a time");
    link.flush(answer)
}

/// Waits for the socket, the only one of the set, until a deadline.
fn wait(
    (epoll, events): (&Epoll, &mut Events),
    link: &mut Link,
    clock: &Clock,
    deadline: Tick,
) -> Result<(), LinkError> {
    let left = remaining(deadline, clock.now());
    if left.is_zero() {
        return Err(LinkError::Silent("initialization of the connection"));
    }
    let waited = epoll.wait(events, Some(left));
    waited.map_err(|error| LinkError::Socket("epoll", error))?;
    // The end may come with the last bytes, in one event.
    events
        .iter()
        .for_each(|event| link.changed(event.is_closed));
    Ok(())
}

fn remaining(deadline: Tick, now: Tick) -> Nanos {
    match deadline > now {
        true => deadline - now,
        false => Nanos::ZERO,
    }
}

/// Returns the size of a receive buffer. It holds the answers of a full queue of small ops; large
/// ones are received into their place, where a large buffer would only catch part of the next.
fn buffer_bytes(needs: QueueNeeds) -> usize {
    if needs.op_bytes >= LARGE_OP_BYTES {
        return BUFFER_BYTES;
    }
    let bytes = u64::from(needs.ops) * (u64::from(needs.op_bytes) + PDU_BYTES);
    usize::try_from(bytes.clamp(BUFFER_BYTES as u64, BUFFER_BYTES_MAX)).unwrap_or(BUFFER_BYTES)
}

const LINK: u64 = 0;
const WAKER: u64 = 1;

/// Of the admin queue, by the specification.
const IN_CAPSULE_BYTES: u32 = 8192;
/// An Identify page.
const ANSWER_BYTES_MAX: u32 = 4096;

const BUFFER_BYTES: usize = 8192;
const BUFFER_BYTES_MAX: u64 = 256 << 10;
const LARGE_OP_BYTES: u32 = 32 << 10;
/// Header of data, and digests.
const PDU_BYTES: u64 = 32;
