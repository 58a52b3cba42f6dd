//! Streams that a host sends to a queue pair of its controller.

use std::sync::Arc;

use fathom_core::Tick;
use fathom_nvme::{
    Answer, Arrival, Command, Controller, ControllerLimits, Digests, IoCommand, IoData,
    IoNamespace, NamespaceIdentity, OptionalCommands, Pdu, Subsystem, TargetQueue,
    TargetQueueConfig, ranges,
};

use crate::target::Verdict;

/// Passes a stream to a queue, and its commands to the checks of I/O commands or to a controller.
/// The input's first bytes choose digests and kind of queue, and the split.
///
/// Data must arrive in order within the length that their command has announced, each command must
/// have a slot of its own, and no block outside the namespace may be named.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Some((&[choice, part], stream)) = input.split_first_chunk() else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    let mut owner = Owner::new(choice);
    for mut bytes in stream.chunks(usize::from(part).max(1)) {
        loop {
            owner.receive_in_place(&mut bytes)?;
            match owner.queue.next(&mut bytes) {
                Ok(Some(arrival)) => owner.handle(arrival)?,
                Ok(None) if bytes.is_empty() => break,
                Ok(None) => return Err(format!("{} bytes are left over", bytes.len())),
                Err(reason) => {
                    let (pdu, header) = owner.queue.terminate(reason);
                    let is_told = matches!(pdu, Pdu::TermReq(..)) && header.len() <= 128;
                    return match is_told {
                        true => Ok(Verdict::Refused(format!("{reason:?}"))),
                        false => Err(format!("{pdu:?} of {} bytes", header.len())),
                    };
                }
            }
        }
    }
    let used = owner.slots.iter().flatten().count();
    match owner.queue.in_use() == used {
        true => Ok(Verdict::Accepted),
        false => Err(format!("{used} slots, not {}", owner.queue.in_use())),
    }
}

/// Owner of a queue, as the target is one.
struct Owner {
    queue: TargetQueue,
    controller: Controller,
    choice: u8,
    /// By slot: the command, and the bytes of data that it has and that it waits for.
    slots: [Option<(Command, u32, u32)>; ENTRIES as usize],
}

impl Owner {
    fn new(choice: u8) -> Self {
        let digests = Digests {
            header: choice & 1 != 0,
            data: choice & 2 != 0,
        };
        Self {
            queue: TargetQueue::new(TargetQueueConfig {
                in_capsule_bytes: 4096,
                h2c_data_bytes_max: BYTES,
                digests,
            }),
            controller: controller(),
            choice,
            slots: [None; ENTRIES as usize],
        }
    }

    /// Receives data as from a socket, into their place.
    fn receive_in_place(&mut self, bytes: &mut &[u8]) -> Result<(), String> {
        let Some(place) = self.queue.place().filter(|_| self.choice & 8 != 0) else {
            return Ok(());
        };
        let length = bytes.len().min(place.length as usize);
        let (data, rest) = bytes.split_at(length);
        *bytes = rest;
        self.add(place.slot, place.offset, data.len())?;
        self.queue.received(data);
        Ok(())
    }

    fn handle(&mut self, arrival: Arrival<'_>) -> Result<(), String> {
        match arrival {
            Arrival::Initialized(_) | Arrival::Terminated(_) => Ok(()),
            Arrival::Command {
                slot,
                command,
                in_capsule,
            } => self.start(slot, command, in_capsule),
            Arrival::Data {
                slot,
                offset,
                bytes,
            } => self.add(slot, offset, bytes.len()),
            Arrival::Received { slot, .. } => self.finish(slot),
        }
    }

    fn start(&mut self, slot: u16, command: Command, in_capsule: u32) -> Result<(), String> {
        let place = self.slots.get_mut(usize::from(slot));
        let place = place.ok_or_else(|| format!("slot {slot} of {ENTRIES}"))?;
        if place.replace((command, 0, in_capsule)).is_some() {
            return Err(format!("slot {slot} is in use"));
        }
        if in_capsule > 0 {
            return Ok(());
        }
        let decoded = IoCommand::decode(&command, &NAMESPACE, BYTES);
        if let Ok(decoded) = decoded
            && decoded.offset + decoded.length > NAMESPACE.blocks << NAMESPACE.block_shift
        {
            return Err(format!("{decoded:?} is beyond the end"));
        }
        match decoded.map(|decoded| decoded.data) {
            Ok(IoData::FromHost { length, .. }) if self.queue.qid() == Some(1) => {
                if let Some((_, _, wanted)) = &mut self.slots[usize::from(slot)] {
                    *wanted = length;
                }
                self.queue.request_data(slot, length);
                Ok(())
            }
            _ => self.finish(slot),
        }
    }

    /// Adds data of a command.
    fn add(&mut self, slot: u16, offset: u32, length: usize) -> Result<(), String> {
        let Some(Some((_, arrived, wanted))) = self.slots.get_mut(usize::from(slot)) else {
            return Err(format!("data of slot {slot}, which is free"));
        };
        if offset != *arrived {
            return Err(format!("data at {offset} after {arrived} bytes"));
        }
        *arrived += u32::try_from(length).map_err(|error| error.to_string())?;
        match arrived <= wanted {
            true => Ok(()),
            false => Err(format!("{arrived} bytes of {wanted}")),
        }
    }

    /// Carries a command out whose data are there.
    fn finish(&mut self, slot: u16) -> Result<(), String> {
        let Some((command, arrived, wanted)) = self.slots[usize::from(slot)] else {
            return Err(format!("slot {slot} is free"));
        };
        if arrived != wanted {
            return Err(format!("{arrived} bytes of {wanted} are all"));
        }
        let data = vec![0xa5; arrived as usize];
        let _ranges = ranges(&data, 256, NAMESPACE).count();
        match self.queue.qid() {
            None => self
                .queue
                .connected(u16::from(self.choice >> 2 & 1), ENTRIES),
            Some(0) => {
                let answer = self.controller.admin(&command, &data, Tick::ZERO);
                if let Answer::Data(data, _) = answer
                    && data.len() > 1 << 17
                {
                    return Err(format!("an answer of {} bytes", data.len()));
                }
            }
            Some(_) => {}
        }
        // Commands that stay use up the slots.
        if self.choice & 16 == 0 || command.cid() & 1 == 0 {
            self.slots[usize::from(slot)] = None;
            self.queue.release(slot);
        }
        Ok(())
    }
}

fn controller() -> Controller {
    let identity = NamespaceIdentity {
        blocks: NAMESPACE.blocks,
        block_shift: NAMESPACE.block_shift,
        nguid: [7; 16],
        is_write_protected: false,
    };
    let subsystem = Subsystem {
        nqn: "nqn.2026-01.io.fathom:fuzz".to_owned(),
        serial: "1".to_owned(),
        model: "Fathom".to_owned(),
        firmware: "0.1".to_owned(),
        allowed_hosts: None,
        namespaces: vec![(1, identity)],
        discovery: None,
    };
    let limits = ControllerLimits {
        queues: 8,
        queue_entries: ENTRIES,
        mdts: 1,
        in_capsule_bytes: 4096,
        optional: OptionalCommands::default(),
    };
    Controller::new(1, Arc::new(subsystem), limits, ([0; 16], 0), Tick::ZERO)
}

const ENTRIES: u16 = 8;
const BYTES: u32 = 8192;
const NAMESPACE: IoNamespace = IoNamespace {
    blocks: 1 << 12,
    block_shift: 9,
    is_read_only: false,
};
