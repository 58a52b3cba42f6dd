//! Connections that do nothing, and the time that one takes to be served.

use std::io::{self, Read, Write};

use anyhow::Result;

use crate::batch::Batch;
use crate::host::{ENTRIES_MIN, Host};
use crate::intake::Intake;
use crate::load::now;
use crate::options::Options;
use crate::wait::{self, Wait};

/// Opens connections, prints their number, and keeps them until standard input ends.
pub(crate) fn hold(options: &Options) -> Result<()> {
    let (address, nqn) = (options.address()?, options.nqn.clone().unwrap_or_default());
    let mut held = Vec::new();
    let mut left = options.connections;
    while left > 0 {
        // One admin connection, and as many others as most controllers allow.
        let queues = left.saturating_sub(1).min(QUEUES_MAX);
        let host = Host::connect(address, &nqn, u16::try_from(queues.max(1))?)?;
        let open = |qid| host.queue(qid, QUEUE_ENTRIES);
        let sockets = (1..=u16::try_from(queues)?).map(open);
        let sockets = sockets.collect::<Result<Vec<_>>>()?;
        left -= queues + 1;
        held.push((host, sockets));
    }
    println!("{}", options.connections);
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Times a whole host: admin queue, I/O queue, one read.
pub(crate) fn time(options: &Options) -> Result<()> {
    let nqn = options.nqn.clone().unwrap_or_default();
    let start = now();
    let mut host = Host::connect(options.address()?, &nqn, 1)?;
    let namespace = host.namespace()?;
    let stream = host.queue(1, ENTRIES_MIN)?;
    let mut batch = Batch::default();
    batch.push(&options.shape.command(0, namespace.block_bytes));
    batch.send(&stream, &[], &mut Wait::new(&stream, wait::Kind::Block)?)?;
    let mut intake = Intake::new();
    while intake.next()?.is_none() {
        intake.receive(&stream)?;
    }
    println!("{:.3}", start.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}

/// I/O queues of one controller: fewer than the 128 that targets grant.
const QUEUES_MAX: u32 = 124;
/// Queue depth 128 and the entry that stays empty.
const QUEUE_ENTRIES: u16 = 128;
