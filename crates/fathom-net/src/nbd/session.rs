//! An export as the job's thread sees it, with its connections.

use fathom_core::{Direction, Errno, Nanos, Op, OpKind, RemoteFile, Tick};
use fathom_nbd::{Command, Export, ExportAddress};
use fathom_sys::epoll::{Epoll, Interest};

use crate::nbd::error::LinkError;
use crate::nbd::link::{Link, LinkConfig};
use crate::nbd::options::Options;
use crate::nbd::slots::{Slots, Terms};

/// Connections of a job to an export.
#[derive(Debug)]
pub(crate) struct Session {
    /// Token of the first connection.
    token: u64,
    export: Export,
    terms: Terms,
    links: Vec<LinkState>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few per job, and a box would cost an indirection per op"
)]
enum LinkState {
    Up(Link),
    /// Lost; its ops fail with this errno.
    Lost(Errno),
}

impl Session {
    /// Connects; the tokens of connections count up from `token`.
    pub(crate) fn connect(
        address: &ExportAddress,
        config: LinkConfig,
        options: &Options,
        is_fua: bool,
        (epoll, token): (&Epoll, u64),
    ) -> Result<Self, LinkError> {
        let (first, export) = Link::connect(address, config)?;
        check(&export, options, is_fua)?;
        let mut links = vec![first];
        for _ in 1..options.connections {
            let (link, other) = Link::connect(address, config)?;
            if other != export {
                return Err(LinkError::Differs);
            }
            links.push(link);
        }
        for (link, token) in links.iter().zip(token..) {
            let added = epoll.add(link, token, Interest::Changes);
            added.map_err(|error| LinkError::Socket("epoll_ctl", error))?;
        }
        Ok(Self {
            token,
            export,
            terms: Terms {
                payload_max: export.block.payload_max,
                write: options.write,
                is_fua,
            },
            links: links.into_iter().map(LinkState::Up).collect(),
        })
    }

    /// Returns the size of the export.
    pub(crate) const fn bytes(&self) -> u64 {
        self.export.bytes
    }

    /// Returns whether the server takes ops of a kind.
    #[inline]
    pub(crate) const fn takes(&self, kind: OpKind) -> bool {
        match kind {
            OpKind::Data(Direction::Trim) => self.export.features.can_trim(),
            OpKind::Sync(_) => self.export.features.can_flush(),
            OpKind::Data(Direction::Read | Direction::Write) => true,
        }
    }

    /// Queues an op of which `length` bytes are to be moved.
    #[inline]
    pub(crate) fn begin(&mut self, op: &Op, length: u32, slots: &mut Slots) {
        let index = op.slot.index() % self.links.len();
        match &mut self.links[index] {
            LinkState::Up(link) => {
                let token = self.token + index as u64;
                let (request, buffer_offset) = slots.take(op, length, self.terms, token);
                link.submit(op.slot.get(), request, buffer_offset);
            }
            LinkState::Lost(errno) => slots.finish(op.slot, errno.result()),
        }
    }

    /// Sends what is queued.
    #[inline]
    pub(crate) fn flush(&mut self, slots: &mut Slots) {
        self.each(slots, |link, slots| link.flush(slots));
    }

    /// Receives what is there; looks at each socket if `is_forced`.
    #[inline]
    pub(crate) fn receive(&mut self, slots: &mut Slots, is_forced: bool) {
        self.each(slots, |link, slots| link.receive(slots, is_forced));
    }

    /// Notes that a socket has changed, and whether the server sends no more.
    #[inline]
    pub(crate) fn changed(&mut self, link: usize, is_closed: bool) {
        if let Some(LinkState::Up(link)) = self.links.get_mut(link) {
            link.changed(is_closed);
        }
    }

    /// Returns the time until which an answer may take on any of the connections, if one is
    /// awaited.
    pub(crate) fn quiet_until(&mut self, now: Tick, timeout: Nanos) -> Option<Tick> {
        let links = self.links.iter_mut();
        let waits = links.filter_map(|state| match state {
            LinkState::Up(link) => link.quiet_until(now, timeout),
            LinkState::Lost(_) => None,
        });
        waits.min()
    }

    /// Gives up the connections on which no answer has come in time.
    #[cold]
    pub(crate) fn give_up(&mut self, now: Tick, timeout: Nanos, slots: &mut Slots) {
        self.each(slots, |link, _| match link.quiet_until(now, timeout) {
            Some(until) if until <= now => Err(LinkError::Silent(timeout)),
            _ => Ok(()),
        });
    }

    /// Ends the connections in order.
    pub(crate) fn close(self) {
        for state in self.links {
            if let LinkState::Up(link) = state {
                link.disconnect();
            }
        }
    }

    /// Applies a step to each connection; one that fails is lost.
    #[inline]
    fn each(
        &mut self,
        slots: &mut Slots,
        step: impl Fn(&mut Link, &mut Slots) -> Result<(), LinkError>,
    ) {
        for (state, token) in self.links.iter_mut().zip(self.token..) {
            if let LinkState::Up(link) = state
                && let Err(error) = step(link, slots)
            {
                *state = lose(&error, token, slots);
            }
        }
    }
}

#[cold]
fn lose(error: &LinkError, token: u64, slots: &mut Slots) -> LinkState {
    let errno = error.errno();
    slots.explain_loss(errno, error.to_string());
    slots.fail(token, errno);
    LinkState::Lost(errno)
}

/// Connects to a server to learn the size of an export, and what may be done with it.
pub(crate) fn look_up(
    address: &ExportAddress,
    config: LinkConfig,
    options: &Options,
) -> Result<RemoteFile, LinkError> {
    let (link, export) = Link::connect(address, config)?;
    link.disconnect();
    check(&export, options, false)?;
    Ok(RemoteFile {
        bytes: export.bytes,
        block_bytes: export.block.min,
        directions: match (export.features.is_read_only(), export.features.can_trim()) {
            (true, _) => &[Direction::Read],
            (false, true) => &Direction::ALL,
            (false, false) => &[Direction::Read, Direction::Write],
        },
    })
}

/// Checks that an export supports what the options need.
fn check(export: &Export, options: &Options, is_fua: bool) -> Result<(), LinkError> {
    let features = export.features;
    let is_shared = features.can_multi_conn() || features.is_read_only();
    if options.connections > 1 && !is_shared {
        return Err(LinkError::OneConnection);
    }
    let lacks = |option, what| Err(LinkError::Lacks { option, what });
    if options.write == Command::WriteZeroes && !features.can_write_zeroes() {
        return lacks("write_mode", "writing zeroes");
    }
    if is_fua && !features.can_fua() && !features.is_read_only() {
        return lacks("sync", "forced unit access (FUA)");
    }
    Ok(())
}
