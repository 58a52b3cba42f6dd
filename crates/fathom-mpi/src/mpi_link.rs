//! The link of one rank: point to point, probed, never waiting.

use std::fmt;
use std::mem;

use fathom_hosts::{
    BulkLink, BulkMessage, Channel, FRAME_BYTES_MAX, Frames, Link, LinkError, Rank,
};
use mpi::environment::Universe;
use mpi::point_to_point::{Destination as _, MatchedReceiveVec as _, Source as _};
use mpi::topology::{Communicator as _, SimpleCommunicator};
use mpi::{Threading, environment};

/// Messages to and from the other ranks of an MPI job.
///
/// Create it with [`start`](Self::start) on the main thread, and end with [`finish`](Self::finish)
/// when all ranks do.
///
/// No call between start and end waits for another rank, or spins:
///
/// * Frames are so short that an MPI sends them without asking, so that one that a probe has found
///   is here as a whole ([`Frames`]).
/// * They go out in buffered mode, which copies them into a buffer of ours. It cannot overflow:
///   [`Frames`] limits the number on their way to a rank. Non-blocking sends would borrow their
///   memory until they are done, which safe code could only lend for the rest of the run.
/// * There is no collective call after the start, in which a missing rank would hang all others.
pub struct MpiLink {
    /// Dropped by `finish` alone: that calls `MPI_Finalize`, which waits for all ranks. `None`
    /// after it.
    universe: Option<Universe>,
    world: SimpleCommunicator,
    rank: Rank,
    ranks: u32,
    frames: Frames,
}

impl fmt::Debug for MpiLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("MpiLink");
        shown.field("rank", &self.rank).field("ranks", &self.ranks);
        shown.finish_non_exhaustive()
    }
}

impl MpiLink {
    /// Starts MPI, which waits until all ranks have.
    ///
    /// # Errors
    /// MPI was started before, allows one thread only, or its numbers make no sense.
    pub fn start() -> Result<Self, StartError> {
        // Only this thread calls MPI; those of the jobs do not.
        let started = environment::initialize_with_threading(Threading::Funneled);
        let (mut universe, threading) = started.ok_or(StartError::Twice)?;
        if threading < Threading::Funneled {
            return Err(StartError::Threads);
        }
        let world = universe.world();
        let number = |number: i32| u32::try_from(number).map_err(|_| StartError::Numbers);
        let (rank, ranks) = (number(world.rank())?, number(world.size())?);
        // With the last message to each.
        let places = Frames::frames_max(ranks).saturating_add(ranks as usize);
        // Not touched, and so not resident, before it is used.
        universe.set_buffer_size(places.saturating_mul(PLACE_BYTES).min(BUFFER_BYTES_MAX));
        Ok(Self {
            universe: Some(universe),
            world,
            rank: Rank::new(rank),
            ranks,
            frames: Frames::new(),
        })
    }

    /// Returns the name and version of the MPI library.
    #[must_use]
    pub fn library() -> String {
        let text = environment::library_version().unwrap_or_default();
        let end = text.find([',', '\n', '\0']).unwrap_or(text.len());
        text[..end].trim().to_owned()
    }

    /// Ends MPI, which waits until all ranks do. Nothing is sent or received from then on.
    ///
    /// A link that is dropped without it leaves MPI as it is, and the process has to end: where a
    /// rank is lost, the others would wait for it here.
    pub fn finish(&mut self) {
        if self.universe.is_some() {
            self.send_frames();
            self.take_the_rest();
        }
        drop(self.universe.take());
    }

    /// Takes and drops what is still on its way: the UCX under MPICH prints a line for each message
    /// that are never received. Messages of a rank arrive in order, so that its last one ends them.
    fn take_the_rest(&self) {
        // Rank 0 talks to all, the others to rank 0.
        let others = match self.rank.get() {
            0 => 1..self.ranks,
            _ => 0..1,
        };
        let others = others.filter_map(|other| i32::try_from(other).ok());
        let others = others.map(|other| self.world.process_at_rank(other));
        for other in others.clone() {
            let nothing: [u8; 0] = [];
            other.buffered_send_with_tag(&nothing, LAST_TAG);
        }
        for other in others {
            loop {
                let (_, status) = other.matched_probe().matched_receive_vec::<u8>();
                if status.tag() == LAST_TAG {
                    break;
                }
            }
        }
    }

    /// Sends the frames that may be sent.
    fn send_frames(&mut self) {
        while let Some((to, frame)) = self.frames.next_frame() {
            self.put(to, &frame);
        }
    }

    fn put(&self, to: Rank, frame: &[u8]) {
        if let Ok(to) = i32::try_from(to.get()) {
            let process = self.world.process_at_rank(to);
            process.buffered_send_with_tag(frame, TAG);
        }
    }

    /// Takes frames that have arrived, up to a limit, and sends those that may be sent.
    fn exchange(&mut self) -> Result<(), LinkError> {
        if self.universe.is_none() {
            return Ok(());
        }
        for _ in 0..FRAMES_PER_CALL_MAX {
            let any = self.world.any_process();
            let probe = || any.immediate_matched_probe_with_tag(TAG);
            // Open MPI looks first and fetches what has arrived after it: a single look would see
            // each message only with the next call, which may be 50 ms away.
            let Some(found) = probe().or_else(probe) else {
                break;
            };
            let (frame, status) = found.matched_receive_vec::<u8>();
            let from = Rank::new(u32::try_from(status.source_rank()).unwrap_or(u32::MAX));
            let handled = self.frames.handle_frame(from, &frame);
            handled.map_err(|error| LinkError::Failed(format!("rank {from}: {error}").into()))?;
        }
        self.send_frames();
        Ok(())
    }

    fn queue(&mut self, channel: Channel, to: Rank, message: &[u8]) -> Result<(), LinkError> {
        if to.get() >= self.ranks || self.universe.is_none() {
            return Err(LinkError::Gone(to));
        }
        // Where it has no room, the receiver takes nothing: it hears the rest when it asks again.
        let _has_room = self.frames.queue(channel, to, message);
        self.send_frames();
        Ok(())
    }

    fn next(&mut self, channel: Channel) -> Result<Option<(Rank, Vec<u8>)>, LinkError> {
        if let Some(message) = self.frames.next_message(channel) {
            return Ok(Some(message));
        }
        self.exchange()?;
        Ok(self.frames.next_message(channel))
    }
}

impl Drop for MpiLink {
    fn drop(&mut self) {
        if let Some(universe) = self.universe.take() {
            mem::forget(universe);
        }
    }
}

impl Link for MpiLink {
    fn send(&mut self, to: Rank, message: &[u8]) -> Result<(), LinkError> {
        self.queue(Channel::Control, to, message)
    }

    fn receive(&mut self) -> Result<Option<(Rank, Vec<u8>)>, LinkError> {
        self.next(Channel::Control)
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }
}

impl BulkLink for MpiLink {
    fn send_bulk(&mut self, to: Rank, message: &BulkMessage) -> Result<(), LinkError> {
        self.queue(Channel::Bulk, to, &message.encode())
    }

    fn receive_bulk(&mut self) -> Result<Option<(Rank, BulkMessage)>, LinkError> {
        let Some((from, bytes)) = self.next(Channel::Bulk)? else {
            return Ok(None);
        };
        match BulkMessage::decode(&bytes) {
            Ok(message) => Ok(Some((from, message))),
            Err(error) => Err(LinkError::Failed(format!("rank {from}: {error}").into())),
        }
    }
}

/// Error of [`MpiLink::start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// MPI was started before.
    Twice,
    /// The library allows one thread only.
    Threads,
    /// The library returned a negative rank or number of ranks.
    Numbers,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Twice => "MPI has been started before",
            Self::Threads => "this MPI library allows one thread only (MPI_THREAD_SINGLE)",
            Self::Numbers => "this MPI library reports a negative rank",
        })
    }
}

impl std::error::Error for StartError {}

/// Tag of all frames.
const TAG: i32 = 1;
/// Tag of the last message of a rank to another, which is empty.
const LAST_TAG: i32 = 2;
/// Room of a frame in the buffer: MPI adds some 100 bytes to each, and rounds up.
const PLACE_BYTES: usize = FRAME_BYTES_MAX + 512;
/// Largest buffer: MPI takes its length as a C int. That of 4,096 ranks has 416 MiB.
const BUFFER_BYTES_MAX: usize = 1 << 30;
/// Most frames taken in a call: about a millisecond.
const FRAMES_PER_CALL_MAX: usize = 256;
