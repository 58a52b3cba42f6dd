//! Submitters of a request's data: a chain of pieces in the order of sectors.

use crate::request_queue::DonePiece;

/// Pool of the pieces in a queue.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    places: Vec<Piece>,
    free: Vec<u32>,
}

/// Chain of one request: its first and its last piece.
#[derive(Debug)]
#[must_use = "its pieces are lost unless they are finished"]
pub(crate) struct Part {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    owner: u32,
    length: u32,
    next: Option<u32>,
}

impl Pieces {
    /// Creates a chain of one piece.
    pub(crate) fn one(&mut self, owner: u32, length: u32) -> Part {
        let place = self.place(owner, length);
        Part {
            first: place,
            last: place,
        }
    }

    pub(crate) fn append(&mut self, part: &mut Part, owner: u32, length: u32) {
        let place = self.place(owner, length);
        self.places[part.last as usize].next = Some(place);
        part.last = place;
    }

    pub(crate) fn prepend(&mut self, part: &mut Part, owner: u32, length: u32) {
        let place = self.place(owner, length);
        self.places[place as usize].next = Some(part.first);
        part.first = place;
    }

    /// Reports the result to each piece: an error to all, transferred bytes to the first ones.
    #[expect(clippy::needless_pass_by_value, reason = "the chain is spent")]
    pub(crate) fn finish(&mut self, part: Part, result: i32, done: &mut Vec<DonePiece>) {
        let mut moved = u32::try_from(result).unwrap_or(0);
        let mut next = Some(part.first);
        while let Some(place) = next {
            let piece = self.places[place as usize];
            let own = piece.length.min(moved);
            moved -= own;
            done.push(DonePiece {
                owner: piece.owner,
                length: piece.length,
                result: result.min(own.cast_signed()),
            });
            self.free.push(place);
            next = piece.next;
        }
    }

    fn place(&mut self, owner: u32, length: u32) -> u32 {
        let piece = Piece {
            owner,
            length,
            next: None,
        };
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = piece;
            return place;
        }
        self.places.push(piece);
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: i32, want: [i32; 3]) {
        let mut pieces = Pieces::default();
        let mut part = pieces.one(1, 10);
        pieces.append(&mut part, 2, 10);
        pieces.prepend(&mut part, 0, 10);
        let mut done = Vec::new();
        pieces.finish(part, result, &mut done);
        let results = done.iter().map(|piece| piece.result);
        assert_eq!(results.collect::<Vec<_>>(), want);
        let owners = done.iter().map(|piece| piece.owner);
        assert_eq!(owners.collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn the_first_pieces_get_what_was_moved_and_all_get_the_error() {
        check(30, [10, 10, 10]);
        check(15, [10, 5, 0]);
        check(0, [0, 0, 0]);
        check(-5, [-5, -5, -5]);
    }
}
