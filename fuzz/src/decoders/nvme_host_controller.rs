//! Answers of a controller to the commands of its host's admin queue.

use fathom_core::{Nanos, Tick};
use fathom_nvme::{Completion, ControllerFacts, HostConfig, HostController};

use crate::target::Verdict;

/// Answers each command with what the input says: a completion, and data as a page of zeros with
/// bytes set in it. Facts about a controller that is accepted must make sense.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let mut input = Input(input);
    let mut now = Tick::ZERO;
    let mut controller = HostController::new(config(), now);
    loop {
        let Some(command) = controller.next(now) else {
            match controller.deadline() {
                Some(deadline) if deadline > now => now = deadline,
                _ => break,
            }
            continue;
        };
        let Some(answer) = input.answer() else {
            break;
        };
        let length = (command.answer_bytes as usize).min(answer.data.len());
        let data = &answer.data[..length / answer.divisor];
        if let Err(error) = controller.complete(&answer.completion, data, now) {
            return Ok(Verdict::Refused(error.to_string()));
        }
        if let Some(facts) = controller.facts() {
            check(facts)?;
            if answer.shuts_down {
                controller.shut_down(now);
            }
        }
    }
    Ok(Verdict::Accepted)
}

/// Checks the numbers with which the initiator calculates.
fn check(facts: &ControllerFacts) -> Result<(), String> {
    let is_whole = facts.namespaces.iter().all(|namespace| {
        let shift = u32::from(namespace.block_shift);
        namespace.blocks <= i64::MAX.unsigned_abs() >> shift && facts.data_bytes_max >> shift > 0
    });
    match is_whole && facts.queues > 0 && facts.namespaces.len() == NAMESPACES.len() {
        true => Ok(()),
        false => Err(format!("{facts:?}")),
    }
}

/// Answer to one command.
struct Answer {
    completion: Completion,
    data: Vec<u8>,
    /// 1: as much data as was asked for; above: less.
    divisor: usize,
    shuts_down: bool,
}

/// Bytes that say what a controller answers: a completion, flags, the number of bytes to set, and
/// place and value of each.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn answer(&mut self) -> Option<Answer> {
        let completion = Completion::from_bytes(&self.take()?);
        let [flags, count] = self.take()?;
        let mut data = vec![0; 4096];
        for _ in 0..count {
            let [low, high, value] = self.take()?;
            data[usize::from(u16::from_le_bytes([low, high]) % 4096)] = value;
        }
        Some(Answer {
            completion,
            data,
            divisor: usize::from(flags & 3) + 1,
            shuts_down: flags & 4 != 0,
        })
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

fn config() -> HostConfig {
    HostConfig {
        subsystem_nqn: "nqn.2026-01.io.fathom:fuzz".to_owned(),
        host_nqn: "nqn.2014-08.org.nvmexpress:uuid:fuzz".to_owned(),
        host_id: [1; 16],
        keep_alive: Some(Nanos::from_secs(2)),
        queues: 4,
        namespaces: NAMESPACES.to_vec(),
        timeout: Nanos::from_secs(5),
    }
}

const NAMESPACES: [u32; 2] = [1, 7];
