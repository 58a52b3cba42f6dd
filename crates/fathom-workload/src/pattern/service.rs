//! Choice of the next op's file.
//!
//! ```text
//! open       the first `open_files` files that are not finished; one that is finished makes room
//! round robin  ► each open file in turn, some ops at a time
//! random       ► any open file, some ops at a time
//! spread       ► any file, some more often than others; a finished one begins again
//! ```

use fathom_core::{BlockMap, Direction, PerDirection, Taus88};

use crate::config::{FileService, PatternConfig};

use super::spread::{Shapes, Spread};
use super::{PatternError, RandomStream, seed_of};

/// Chooser of files, which learns which ones are finished.
#[derive(Debug)]
pub(super) enum Service {
    /// All files are open and take turns.
    All(Turns),
    /// Some files are open, or files are drawn.
    Open(PerDirection<Box<OpenFiles>>),
    /// Files are drawn from a distribution and never finished.
    Spread { files: u64, spread: Spread },
}

impl Service {
    pub(super) fn new(config: &PatternConfig) -> Result<Self, PatternError> {
        let files = config.files.len() as u64;
        let seed = seed_of(config.seed, RandomStream::File);
        let limit = usize::try_from(config.open_files.max(1)).unwrap_or(usize::MAX);
        let (each, random) = match config.service {
            FileService::RoundRobin(each) => (each.max(1), false),
            FileService::Random(each) => (each.max(1), true),
            FileService::Spread(distribution) => {
                let shape = Shapes::new(distribution, seed).of(files);
                return match shape {
                    Some(shape) => Ok(Self::Spread {
                        files,
                        spread: Spread::new(shape, seed),
                    }),
                    None => Self::new(&PatternConfig {
                        service: FileService::Random(1),
                        ..config.clone()
                    }),
                };
            }
        };
        if !random && limit >= config.files.len() {
            return Turns::new(files, each).map(Self::All);
        }
        let open = |direction: Direction| {
            let seed = seed.wrapping_add(direction.index() as u64);
            Box::new(OpenFiles::new(files, limit, each, random.then_some(seed)))
        };
        Ok(Self::Open(PerDirection::from_fn(open)))
    }

    /// Returns the file of the next op; `None` when all are finished.
    #[inline]
    pub(super) fn next(&mut self, direction: Direction) -> Option<u64> {
        match self {
            Self::All(turns) => turns.next(direction),
            Self::Open(open) => open[direction].next(),
            Self::Spread { spread, .. } => Some(spread.next()),
        }
    }

    /// Marks the last file as finished; returns whether it starts over.
    pub(super) fn finished(&mut self, direction: Direction, file: u64) -> bool {
        match self {
            Self::All(turns) => turns.finished(direction, file),
            Self::Open(open) => open[direction].finished(),
            Self::Spread { .. } => return true,
        }
        false
    }

    /// Marks the last file of `direction` as finished for all; returns whether it starts over.
    pub(super) fn finished_by_all(&mut self, direction: Direction, file: u64) -> bool {
        let again = self.finished(direction, file);
        let others = Direction::ALL.into_iter().filter(|&d| d != direction);
        match self {
            Self::All(turns) => others.for_each(|d| {
                turns.finished[d].set(file);
            }),
            Self::Open(open) => others.for_each(|d| open[d].close(file)),
            Self::Spread { .. } => {}
        }
        again
    }

    /// Returns the file to try if the last one fits no op; only for drawn files.
    pub(super) const fn instead(&self, file: u64) -> u64 {
        match self {
            Self::Spread { files, .. } if file + 1 < *files => file + 1,
            _ => 0,
        }
    }

    pub(super) fn restart(&mut self) {
        match self {
            Self::All(turns) => turns.restart(),
            Self::Open(open) => {
                for direction in Direction::ALL {
                    open[direction].restart();
                }
            }
            Self::Spread { .. } => {}
        }
    }
}

/// Round robin over all unfinished files.
#[derive(Debug)]
pub(super) struct Turns {
    /// State by direction.
    finished: PerDirection<BlockMap>,
    /// Current file, unless finished.
    turn: u64,
    /// Ops in a row, ≥ 1.
    each: u32,
    /// Ops of the current turn so far.
    had: u32,
}

impl Turns {
    fn new(files: u64, each: u32) -> Result<Self, PatternError> {
        let finished = BlockMap::new(files).map_err(|refused| PatternError::NoMemory {
            bytes: refused.bytes,
        })?;
        Ok(Self {
            finished: PerDirection::all(finished),
            turn: 0,
            each,
            had: 0,
        })
    }

    #[inline]
    fn next(&mut self, direction: Direction) -> Option<u64> {
        let turn = self.finished[direction].next_free(self.turn)?;
        if turn != self.turn {
            self.had = 0;
        }
        self.had += 1;
        if self.had < self.each {
            self.turn = turn;
        } else {
            self.move_on(turn);
        }
        Some(turn)
    }

    fn finished(&mut self, direction: Direction, file: u64) {
        self.finished[direction].set(file);
        self.move_on(file);
    }

    #[inline]
    const fn move_on(&mut self, turn: u64) {
        self.had = 0;
        self.turn = if turn + 1 == self.finished.read.len() {
            0
        } else {
            turn + 1
        };
    }

    fn restart(&mut self) {
        for direction in Direction::ALL {
            self.finished[direction].clear();
        }
        (self.turn, self.had) = (0, 0);
    }
}

/// Open files of one direction.
#[derive(Debug)]
pub(super) struct OpenFiles {
    open: Vec<u64>,
    /// Next file to open.
    unopened: u64,
    files: u64,
    /// Largest number of open files.
    limit: usize,
    /// Index in `open` of the current file.
    at: usize,
    /// Ops in a row, ≥ 1.
    each: u32,
    /// Ops left in its turn.
    left: u32,
    /// Generator of the next file; `None` for round robin.
    random: Option<Taus88>,
}

impl OpenFiles {
    fn new(files: u64, limit: usize, each: u32, seed: Option<u64>) -> Self {
        let room = usize::try_from(files).unwrap_or(usize::MAX).min(limit);
        let mut open = Self {
            open: Vec::with_capacity(room),
            unopened: 0,
            files,
            limit: room,
            at: 0,
            each,
            left: 0,
            random: seed.map(Taus88::new),
        };
        open.restart();
        open
    }

    fn restart(&mut self) {
        self.open.clear();
        self.unopened = 0;
        // In turn: the first one comes after the last.
        self.at = self.limit;
        self.left = 0;
        self.open_more();
    }

    fn open_more(&mut self) {
        while self.open.len() < self.limit && self.unopened < self.files {
            self.open.push(self.unopened);
            self.unopened += 1;
        }
    }

    fn next(&mut self) -> Option<u64> {
        if self.open.is_empty() {
            return None;
        }
        if self.left == 0 {
            self.left = self.each;
            let count = self.open.len() as u64;
            self.at = match &mut self.random {
                // Cannot truncate: below the length of a vector.
                Some(random) => usize::try_from(random.below(count)).unwrap_or(0),
                None if self.at + 1 < self.open.len() => self.at + 1,
                None => 0,
            };
        }
        self.left -= 1;
        self.open.get(self.at).copied()
    }

    /// Marks a file as finished, which need not be the last one.
    fn close(&mut self, file: u64) {
        let Some(at) = self.open.iter().position(|&open| open == file) else {
            return;
        };
        match at == self.at {
            true => self.finished(),
            false => {
                self.open.remove(at);
                self.at -= usize::from(at < self.at && self.at > 0);
                self.open_more();
            }
        }
    }

    /// Marks the last file as finished and opens another one.
    fn finished(&mut self) {
        self.left = 0;
        if self.random.is_some() {
            self.open.swap_remove(self.at);
        } else {
            self.open.remove(self.at);
            // The one after it is next.
            self.at = self.at.checked_sub(1).unwrap_or(self.limit);
        }
        self.open_more();
    }
}
