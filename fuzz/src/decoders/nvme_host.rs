//! Streams that a controller sends to a queue pair of its host.

use fathom_nvme::{
    Command, CommandData, Digests, HostEvent, HostQueue, HostQueueConfig, Opcode, Piece,
};

use crate::target::Verdict;

/// Passes a stream to a queue with commands of each kind in flight. The input's first bytes choose
/// digests and split. Each command must complete once at most, and no event may name data outside
/// its command.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Some((&[digests, part], stream)) = input.split_first_chunk() else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    let mut queue = HostQueue::new(HostQueueConfig {
        commands: COMMANDS,
        digests: Digests {
            header: digests & 1 != 0,
            data: digests & 2 != 0,
        },
        in_capsule_bytes: 512,
        data_bytes_max: BYTES,
    });
    let mut in_flight = [false; COMMANDS as usize];
    for mut bytes in stream.chunks(usize::from(part).max(1)) {
        loop {
            match queue.next(&mut bytes) {
                Ok(Some(event)) => on_event(&mut queue, event, &mut in_flight)?,
                Ok(None) if bytes.is_empty() => break,
                Ok(None) => return Err(format!("{} bytes are left over", bytes.len())),
                Err(error) => {
                    send(&mut queue)?;
                    return Ok(Verdict::Refused(error.to_string()));
                }
            }
        }
        if digests & 4 != 0 {
            send(&mut queue)?;
        }
    }
    match queue.in_flight() == in_flight.iter().filter(|&&used| used).count() {
        true => Ok(Verdict::Accepted),
        false => Err(format!("{} commands are in flight", queue.in_flight())),
    }
}

fn on_event(
    queue: &mut HostQueue,
    event: HostEvent<'_>,
    in_flight: &mut [bool],
) -> Result<(), String> {
    match event {
        HostEvent::Initialized => (0..).zip(in_flight).for_each(|(tag, used)| {
            *used = submit(queue, tag);
        }),
        HostEvent::Data { tag, offset, bytes } => check_range(tag, offset, bytes.len())?,
        HostEvent::Wanted(wanted) => {
            let length = wanted.length as usize;
            check_range(wanted.tag, wanted.offset, length)?;
            queue.transfer(wanted, &DATA[..length]);
        }
        HostEvent::Completed { tag, .. } => {
            if !std::mem::take(&mut in_flight[tag as usize]) {
                return Err(format!("command {tag} completes again"));
            }
            in_flight[tag as usize] = submit(queue, tag);
        }
    }
    Ok(())
}

/// Submits a command and returns whether it was accepted; its data begin at an offset of its tag
/// alone.
fn submit(queue: &mut HostQueue, tag: u32) -> bool {
    let (opcode, data) = match tag % 4 {
        0 => (Opcode::READ, CommandData::Read(BYTES)),
        1 => (Opcode::WRITE, CommandData::Write(&DATA)),
        2 => (Opcode::WRITE, CommandData::Write(&DATA[..512])),
        _ => (Opcode::FLUSH, CommandData::None),
    };
    queue.submit(Command::new(opcode, 0), tag, tag * BYTES, data)
}

fn check_range(tag: u32, offset: u32, length: usize) -> Result<(), String> {
    let from = tag * BYTES;
    let upto = u64::from(offset) + length as u64;
    match offset >= from && upto <= u64::from(from + BYTES) {
        true => Ok(()),
        false => Err(format!(
            "{length} bytes at {offset} are not of command {tag}"
        )),
    }
}

/// Takes off all unsent bytes.
fn send(queue: &mut HostQueue) -> Result<(), String> {
    let mut bytes = 0;
    for piece in queue.unsent().pieces() {
        bytes += match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Data {
                tag,
                offset,
                length,
            } => {
                check_range(tag, offset, length as usize)?;
                length as usize
            }
        };
    }
    queue.sent(bytes);
    Ok(())
}

const COMMANDS: u16 = 8;
const BYTES: u32 = 8192;
static DATA: [u8; BYTES as usize] = [7; BYTES as usize];
