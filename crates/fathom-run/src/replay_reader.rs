//! Thread that reads the log of a replay ahead of the job.
//!
//! ```text
//! log ─► reader ─► full chunks, of which there are few ─► job
//!           ▲                                              │
//!           └────────────────── empty chunks ◄─────────────┘
//! ```
//!
//! The reader blocks when it is far enough ahead, so that memory is bounded whatever the length of
//! the log. The job never blocks: a reader that is behind makes its ops late, which lag shows.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use fathom_core::Errno;
use fathom_setup::outcome::JobFailure;
use fathom_setup::replay::{ReplayPlan, ReplayStream};
use fathom_workload::{FeedStatus, ReplayFeed, ReplayOp};

/// Job's end of the reader.
#[derive(Debug)]
pub(crate) struct ReplayReader {
    /// `None` once the job has stopped reading.
    full: Option<Receiver<Chunk>>,
    empty: Sender<Vec<ReplayOp>>,
    thread: Option<JoinHandle<()>>,
}

/// Ops, or the reason why there are no more.
type Chunk = Result<Vec<ReplayOp>, FeedStatus>;

impl ReplayReader {
    /// Starts reading a log.
    pub(crate) fn start(plan: &Arc<ReplayPlan>) -> Result<Self, JobFailure> {
        let failure = |error: io::Error| {
            let text = format!("cannot read {}: {error}", plan.log);
            JobFailure::new(Errno::of(&error).unwrap_or(Errno::EIO), text)
        };
        let stream = plan.stream(plan.open().map_err(failure)?);
        let (full_in, full) = sync_channel(CHUNKS);
        let (empty, empty_out) = channel();
        let thread = Builder::new()
            .name("replay".into())
            .spawn(move || read_ahead(stream, &full_in, &empty_out))
            .map_err(failure)?;
        Ok(Self {
            full: Some(full),
            empty,
            thread: Some(thread),
        })
    }
}

impl ReplayFeed for ReplayReader {
    fn fill(&mut self, ops: &mut Vec<ReplayOp>) -> FeedStatus {
        let Some(full) = &self.full else {
            return FeedStatus::End;
        };
        match full.try_recv() {
            Ok(Ok(chunk)) => {
                // A reader that has ended needs no empty chunk.
                let _unused = self.empty.send(std::mem::replace(ops, chunk));
                FeedStatus::Filled
            }
            Ok(Err(end)) => end,
            Err(TryRecvError::Empty) => FeedStatus::Later,
            Err(TryRecvError::Disconnected) => FeedStatus::Failed("its reader has died".into()),
        }
    }
}

impl Drop for ReplayReader {
    fn drop(&mut self) {
        // The reader ends when there is no receiver.
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn read_ahead(mut stream: ReplayStream, full: &SyncSender<Chunk>, empty: &Receiver<Vec<ReplayOp>>) {
    loop {
        let mut ops = empty.try_recv().unwrap_or_default();
        ops.clear();
        let chunk = match stream.fill(&mut ops) {
            FeedStatus::Filled => Ok(ops),
            end => Err(end),
        };
        let ends = chunk.is_err();
        if full.send(chunk).is_err() || ends {
            return;
        }
    }
}

/// Chunks read ahead: some 60,000 ops, a tenth of a second at the highest rates.
const CHUNKS: usize = 64;
