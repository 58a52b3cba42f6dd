//! Long texts between the ranks: the task before the run, the records after it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use fathom_core::{Nanos, Tick};
use fathom_hosts::{BulkLink, BulkMessage, Gather, GatherError, GatherOutput, Item, Rank};
use fathom_sys::clock::{self, Clock};

use crate::ranks::offered_logs::OfferedLogs;
use crate::ranks::task::Task;

/// Texts that this rank gives to those that ask.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// Task, on rank 0.
    pub(crate) task: Vec<u8>,
    /// Record; empty without one.
    pub(crate) record: Vec<u8>,
    /// Logs.
    pub(crate) logs: OfferedLogs,
}

impl Offer {
    /// Answers what has arrived, and hands pieces of others' texts to `take`. Returns whether
    /// anything had arrived.
    pub(crate) fn serve(
        &self,
        link: &mut impl BulkLink,
        take: &mut dyn FnMut(Rank, &BulkMessage),
    ) -> Result<bool> {
        let mut any = false;
        while let Some((from, message)) = link.receive_bulk()? {
            any = true;
            let BulkMessage::Want { item, offset } = message else {
                take(from, &message);
                continue;
            };
            let piece = match item {
                Item::Task => BulkMessage::piece(item, &self.task, offset),
                Item::Record => BulkMessage::piece(item, &self.record, offset),
                Item::Files => BulkMessage::piece(item, &self.logs.list, offset),
                Item::File(place) => match self.logs.piece(place, offset) {
                    Ok(piece) => piece,
                    // Rank 0 gives it up, and says so.
                    Err(_) => continue,
                },
                Item::Host => continue,
            };
            link.send_bulk(from, &piece)?;
        }
        Ok(any)
    }
}

/// Ranks that have sent the names of their hosts.
#[derive(Debug)]
pub(crate) struct RollCall {
    /// Names, by rank. A rank that does not answer has none: the conductor notices it.
    pub(crate) names: Vec<String>,
    /// Ranks that have already asked for the task.
    early: BTreeSet<Rank>,
}

/// Waits for the names of all ranks' hosts, on rank 0.
pub(crate) fn call_roll(link: &mut impl BulkLink, own: &str) -> Result<RollCall> {
    let ranks = link.ranks();
    let mut names = BTreeMap::from([(0, own.to_owned())]);
    let mut early = BTreeSet::new();
    let clock = Clock::monotonic();
    let begun = clock.now();
    while names.len() < ranks as usize && clock.now() - begun < TASK_PATIENCE {
        let mut any = false;
        while let Some((from, message)) = link.receive_bulk()? {
            any = true;
            match message {
                BulkMessage::Want {
                    item: Item::Task, ..
                } => _ = early.insert(from),
                BulkMessage::Piece {
                    item: Item::Host,
                    bytes,
                    ..
                } => {
                    let name = String::from_utf8_lossy(&bytes);
                    let printable = name.chars().filter(|letter| !letter.is_control());
                    names.insert(from.get(), printable.collect());
                }
                _ => {}
            }
        }
        rest(any);
    }
    let name = |rank| names.remove(&rank).unwrap_or_default();
    let names = (0..ranks).map(name).collect();
    Ok(RollCall { names, early })
}

/// Gives the task to all ranks.
pub(crate) fn hand_out(link: &mut impl BulkLink, task: &Task, roll: &RollCall) -> Result<()> {
    let offer = Offer {
        task: serde_json::to_vec(task)?,
        ..Offer::default()
    };
    for &rank in &roll.early {
        link.send_bulk(rank, &BulkMessage::piece(Item::Task, &offer.task, 0))?;
    }
    let silent = roll.names.iter().filter(|name| name.is_empty()).count();
    let wanted = roll.names.len() - silent;
    let mut have = BTreeSet::from([0]);
    let clock = Clock::monotonic();
    let begun = clock.now();
    while have.len() < wanted && clock.now() - begun < TASK_PATIENCE {
        let any = offer.serve(link, &mut |from, message| {
            if let BulkMessage::Piece {
                item: Item::Host, ..
            } = message
            {
                have.insert(from.get());
            }
        })?;
        rest(any);
    }
    Ok(())
}

/// Sends the name of this host to rank 0, and takes the task from it.
pub(crate) fn fetch_task(link: &mut impl BulkLink, own: &str) -> Result<Task> {
    let zero = Rank::new(0);
    let name = BulkMessage::piece(Item::Host, own.as_bytes(), 0);
    link.send_bulk(zero, &name)?;
    let clock = Clock::monotonic();
    let begun = clock.now();
    let text = loop {
        match fetched_from(link, zero, &clock)? {
            // Rank 0 answers when it has heard of all.
            Some(Err(GatherError::Silent { bytes: 0 }))
                if clock.now() - begun < TASK_PATIENCE + TASK_PATIENCE => {}
            Some(Err(error)) => bail!("the task of rank 0: {error}"),
            Some(Ok(text)) => break text,
            None => bail!("rank 0 has no task"),
        }
    };
    // Once more: it has the task.
    link.send_bulk(zero, &name)?;
    serde_json::from_slice(&text)
        .context("rank 0 has sent a task that cannot be read: use one version on all hosts")
}

fn fetched_from(link: &mut impl BulkLink, rank: Rank, clock: &Clock) -> Result<Option<Fetched>> {
    let mut text = None;
    let mut gather = Gather::new(clock.now(), Item::Task, [rank]);
    while !gather.is_done() {
        let any = step(&mut gather, link, clock.now(), &mut |_, fetched| {
            text = Some(fetched);
            Ok(())
        })?;
        rest(any);
    }
    Ok(text)
}

/// Text of a rank, or the reason why there is none.
pub(crate) type Fetched = Result<Vec<u8>, GatherError>;

/// Sends the requests of a gather, hands over its texts and takes what has arrived. Returns whether
/// anything had.
pub(crate) fn step(
    gather: &mut Gather,
    link: &mut impl BulkLink,
    now: Tick,
    take: &mut dyn FnMut(Rank, Fetched) -> Result<()>,
) -> Result<bool> {
    let nothing = Offer::default();
    let any = nothing.serve(link, &mut |from, message| {
        gather.handle_piece(now, from, message);
    })?;
    gather.handle_timeout(now);
    while let Some(output) = gather.poll_output() {
        match output {
            GatherOutput::Ask { to, want } => link.send_bulk(to, &want)?,
            GatherOutput::Fetched { rank, text } => take(rank, text)?,
        }
    }
    Ok(any)
}

/// Sleeps a little if nothing has come: these loops run while no job does, but other programs may.
pub(crate) fn rest(any: bool) {
    if !any {
        clock::sleep(NAP);
    }
}

/// Time that ranks have to tell their names, and then to take the task, from the moment at which
/// MPI has started on all.
const TASK_PATIENCE: Nanos = Nanos::from_secs(15);
/// A guess: a piece takes some 0.1 ms.
const NAP: Nanos = Nanos::from_micros(100);
