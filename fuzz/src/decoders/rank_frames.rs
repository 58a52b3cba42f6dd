//! Frames between ranks, and the long texts in them.

use fathom_core::{Nanos, Tick};
use fathom_hosts::{
    BulkMessage, Channel, FRAME_BYTES_MAX, Frames, Gather, GatherOutput, Item, Rank,
};

use crate::target::Verdict;

/// Passes frames, each after two bytes of length and one for its sender, to a rank that fetches
/// records from two others. Each record may come once at most, in order; what is accepted as a
/// message must be written as it was read.
pub(crate) fn decode(mut input: &[u8]) -> Result<Verdict, String> {
    let mut now = Tick::ZERO;
    let mut frames = Frames::new();
    let mut gather = Gather::new(now, Item::Record, [1, 2].map(Rank::new));
    let mut fetched = Vec::new();
    while let Some((head, rest)) = input.split_first_chunk::<3>() {
        let [low, high, sender] = *head;
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (frame, rest) = rest.split_at(length);
        input = rest;
        now += Nanos::from_millis(u64::from(sender >> 2));
        let from = Rank::new(u32::from(sender & 3));
        if let Err(error) = frames.handle_frame(from, frame) {
            return Ok(Verdict::Refused(error.to_string()));
        }
        while frames.next_message(Channel::Control).is_some() {}
        while let Some((from, bytes)) = frames.next_message(Channel::Bulk) {
            let message = match BulkMessage::decode(&bytes) {
                Ok(message) => message,
                Err(error) => return Ok(Verdict::Refused(error.to_string())),
            };
            if message.encode() != bytes {
                return Err(format!("{message:?} is written as other bytes"));
            }
            gather.handle_piece(now, from, &message);
        }
        gather.handle_timeout(now);
        while let Some(output) = gather.poll_output() {
            match output {
                GatherOutput::Ask { to, want } => {
                    frames.queue(Channel::Bulk, to, &want.encode());
                }
                GatherOutput::Fetched { rank, .. } => fetched.push(rank.get()),
            }
        }
        while let Some((_, frame)) = frames.next_frame() {
            if frame.len() > FRAME_BYTES_MAX {
                return Err(format!("a frame of {} bytes", frame.len()));
            }
        }
    }
    match [1, 2].starts_with(&fetched) {
        true => Ok(Verdict::Accepted),
        false => Err(format!("records of {fetched:?}")),
    }
}
