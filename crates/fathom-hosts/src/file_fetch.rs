//! Fetches one file of another rank, piece by piece, without holding it in memory.

use fathom_core::Tick;

use crate::Rank;
use crate::bulk::{BulkMessage, Item};
use crate::gather::{GatherError, PATIENCE};

/// State machine that fetches a file from a rank.
///
/// Send [`want`](Self::want) first and after each piece that [`handle_piece`](Self::handle_piece)
/// has accepted, until [`is_done`](Self::is_done). A single request is on its way: the sender
/// answers within 0.2 ms where it waits, so a piece of 64 KiB each gives some 300 MB/s.
#[derive(Debug)]
pub struct FileFetch {
    from: Rank,
    item: Item,
    got: u64,
    total: Option<u64>,
    heard_at: Tick,
}

impl FileFetch {
    /// Starts to fetch the file of this place in the list of a rank.
    #[must_use]
    pub const fn new(now: Tick, from: Rank, place: u32) -> Self {
        Self {
            from,
            item: Item::File(place),
            got: 0,
            total: None,
            heard_at: now,
        }
    }

    /// Returns the request for the next piece.
    #[must_use]
    pub const fn want(&self) -> BulkMessage {
        BulkMessage::Want {
            item: self.item,
            offset: self.got,
        }
    }

    /// Handles an answer, and returns the bytes that come next in the file, if it has any. Another
    /// one than that which was asked for changes nothing.
    ///
    /// # Errors
    /// The file changed while it was fetched.
    pub fn handle_piece<'a>(
        &mut self,
        now: Tick,
        from: Rank,
        piece: &'a BulkMessage,
    ) -> Result<Option<&'a [u8]>, GatherError> {
        let BulkMessage::Piece {
            item,
            total,
            offset,
            bytes,
        } = piece
        else {
            return Ok(None);
        };
        if (from, *item, *offset) != (self.from, self.item, self.got) || self.is_done() {
            return Ok(None);
        }
        if *self.total.get_or_insert(*total) != *total {
            return Err(GatherError::Changed);
        }
        self.heard_at = now;
        self.got += bytes.len() as u64;
        Ok(Some(bytes))
    }

    /// Gives the rank up if it has been silent for too long.
    ///
    /// # Errors
    /// It has been.
    pub fn handle_timeout(&self, now: Tick) -> Result<(), GatherError> {
        match now.since(self.heard_at) >= PATIENCE {
            true => Err(GatherError::Silent { bytes: self.got }),
            false => Ok(()),
        }
    }

    /// Returns whether the file is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.total == Some(self.got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::PIECE_BYTES_MAX;

    const ONE: Rank = Rank::new(1);

    fn answer(file: &[u8], want: &BulkMessage) -> BulkMessage {
        let &BulkMessage::Want { item, offset } = want else {
            panic!("{want:?}");
        };
        BulkMessage::piece(item, file, offset)
    }

    #[track_caller]
    fn check(length: usize) {
        let file: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[0]).collect();
        let mut fetch = FileFetch::new(Tick::ZERO, ONE, 7);
        let mut got = Vec::new();
        while !fetch.is_done() {
            let piece = answer(&file, &fetch.want());
            let taken = fetch.handle_piece(Tick::ZERO, ONE, &piece);
            got.extend_from_slice(taken.unwrap().unwrap());
            // Twice, or from another rank: not asked for.
            let again = fetch.handle_piece(Tick::ZERO, ONE, &piece);
            assert_eq!(again, Ok(None));
            let other = answer(&file, &fetch.want());
            let other = fetch.handle_piece(Tick::ZERO, Rank::new(2), &other);
            assert_eq!(other, Ok(None));
        }
        assert_eq!(got, file);
    }

    #[test]
    fn files_of_any_length_come_whole() {
        for length in [0, 1, PIECE_BYTES_MAX, PIECE_BYTES_MAX + 1, 300_000] {
            check(length);
        }
    }

    #[test]
    fn a_file_that_changes_and_a_silent_rank_are_given_up() {
        let mut fetch = FileFetch::new(Tick::ZERO, ONE, 0);
        let long = [b'x'; PIECE_BYTES_MAX + 1];
        let first = answer(&long, &fetch.want());
        assert!(fetch.handle_piece(Tick::ZERO, ONE, &first).is_ok());
        let bytes = PIECE_BYTES_MAX as u64;
        let silent = fetch.handle_timeout(Tick::ZERO + PATIENCE);
        assert_eq!(silent, Err(GatherError::Silent { bytes }));
        let shorter = BulkMessage::Piece {
            item: Item::File(0),
            total: bytes,
            offset: bytes,
            bytes: Vec::new(),
        };
        let changed = fetch.handle_piece(Tick::ZERO, ONE, &shorter);
        assert_eq!(changed, Err(GatherError::Changed));
    }
}
