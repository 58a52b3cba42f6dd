//! Storage that knows what it should hold, and damages data as it is told.
//!
//! Contents are symbols: which write filled a sector, with which of its sectors. So the truth is
//! kept beside the data without looking at them, and a difference between both is a fault that a
//! read has met.

use std::collections::HashMap;

use fathom_block::SeekCounts;
use fathom_core::{Direction, Errno, OpKind, Slot, Tick, Zone, ZoneAction};
use fathom_sim::{DataFault, JobId, ModelledStorage, Request, StorageEvent, SubmitResult};

pub(crate) const SECTOR: u64 = 512;

/// Content of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// As before the run.
    Initial,
    /// Zeros of a trim.
    Zeros,
    /// A sector of a write: its number, and the sector's in it.
    Written { op: usize, index: u64 },
    /// Like that, or like any other, with one bit inverted.
    Damaged { op: usize, index: u64 },
}

/// Write, trim or read that the storage was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) job: JobId,
    pub(crate) direction: Direction,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) began: Tick,
    pub(crate) ended: Tick,
    /// It failed when the power was cut.
    pub(crate) failed: bool,
}

impl Told {
    pub(crate) fn touches(&self, offset: u64, length: u64) -> bool {
        self.offset < offset + length && offset < self.offset + self.length
    }

    /// Returns whether it was in flight at any time of another op. Ends count: a job may reap a
    /// completion after it has issued its next op.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.began <= other.ended && other.began <= self.ended
    }
}

/// Read that returned other data than it should have.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// Number of the read.
    pub(crate) read: usize,
    pub(crate) truth: Vec<Content>,
    pub(crate) returned: Vec<Content>,
}

/// Fault of the op with this number in its direction, in the order of completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) direction: Direction,
    pub(crate) number: u64,
    pub(crate) fault: DataFault,
}

/// Storage in front of another one, whose events it damages.
#[derive(Debug)]
pub(crate) struct Oracle<S> {
    storage: S,
    planned: Option<Planned>,
    /// Number of completions after which every op fails.
    cut_after: u64,
    pub(crate) told: Vec<Told>,
    flying: HashMap<(JobId, Slot), usize>,
    /// Ops completed by direction.
    completed: [u64; 3],
    truth: Vec<Content>,
    actual: Vec<Content>,
    /// Contents before the last write of each sector.
    earlier: Vec<Content>,
    pub(crate) differences: Vec<Difference>,
    /// The fault was injected.
    pub(crate) injected: bool,
    events: Vec<StorageEvent>,
    now: Tick,
}

impl<S: ModelledStorage> Oracle<S> {
    pub(crate) fn new(storage: S, bytes: u64, planned: Option<Planned>) -> Self {
        let sectors = usize::try_from(bytes / SECTOR).unwrap();
        Self {
            storage,
            planned,
            cut_after: u64::MAX,
            told: Vec::new(),
            flying: HashMap::new(),
            completed: [0; 3],
            truth: vec![Content::Initial; sectors],
            actual: vec![Content::Initial; sectors],
            earlier: vec![Content::Initial; sectors],
            differences: Vec::new(),
            injected: false,
            events: Vec::new(),
            now: Tick::ZERO,
        }
    }

    /// Cuts the power after `completions` completions: the ops in flight then fail, and so do later
    /// ones, but a part of their data may reach the medium.
    pub(crate) fn cut_after(self, completions: u64) -> Self {
        Self {
            cut_after: completions,
            ..self
        }
    }

    /// Returns the storage after the cut, without faults.
    pub(crate) fn revived(self) -> Self {
        Self {
            cut_after: u64::MAX,
            planned: None,
            differences: Vec::new(),
            ..self
        }
    }

    /// Returns the failure of an op after the cut.
    fn cut(&mut self, job: JobId, slot: Slot) -> Option<StorageEvent> {
        let completed: u64 = self.completed.iter().sum();
        if completed < self.cut_after {
            return None;
        }
        let op = self.flying.remove(&(job, slot))?;
        (self.told[op].ended, self.told[op].failed) = (self.now, true);
        let length = self.told[op].length;
        // Nothing, a half, or all.
        let bytes = op as u64 % 3 * length / 2 / SECTOR * SECTOR;
        if self.told[op].direction == Direction::Write {
            let fault = DataFault::Torn(u32::try_from(bytes).unwrap());
            self.write_actual(op, length, Some(fault));
        }
        Some(StorageEvent::Faulty {
            job,
            slot,
            result: Errno::EIO.result(),
            fault: DataFault::Torn(u32::try_from(bytes).unwrap()),
        })
    }

    /// Handles a completion, and returns the fault of its data.
    fn complete(&mut self, job: JobId, slot: Slot, result: i32) -> Option<DataFault> {
        let op = self.flying.remove(&(job, slot))?;
        self.told[op].ended = self.now;
        let told = self.told[op];
        let moved = u64::try_from(result).unwrap_or(0).min(told.length);
        let number = &mut self.completed[told.direction.index()];
        let fault = self
            .planned
            .filter(|planned| planned.direction == told.direction && planned.number == *number)
            .map(|planned| planned.fault);
        *number += 1;
        self.injected |= fault.is_some();
        match told.direction {
            Direction::Read => self.read(op, moved, fault),
            Direction::Write => self.write(op, moved, fault),
            Direction::Trim => self.fill(&told, moved, |_| Content::Zeros),
        }
        fault
    }

    fn write(&mut self, op: usize, moved: u64, fault: Option<DataFault>) {
        let told = self.told[op];
        let written = |index| Content::Written { op, index };
        for index in 0..moved / SECTOR {
            self.truth[place(told.offset) + index as usize] = written(index);
        }
        self.write_actual(op, moved, fault);
    }

    /// Writes to the medium.
    fn write_actual(&mut self, op: usize, moved: u64, fault: Option<DataFault>) {
        let told = self.told[op];
        let written = |index| Content::Written { op, index };
        let mut actual = |offset: u64, index: u64, content| {
            let place = place(offset) + index as usize;
            self.earlier[place] = std::mem::replace(&mut self.actual[place], content);
        };
        match fault {
            Some(DataFault::Lost) => {}
            Some(DataFault::Torn(bytes)) => {
                for index in 0..(moved / SECTOR).min(u64::from(bytes) / SECTOR) {
                    actual(told.offset, index, written(index));
                }
            }
            Some(DataFault::Misdirected(shift)) => {
                let offset = told.offset.checked_add_signed(shift).unwrap();
                (0..moved / SECTOR).for_each(|index| actual(offset, index, written(index)));
            }
            Some(DataFault::Flipped(bit)) => {
                let hit = bit / 8 / SECTOR;
                for index in 0..moved / SECTOR {
                    let content = match index == hit {
                        true => Content::Damaged { op, index },
                        false => written(index),
                    };
                    actual(told.offset, index, content);
                }
            }
            Some(DataFault::Stale) | None => {
                (0..moved / SECTOR).for_each(|index| actual(told.offset, index, written(index)));
            }
        }
    }

    fn fill(&mut self, told: &Told, moved: u64, content: impl Fn(u64) -> Content) {
        for index in 0..moved / SECTOR {
            let place = place(told.offset) + index as usize;
            self.truth[place] = content(index);
            self.earlier[place] = std::mem::replace(&mut self.actual[place], content(index));
        }
    }

    fn read(&mut self, op: usize, moved: u64, fault: Option<DataFault>) {
        let told = self.told[op];
        let places = place(told.offset)..place(told.offset + moved);
        let truth = self.truth[places.clone()].to_vec();
        let mut returned = match fault {
            Some(DataFault::Stale) => self.earlier[places].to_vec(),
            _ => self.actual[places].to_vec(),
        };
        if let Some(DataFault::Flipped(bit)) = fault
            && let Some(content) = returned.get_mut((bit / 8 / SECTOR) as usize)
        {
            *content = match *content {
                Content::Written { op, index } => Content::Damaged { op, index },
                _ => Content::Damaged {
                    op: usize::MAX,
                    index: 0,
                },
            };
        }
        if truth != returned {
            self.differences.push(Difference {
                read: op,
                truth,
                returned,
            });
        }
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset / SECTOR).unwrap()
}

impl<S: ModelledStorage> ModelledStorage for Oracle<S> {
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> SubmitResult {
        self.now = now;
        if let OpKind::Data(direction) = request.kind {
            self.flying.insert((job, request.slot), self.told.len());
            self.told.push(Told {
                job,
                direction,
                offset: request.offset,
                length: request.length.into(),
                began: now,
                ended: Tick::MAX,
                failed: false,
            });
        }
        self.storage.submit(job, request, now)
    }

    fn next(&self) -> Option<Tick> {
        self.storage.next()
    }

    fn advance(&mut self, now: Tick, out: &mut Vec<StorageEvent>) {
        self.now = now;
        let mut events = std::mem::take(&mut self.events);
        self.storage.advance(now, &mut events);
        for event in events.drain(..) {
            let StorageEvent::Completed { job, slot, result } = event else {
                out.push(event);
                continue;
            };
            if let Some(failure) = self.cut(job, slot) {
                out.push(failure);
                continue;
            }
            out.push(match self.complete(job, slot, result) {
                None => event,
                Some(fault) => StorageEvent::Faulty {
                    job,
                    slot,
                    result,
                    fault,
                },
            });
        }
        self.events = events;
    }

    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        self.storage.manage_zone(action, start)
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        self.storage.zone(offset)
    }

    fn count_seeks(&mut self, from: Tick) {
        self.storage.count_seeks(from);
    }

    fn seeks(&self) -> Option<&SeekCounts> {
        self.storage.seeks()
    }
}
