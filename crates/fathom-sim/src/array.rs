//! Striped array: commands are spread over several devices chunk by chunk, as in RAID 0.
//!
//! # Limits
//! There is no parity, no mirror, and no controller with a cache or overhead of its own.

use std::sync::Arc;

use fathom_block::Parameters;
use fathom_core::{BlockDevice, Command, CommandData, Finished, Geometry, PerDirection, Tick};

use crate::models::{Model, read_member};
use crate::ssd::BLOCKS_MAX;

/// Striped array of equal devices.
#[derive(Debug)]
pub struct Array<D> {
    members: Vec<Member<D>>,
    chunk: u64,
    /// By tag: parts still in flight, and the result so far.
    open: Vec<(u32, i32)>,
}

#[derive(Debug)]
struct Member<D> {
    device: D,
    /// Array command behind each tag of the member.
    owners: Vec<u32>,
    free: Vec<u32>,
}

impl<D: BlockDevice> Array<D> {
    /// Creates an array with chunks of this number of bytes.
    ///
    /// # Panics
    /// If there are no devices, or `chunk` is 0.
    #[must_use]
    pub fn new(devices: Vec<D>, chunk: u64) -> Self {
        assert!(!devices.is_empty() && chunk > 0, "an array has chunks");
        let member = |device| Member {
            device,
            owners: Vec::new(),
            free: Vec::new(),
        };
        Self {
            members: devices.into_iter().map(member).collect(),
            chunk,
            open: Vec::new(),
        }
    }

    /// Starts the part of a command that lies in one chunk on its member.
    fn start_part(&mut self, part: &Command, now: Tick) {
        let count = self.members.len() as u64;
        let (chunk, within) = (part.offset / self.chunk, part.offset % self.chunk);
        let number = usize::try_from(chunk % count).unwrap_or(0);
        let offset = chunk / count * self.chunk + within;
        self.members[number].start(&Command { offset, ..*part }, now);
        self.open[part.tag as usize].0 += 1;
    }
}

impl<D: BlockDevice> Member<D> {
    fn start(&mut self, part: &Command, now: Tick) {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.owners.push(0);
            u32::try_from(self.owners.len() - 1).unwrap_or(u32::MAX)
        });
        self.owners[tag as usize] = part.tag;
        // The members are models: there is no data to divide.
        let command = Command { tag, ..*part };
        self.device.start(&command, &mut None, now);
    }
}

impl<D: BlockDevice> BlockDevice for Array<D> {
    fn geometry(&self) -> Geometry {
        let first = self.members[0].device.geometry();
        Geometry {
            bytes: first.bytes.saturating_mul(self.members.len() as u64),
            transfer_bytes_max: Geometry::UNBOUNDED.transfer_bytes_max,
            ..first
        }
    }

    fn start(&mut self, command: &Command, _no_data: &mut CommandData, now: Tick) {
        let tags = self.open.len().max(command.tag as usize + 1);
        self.open.resize(tags, (0, 0));
        self.open[command.tag as usize] = (0, 0);
        if command.length == 0 {
            // A sync goes to every member.
            for member in &mut self.members {
                member.start(command, now);
                self.open[command.tag as usize].0 += 1;
            }
            return;
        }
        let (mut offset, end) = (command.offset, command.offset + u64::from(command.length));
        while offset < end {
            let to = end.min((offset / self.chunk + 1) * self.chunk);
            let length = u32::try_from(to - offset).unwrap_or(u32::MAX);
            let part = Command {
                offset,
                length,
                ..*command
            };
            self.start_part(&part, now);
            offset = to;
        }
    }

    fn next(&self) -> Option<Tick> {
        let members = self.members.iter();
        members.filter_map(|member| member.device.next()).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        for member in &mut self.members {
            while let Some(part) = member.device.completed(now) {
                member.free.push(part.tag);
                let tag = member.owners[part.tag as usize];
                let (left, result) = &mut self.open[tag as usize];
                *left -= 1;
                *result = if *result < 0 || part.result < 0 {
                    part.result.min(*result)
                } else {
                    result.saturating_add(part.result)
                };
                if *left == 0 {
                    let (at, result) = (part.at, *result);
                    return Some(Finished::new(tag, at, result));
                }
            }
        }
        None
    }
}

/// Configuration of an array.
#[derive(Clone, Debug)]
struct ArrayConfig {
    member: Arc<dyn Model>,
    members: u32,
    chunk_bytes: u64,
}

impl Model for ArrayConfig {
    fn device(&self, number: u64) -> Box<dyn BlockDevice> {
        let count = u64::from(self.members);
        let first = number.wrapping_mul(count);
        let members = (0..count).map(|member| self.member.device(first.wrapping_add(member)));
        Box::new(Array::new(members.collect(), self.chunk_bytes))
    }

    fn drawn(&self) -> Option<PerDirection<bool>> {
        self.member.drawn()
    }
}

/// Reads the keys of `[device.array]`, in which is the table of the members' model. `capacity` is
/// that of all together.
pub(crate) fn read(fields: &dyn Parameters, capacity: u64) -> Option<Arc<dyn Model>> {
    let members = fields.count("members", 2..=64, None);
    let chunk_bytes = fields.whole("chunk_kib", 4..=1 << 20, None) << 10;
    if !chunk_bytes.is_multiple_of(4096) {
        let why = "`chunk_kib` must be a multiple of 4";
        fields.refuse("chunk_kib", why, "write 64, 128, 512 …");
    }
    let chunks = capacity.div_ceil(chunk_bytes).div_ceil(members.into());
    let member = read_member(fields, chunks * chunk_bytes)?;
    let blocks = member.erase_blocks() * u64::from(members);
    if blocks > BLOCKS_MAX {
        let why = format!("{blocks} blocks of flash are more than the {BLOCKS_MAX} of a model");
        let hint = "lower `members` or `capacity_gib`, or raise `pages_per_block`";
        fields.refuse("members", &why, hint);
    }
    Some(Arc::new(ArrayConfig {
        member,
        members,
        chunk_bytes,
    }))
}

#[cfg(test)]
mod tests {
    use fathom_core::{Direction, Nanos, OpKind, SyncKind};

    use super::*;
    use crate::Constant;

    /// Runs a command on an array of two with chunks of 8; returns its result, and the commands to
    /// each member.
    #[track_caller]
    fn check(kind: OpKind, offset: u64, length: u32, want: i32, parts: [usize; 2]) {
        let devices = vec![Constant::new(Nanos::new(5)), Constant::new(Nanos::new(5))];
        let mut array = Array::new(devices, 8);
        let command = Command {
            tag: 3,
            kind,
            offset,
            length,
        };
        array.start(&command, &mut None, Tick::ZERO);
        let tags = array.members.iter().map(|member| member.owners.len());
        assert_eq!(tags.collect::<Vec<_>>(), parts);
        assert_eq!(array.next(), Some(Tick::new(5)));
        let finished = array.completed(Tick::new(5));
        let want = Finished::new(3, Tick::new(5), want);
        assert_eq!(finished, Some(want));
        assert_eq!(array.completed(Tick::new(5)), None);
    }

    #[test]
    fn a_command_completes_with_its_last_part() {
        let write = OpKind::Data(Direction::Write);
        check(write, 0, 8, 8, [1, 0]);
        check(write, 12, 4, 4, [0, 1]);
        check(write, 4, 20, 20, [2, 1]);
        check(OpKind::Sync(SyncKind::Full), 0, 0, 0, [1, 1]);
    }
}
