//! Messages between the ranks of a run on many hosts.

use fathom_core::{Nanos, Tick};
use fathom_hosts::{Conductor, Member, Message, Output, Rank};

use crate::target::Verdict;

/// Decodes messages, each after two bytes of length and one for its sender, and hands them to a
/// conductor and a rank, which must stand whatever comes. What is accepted must be written as it
/// was read.
pub(crate) fn decode(mut input: &[u8]) -> Result<Verdict, String> {
    let mut now = Tick::ZERO;
    let mut conductor = Conductor::new(now, RANKS, true).map_err(|error| error.to_string())?;
    let mut member = Member::new(now);
    while let Some((head, rest)) = input.split_first_chunk::<3>() {
        let [low, high, sender] = *head;
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        input = rest;
        now += Nanos::from_millis(u64::from(sender) * 100);
        let message = match Message::decode(bytes) {
            Ok(message) => message,
            Err(error) => return Ok(Verdict::Refused(error.to_string())),
        };
        let mut written = Vec::new();
        message.encode(&mut written);
        if written != bytes {
            return Err(format!("{message:?} is written as other bytes"));
        }
        match message {
            Message::Report(report) => {
                let from = Rank::new(u32::from(sender) % (RANKS + 1));
                conductor.handle_report(now, from, report);
            }
            Message::Order(order) => member.handle_order(now, order),
            Message::Ping { .. } => conductor.handle_timeout(now),
            Message::Pong { .. } => member.handle_timeout(now),
            Message::Clock(_) => member.handle_gone(),
        }
        drain(&mut conductor)?;
    }
    Ok(Verdict::Accepted)
}

/// Takes the outputs, of which a message can cause a few per rank.
fn drain(conductor: &mut Conductor) -> Result<(), String> {
    for _ in 0..RANKS * 10 {
        match conductor.poll_output() {
            None => return Ok(()),
            Some(Output::Send { to, .. }) if to.get() >= RANKS => {
                return Err(format!("an order for rank {to}"));
            }
            Some(_) => {}
        }
    }
    Err("outputs without end".to_owned())
}

/// Ranks of the conductor; one sender more does not exist.
const RANKS: u32 = 3;
