//! Fetches a text of other ranks, such as their records, a few at a time.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use fathom_core::{Nanos, Tick};

use crate::Rank;
use crate::bulk::{BulkMessage, Item, TEXT_LENGTH_MAX};

/// State machine that fetches one text from each of some ranks, in ascending order of rank.
///
/// Feed it with [`handle_piece`](Self::handle_piece) and, every now and then, with
/// [`handle_timeout`](Self::handle_timeout); take what is to be sent or has arrived from
/// [`poll_output`](Self::poll_output) until [`is_done`](Self::is_done). At most [`AT_ONCE_MAX`]
/// texts are on their way or wait for an earlier one, so that is how many are in memory. A rank
/// that sends no piece for [`PATIENCE`] is given up.
#[derive(Debug)]
pub struct Gather {
    item: Item,
    /// Ranks whose turn has not come.
    later: VecDeque<Rank>,
    /// Texts on their way, or complete behind one that is not.
    current: BTreeMap<Rank, Fetch>,
    out: VecDeque<GatherOutput>,
}

/// Output of a [`Gather`].
#[derive(Debug, PartialEq, Eq)]
pub enum GatherOutput {
    /// Request to be sent.
    Ask {
        /// Receiver.
        to: Rank,
        /// Request.
        want: BulkMessage,
    },
    /// End of one fetch, in ascending order of rank.
    Fetched {
        /// Rank.
        rank: Rank,
        /// Its text, or the reason why there is none.
        text: Result<Vec<u8>, GatherError>,
    },
}

/// Reason why a text was not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatherError {
    /// The rank fell silent after some bytes.
    Silent {
        /// Bytes that had arrived.
        bytes: u64,
    },
    /// The text is longer than [`TEXT_LENGTH_MAX`].
    TooLong {
        /// Its length.
        bytes: u64,
    },
    /// The text changed while it was fetched.
    Changed,
}

impl fmt::Display for GatherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent { bytes } => {
                write!(f, "no answer for {} s", PATIENCE.as_millis() / 1000)?;
                match bytes {
                    0 => Ok(()),
                    bytes => write!(f, ", after {bytes} bytes"),
                }
            }
            Self::TooLong { bytes } => {
                let limit = TEXT_LENGTH_MAX >> 20;
                write!(f, "{bytes} bytes, more than {limit} MiB")
            }
            Self::Changed => write!(f, "it changed while it was fetched"),
        }
    }
}

impl std::error::Error for GatherError {}

/// Text on its way.
#[derive(Debug)]
struct Fetch {
    bytes: Vec<u8>,
    total: Option<u64>,
    heard_at: Tick,
    end: Option<Result<(), GatherError>>,
}

impl Gather {
    /// Starts to fetch `item` from these ranks, of which each is named once.
    #[must_use]
    pub fn new(now: Tick, item: Item, ranks: impl IntoIterator<Item = Rank>) -> Self {
        let mut later: Vec<Rank> = ranks.into_iter().collect();
        later.sort_unstable();
        let mut new = Self {
            item,
            later: later.into(),
            current: BTreeMap::new(),
            out: VecDeque::new(),
        };
        new.go_on(now);
        new
    }

    /// Handles an answer. One that was not asked for, or comes late, changes nothing.
    pub fn handle_piece(&mut self, now: Tick, from: Rank, piece: &BulkMessage) {
        let BulkMessage::Piece {
            item,
            total,
            offset,
            bytes,
        } = piece
        else {
            return;
        };
        let fetch = self.current.get_mut(&from);
        let Some(fetch) = fetch.filter(|fetch| *item == self.item && fetch.end.is_none()) else {
            return;
        };
        if *offset != fetch.bytes.len() as u64 {
            return;
        }
        fetch.heard_at = now;
        if *total > TEXT_LENGTH_MAX {
            fetch.end = Some(Err(GatherError::TooLong { bytes: *total }));
        } else if fetch.total.is_some_and(|before| before != *total) {
            fetch.end = Some(Err(GatherError::Changed));
        } else {
            fetch.total = Some(*total);
            // Not reserved beforehand: the length is only claimed.
            fetch.bytes.extend_from_slice(bytes);
            match fetch.bytes.len() as u64 == *total {
                true => fetch.end = Some(Ok(())),
                false => self.ask(from),
            }
        }
        self.go_on(now);
    }

    /// Gives up ranks that have been silent for too long.
    pub fn handle_timeout(&mut self, now: Tick) {
        for fetch in self.current.values_mut() {
            if fetch.end.is_none() && now.since(fetch.heard_at) >= PATIENCE {
                let bytes = fetch.bytes.len() as u64;
                fetch.end = Some(Err(GatherError::Silent { bytes }));
            }
        }
        self.go_on(now);
    }

    /// Takes what is to be sent, or a text that has arrived.
    pub fn poll_output(&mut self) -> Option<GatherOutput> {
        self.out.pop_front()
    }

    /// Returns whether all outputs were taken and nothing more is to come.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.out.is_empty() && self.current.is_empty() && self.later.is_empty()
    }

    /// Hands over what is complete, in order, and begins what fits.
    fn go_on(&mut self, now: Tick) {
        while let Some(first) = self.current.first_entry() {
            let Some(end) = first.get().end else {
                break;
            };
            let (rank, fetch) = first.remove_entry();
            let text = end.map(|()| fetch.bytes);
            self.out.push_back(GatherOutput::Fetched { rank, text });
        }
        while self.current.len() < AT_ONCE_MAX
            && let Some(rank) = self.later.pop_front()
        {
            let fetch = Fetch {
                bytes: Vec::new(),
                total: None,
                heard_at: now,
                end: None,
            };
            self.current.insert(rank, fetch);
            self.ask(rank);
        }
    }

    fn ask(&mut self, to: Rank) {
        let item = self.item;
        let offset = self.current.get(&to);
        let offset = offset.map_or(0, |fetch| fetch.bytes.len() as u64);
        let want = BulkMessage::Want { item, offset };
        self.out.push_back(GatherOutput::Ask { to, want });
    }
}

/// Most texts that are fetched at once: enough to keep a network busy, few enough for the memory.
pub const AT_ONCE_MAX: usize = 8;
/// Silence after which a rank is given up: it has the text in memory, and answers within
/// milliseconds where it lives.
pub const PATIENCE: Nanos = Nanos::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::PIECE_BYTES_MAX;

    fn text_of(rank: Rank) -> Vec<u8> {
        let length = rank.get() as usize * 50_000;
        (0..length).map(|at| at.to_le_bytes()[0]).collect()
    }

    /// Fetches from `ranks` ranks, the last one first; those in `silent` never answer.
    fn fetched(ranks: u32, silent: &[u32]) -> Vec<(u32, Result<Vec<u8>, GatherError>)> {
        let mut now = Tick::ZERO;
        let mut gather = Gather::new(now, Item::Record, (0..ranks).rev().map(Rank::new));
        let (mut fetched, mut asked) = (Vec::new(), Vec::new());
        while !gather.is_done() {
            while let Some(output) = gather.poll_output() {
                match output {
                    GatherOutput::Ask { to, want } => asked.push((to, want)),
                    GatherOutput::Fetched { rank, text } => fetched.push((rank.get(), text)),
                }
            }
            assert!(gather.current.len() <= AT_ONCE_MAX);
            now += Nanos::from_millis(1);
            match asked.pop() {
                Some((to, _)) if silent.contains(&to.get()) => {}
                Some((to, BulkMessage::Want { item, offset })) => {
                    let piece = BulkMessage::piece(item, &text_of(to), offset);
                    gather.handle_piece(now, to, &piece);
                    // Twice: the second is no longer wanted.
                    gather.handle_piece(now, to, &piece);
                }
                Some(other) => panic!("{other:?}"),
                None => {
                    now += PATIENCE;
                    gather.handle_timeout(now);
                }
            }
        }
        fetched
    }

    #[test]
    fn all_texts_come_whole_and_in_order() {
        let got = fetched(20, &[]);
        let want = (0..20).map(|rank| (rank, Ok(text_of(Rank::new(rank)))));
        assert_eq!(got, want.collect::<Vec<_>>());
        assert!(text_of(Rank::new(19)).len() > 10 * PIECE_BYTES_MAX);
    }

    #[test]
    fn silent_ranks_are_named_and_hold_up_nobody() {
        let silent = [0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        for (rank, text) in fetched(16, &silent) {
            match silent.contains(&rank) {
                true => assert_eq!(text, Err(GatherError::Silent { bytes: 0 })),
                false => assert_eq!(text, Ok(text_of(Rank::new(rank)))),
            }
        }
    }

    #[track_caller]
    fn ends(pieces: &[(u64, u64, &[u8])], want: GatherError, said: &str) {
        let one = Rank::new(1);
        let mut gather = Gather::new(Tick::ZERO, Item::Record, [one]);
        for &(total, offset, bytes) in pieces {
            let piece = BulkMessage::Piece {
                item: Item::Record,
                total,
                offset,
                bytes: bytes.to_vec(),
            };
            gather.handle_piece(Tick::ZERO, one, &piece);
        }
        gather.handle_timeout(Tick::ZERO + PATIENCE);
        let last = std::iter::from_fn(|| gather.poll_output()).last();
        let text = Err(want);
        assert_eq!(last, Some(GatherOutput::Fetched { rank: one, text }));
        assert!(gather.is_done());
        assert_eq!(want.to_string(), said);
    }

    #[test]
    fn a_text_that_is_wrong_is_refused_by_name() {
        let bytes = TEXT_LENGTH_MAX + 1;
        let too_long = GatherError::TooLong { bytes };
        ends(
            &[(bytes, 0, b"x")],
            too_long,
            "67108865 bytes, more than 64 MiB",
        );
        let changed = GatherError::Changed;
        let said = "it changed while it was fetched";
        ends(&[(2, 0, b"x"), (3, 1, b"yz")], changed, said);
        let silent = GatherError::Silent { bytes: 1 };
        ends(&[(2, 0, b"x")], silent, "no answer for 4 s, after 1 bytes");
        ends(
            &[(2, 1, b"x")],
            GatherError::Silent { bytes: 0 },
            "no answer for 4 s",
        );
    }
}
