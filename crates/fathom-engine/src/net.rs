//! `net`: transfers over TCP, UDP or a Unix socket, in order.
//!
//! ```text
//!  writer ── block ─────────────────────────► reader         an op is a block, or with `pingpong`
//!         ◄───────────── block (pingpong) ───               a block and its way back
//! ```
//!
//! Calls wait for 100 ms at most, then the op goes on in `wait`, so that the driver sees a stop
//! request. A peer that has finished ends the job in order; one that is cut off fails it.

mod connect;
mod link;
pub(crate) mod options;

use std::io;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineStep, Errno, Op,
    OpKind, Queueing, Slot, Storage, Submitted, Tick,
};
use fathom_sys::clock::Clock;
use fathom_sys::memory::Buffers;
use fathom_sys::socket_pipe::SocketPipe;

use crate::EngineConfig;
use crate::error::no_memory;
use connect::Connector;
use link::Link;
use options::Options;

/// Facts about `net`.
pub(crate) static INFO: EngineInfo = FACTS;

/// Facts that `netsplice` shares.
pub(crate) const FACTS: EngineInfo = EngineInfo {
    storage: Storage::Peer,
    bypasses_cache: false,
    options: options::ALL,
    ..EngineInfo::new("net", "transfers over TCP, UDP or a Unix socket")
};

/// Engine of one connection.
#[derive(Debug)]
pub(crate) struct Net {
    info: &'static EngineInfo,
    clock: Clock,
    options: Options,
    buffers: Buffers,
    /// Pipe that data pass through (`netsplice`).
    pipe: Option<SocketPipe>,
    connector: Connector,
    link: Option<Link>,
    op: Option<Flight>,
    done: Option<Completion>,
    /// Failure of the connection, reported by the next `wait`.
    failure: Option<EngineError>,
    /// Bytes moved, for messages.
    moved: u64,
}

/// Op in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    op: Op,
    /// The block is on its way back.
    returns: bool,
    /// Bytes moved of this way.
    moved: usize,
}

/// Result of one transfer.
enum Moved {
    /// Some bytes.
    Bytes(usize),
    /// None yet.
    NotYet,
    /// The peer has finished.
    Finished,
}

impl Net {
    /// Starts the engine; `spliced` data pass through a pipe.
    pub(crate) fn start(
        config: &EngineConfig,
        info: &'static EngineInfo,
        spliced: bool,
    ) -> Result<Self, EngineError> {
        let options = Options::resolve(config, spliced)?;
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let pipe = spliced.then(SocketPipe::new).transpose();
        let pipe = pipe.map_err(|error| EngineError {
            step: EngineStep::Call("pipe"),
            target: format!("engine `{}`", info.name),
            errno: Errno::of(&error),
            hint: "raise `ulimit -n`, or reduce `numjobs`".into(),
        })?;
        Ok(Self {
            info,
            clock: config.clock,
            buffers: buffers.map_err(|error| no_memory(config, &error))?,
            pipe,
            connector: Connector::new(options.clone(), config.clock),
            options,
            link: None,
            op: None,
            done: None,
            failure: None,
            moved: 0,
        })
    }

    /// Moves data of the op in flight until it is done, the connection fails, or a call has waited
    /// in vain.
    fn advance(&mut self) {
        while let Some(mut flight) = self.op
            && self.failure.is_none()
        {
            let length = flight.op.length as usize;
            match self.transfer(&flight) {
                Ok(Moved::NotYet) => return,
                Ok(Moved::Finished) => return self.finish(flight.op.slot, Completion::ENDED),
                Err(error) => self.failure = Some(error),
                Ok(Moved::Bytes(count)) => {
                    flight.moved += count;
                    self.moved += count as u64;
                    if flight.moved < length {
                        self.op = Some(flight);
                    } else if self.options.pingpong && !flight.returns {
                        self.op = Some(Flight {
                            op: flight.op,
                            returns: true,
                            moved: 0,
                        });
                    } else {
                        let result = flight.op.length.min(Completion::BYTES_MAX);
                        self.finish(flight.op.slot, result.cast_signed());
                    }
                }
            }
        }
    }

    fn finish(&mut self, slot: Slot, result: i32) {
        self.op = None;
        self.done = Some(Completion { slot, result });
    }

    /// Makes one call for an op.
    fn transfer(&mut self, flight: &Flight) -> Result<Moved, EngineError> {
        let op = &flight.op;
        let sends = match op.kind {
            OpKind::Data(Direction::Read) => flight.returns,
            OpKind::Data(Direction::Write) => !flight.returns,
            OpKind::Data(Direction::Trim) | OpKind::Sync(_) => {
                return Err(self.failed("it cannot be trimmed or synced", None));
            }
        };
        let Some(link) = &mut self.link else {
            return Err(self.failed("there is no connection", None));
        };
        let part = self.buffers.part(op.slot, op.buffer_offset, op.length);
        let rest = &mut part[flight.moved..];
        let moved = match (&mut self.pipe, sends) {
            (None, true) => link.send(rest),
            (None, false) => link.receive(rest),
            (Some(pipe), true) => pipe.send(&*link, rest),
            (Some(pipe), false) => pipe.receive(&*link, rest),
        };
        match moved {
            Ok(count) if sends => Ok(Moved::Bytes(count)),
            Ok(0) if !link.is_datagram() => match link.has_finished(&part[..flight.moved]) {
                true => Ok(Moved::Finished),
                false => {
                    Err(self.failed("the peer closed the connection before it was done", None))
                }
            },
            Ok(count) if link.is_datagram() => {
                let datagram = &rest[..count];
                if datagram == link::CLOSE {
                    return Ok(Moved::Finished);
                }
                if datagram == link::OPEN || count == 0 {
                    return Ok(Moved::Bytes(0));
                }
                if count < rest.len() {
                    let why = format!("a datagram has {count} bytes, and an op {}", rest.len());
                    return Err(self.failed(&why, None));
                }
                Ok(Moved::Bytes(count))
            }
            Ok(count) => Ok(Moved::Bytes(count)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(Moved::NotYet),
                _ => Err(self.failed("the connection failed", Some(&error))),
            },
        }
    }

    fn failed(&self, why: &str, error: Option<&io::Error>) -> EngineError {
        EngineError {
            step: EngineStep::Call(self.info.name),
            target: format!("{}: {why}, after {} bytes", self.options, self.moved),
            errno: error.and_then(Errno::of),
            hint: match error {
                None if self.options.is_datagram() => "use the same `bs` on both sides".into(),
                _ => "see why the peer has ended".into(),
            },
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if let Some(link) = &mut self.link {
            link.finish();
        }
    }
}

impl Engine for Net {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: self.info.name,
            synchronous: true,
            moves_data: true,
            syncs: Queueing::Alone,
            trims: Queueing::Alone,
        }
    }

    fn connect(&mut self) -> Result<bool, EngineError> {
        if self.link.is_none() {
            self.link = self.connector.step()?;
        }
        Ok(self.link.is_some())
    }

    fn cancel(&mut self) {
        if let Some(flight) = self.op {
            self.finish(flight.op.slot, Completion::ENDED);
        }
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    fn prepare(&mut self, op: &Op) {
        assert!(
            self.op.is_none() && self.done.is_none(),
            "more ops than slots"
        );
        self.op = Some(Flight {
            op: *op,
            returns: false,
            moved: 0,
        });
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let issue = self.clock.now();
        self.advance();
        Submitted::Issued {
            issue,
            now: self.clock.now(),
        }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let Some(first) = out.first_mut() else {
            return 0;
        };
        let Some(completion) = self.done.take() else {
            return 0;
        };
        *first = completion;
        1
    }

    fn wait(&mut self, min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        if min > 0 && self.done.is_none() {
            self.advance();
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
