//! Device without a queue in front: ops go to it at once.
//!
//! Faults can be injected by op number, so that tests decide exactly which op fails.

use fathom_block::{SeekCounts, moves_data};
use fathom_core::{
    BlockDevice, Command, Direction, Errno, OpKind, PerDirection, Slot, Tick, Zone, ZoneAction,
};

use crate::data_fault::DataFault;
use crate::storage::{JobId, ModelledStorage, Request, StorageEvent, SubmitResult};

/// Storage that passes any number of commands to its device at once.
#[derive(Debug)]
pub struct Direct<D> {
    device: D,
    /// Owner and injected fault of the command with this tag.
    owners: Vec<(JobId, Slot, Option<FaultKind>)>,
    free: Vec<u32>,
    faults: Vec<InjectedFault>,
    numbers: PerDirection<u64>,
    /// Seek distances, and the time from which they are counted.
    seeks: Option<(Tick, SeekCounts)>,
}

/// Fault injected into one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// Number of the op within its direction, from 0.
    pub number: u64,
    /// Direction of the op.
    pub direction: Direction,
    /// Kind of fault.
    pub kind: FaultKind,
}

/// Kind of an injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The op fails with this errno.
    Error(u16),
    /// The op moves only this many bytes.
    Short(u32),
    /// The op reports success, but its data are not what they should be.
    Data(DataFault),
}

impl<D: BlockDevice> Direct<D> {
    /// Creates a storage that consists of `device` alone.
    #[must_use]
    pub fn new(device: D) -> Self {
        Self {
            device,
            owners: Vec::new(),
            free: Vec::new(),
            faults: Vec::new(),
            numbers: PerDirection::default(),
            seeks: None,
        }
    }

    /// Adds faults.
    #[must_use]
    pub fn with_faults(self, faults: Vec<InjectedFault>) -> Self {
        Self { faults, ..self }
    }

    /// Returns the device.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// Returns the fault of the next op of a direction.
    fn fate(&mut self, kind: OpKind) -> Option<FaultKind> {
        let OpKind::Data(direction) = kind else {
            return None;
        };
        let number = self.numbers[direction];
        self.numbers[direction] += 1;
        let mut faults = self.faults.iter();
        let fault = faults.find(|fault| fault.number == number && fault.direction == direction);
        fault.map(|fault| fault.kind)
    }

    #[cold]
    fn count_seek(&mut self, request: &Request, now: Tick) {
        let Some((from, seeks)) = &mut self.seeks else {
            return;
        };
        if !moves_data(request.kind) {
            return;
        }
        seeks.dispatch(request.offset, request.length.into());
        if now < *from {
            seeks.restart();
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are fewer commands in flight than that"
    )]
    fn tag(&mut self, job: JobId, request: &Request) -> u32 {
        let owner = (job, request.slot, self.fate(request.kind));
        if let Some(tag) = self.free.pop() {
            self.owners[tag as usize] = owner;
            return tag;
        }
        self.owners.push(owner);
        (self.owners.len() - 1) as u32
    }
}

impl<D: BlockDevice> ModelledStorage for Direct<D> {
    #[inline]
    fn submit(&mut self, job: JobId, request: &Request, now: Tick) -> SubmitResult {
        if self.seeks.is_some() {
            self.count_seek(request, now);
        }
        let tag = self.tag(job, request);
        let command = Command {
            tag,
            kind: request.kind,
            offset: request.offset,
            length: request.length,
        };
        self.device.start(&command, &mut None, now);
        SubmitResult::Accepted
    }

    #[inline]
    fn next(&self) -> Option<Tick> {
        self.device.next()
    }

    #[inline]
    fn advance(&mut self, now: Tick, out: &mut Vec<StorageEvent>) {
        while let Some(finished) = self.device.completed(now) {
            let (job, slot, fate) = self.owners[finished.tag as usize];
            self.free.push(finished.tag);
            let result = match fate {
                None => finished.result,
                Some(FaultKind::Error(errno)) => -i32::from(errno),
                Some(FaultKind::Short(bytes)) => finished.result.min(bytes.cast_signed()),
                Some(FaultKind::Data(fault)) => {
                    out.push(StorageEvent::Faulty {
                        job,
                        slot,
                        result: finished.result,
                        fault,
                    });
                    continue;
                }
            };
            out.push(StorageEvent::Completed { job, slot, result });
        }
    }

    fn manage_zone(&mut self, action: ZoneAction, start: u64) -> Result<(), Errno> {
        self.device.manage_zone(action, start)
    }

    fn zone(&self, offset: u64) -> Option<Zone> {
        self.device.zone(offset)
    }

    fn count_seeks(&mut self, from: Tick) {
        self.seeks = Some((from, SeekCounts::new()));
    }

    fn seeks(&self) -> Option<&SeekCounts> {
        self.seeks.as_ref().map(|(_, seeks)| seeks)
    }
}
