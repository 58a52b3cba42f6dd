//! Links between ranks in one process, for tests.

use std::sync::mpsc::{Receiver, Sender, channel};

use crate::{Link, LinkError, Rank};

/// Link of one rank to the others of its process. Dropping it tells the others that the rank is
/// gone, by an empty message.
#[derive(Debug)]
pub struct MemoryLink {
    rank: Rank,
    inbox: Receiver<(Rank, Vec<u8>)>,
    /// By rank.
    others: Vec<Sender<(Rank, Vec<u8>)>>,
}

/// Creates the links of `ranks` ranks, in order.
#[must_use]
pub fn memory_links(ranks: u32) -> Vec<MemoryLink> {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..ranks).map(|_| channel()).unzip();
    let links = (0..ranks).zip(inboxes).map(|(rank, inbox)| MemoryLink {
        rank: Rank::new(rank),
        inbox,
        others: senders.clone(),
    });
    links.collect()
}

impl Link for MemoryLink {
    fn send(&mut self, to: Rank, message: &[u8]) -> Result<(), LinkError> {
        // To a rank that is gone: it has said so.
        let _unheard = self.others[to.index()].send((self.rank, message.to_vec()));
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(Rank, Vec<u8>)>, LinkError> {
        // Never disconnected: this rank holds a sender to itself.
        match self.inbox.try_recv() {
            Ok((from, message)) if message.is_empty() => Err(LinkError::Gone(from)),
            other => Ok(other.ok()),
        }
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn ranks(&self) -> u32 {
        // Cannot fail: made from a `u32`.
        u32::try_from(self.others.len()).unwrap_or(u32::MAX)
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        for other in &self.others {
            let _gone_too = other.send((self.rank, Vec::new()));
        }
    }
}
