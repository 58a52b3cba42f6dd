//! A host that keeps its queues full and counts nothing but their completions.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fathom_nvme::PduType;

use crate::batch::Batch;
use crate::host::{self, Geometry, Host};
use crate::intake::Intake;
use crate::options::Options;
use crate::shape::{
    CID, COMMAND_BYTES, COMMAND_SLBA, Kind, RESPONSE_CID, RESPONSE_STATUS, SHORT_BYTES, Shape, TTAG,
};
use crate::wait::{self, Wait};

/// Runs the load and prints a line of JSON.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (_admin, mut lanes) = connect(options)?;
    for lane in &mut lanes {
        lane.start()?;
    }
    exchange(&mut lanes, Duration::from_secs_f64(options.warm_up))?;
    let before = completed(&lanes);
    let elapsed = exchange(&mut lanes, Duration::from_secs_f64(options.seconds))?;
    let ops = completed(&lanes) - before;
    let depth = u64::from(options.depth) * u64::from(options.queues);
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2⁵²")]
    let (iops, depth) = (ops as f64 / elapsed.as_secs_f64(), depth as f64);
    // Little's law: exact, since every queue is always full.
    println!(
        "{{\"ops\": {ops}, \"seconds\": {:.6}, \"iops\": {iops:.1}, \"lat_us_mean\": {:.3}, \
         \"mib_per_s\": {:.1}}}",
        elapsed.as_secs_f64(),
        depth / iops * 1e6,
        iops * f64::from(options.shape.bytes) / f64::from(1 << 20),
    );
    Ok(())
}

/// Opens the queues; the admin queue must be kept while they are in use.
fn connect(options: &Options) -> Result<(Option<Host>, Vec<Lane>)> {
    let address = options.address()?;
    let Some(nqn) = &options.nqn else {
        let open = |_| {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Lane::new(stream, options, FLOOR_GEOMETRY)
        };
        return Ok((None, (0..options.queues).map(open).collect::<Result<_>>()?));
    };
    let mut host = Host::connect(address, nqn, options.queues)?;
    let namespace = host.namespace()?;
    let entries = options.depth + 1;
    let mut lanes = Vec::new();
    for qid in 1..=options.queues {
        let stream = host.queue(qid, entries.max(host::ENTRIES_MIN))?;
        lanes.push(Lane::new(stream, options, namespace)?);
    }
    Ok((Some(host), lanes))
}

/// Exchanges commands for a time and returns the exact time.
fn exchange(lanes: &mut [Lane], time: Duration) -> Result<Duration> {
    let start = now();
    loop {
        // The clock is read rarely, since the floor would notice.
        for _ in 0..TURNS_PER_CLOCK {
            for lane in &mut *lanes {
                lane.turn()?;
            }
        }
        let elapsed = start.elapsed();
        if elapsed >= time {
            return Ok(elapsed);
        }
    }
}

fn completed(lanes: &[Lane]) -> u64 {
    lanes.iter().map(|lane| lane.completed).sum()
}

/// One queue and its connection.
struct Lane {
    stream: TcpStream,
    wait: Wait,
    shape: Shape,
    /// One command for each CID; only the first block changes.
    commands: Vec<[u8; COMMAND_BYTES]>,
    data: Vec<u8>,
    intake: Intake,
    batch: Batch,
    /// Number of whole commands in the namespace, and their size in blocks.
    places: u64,
    blocks: u64,
    random: u64,
    completed: u64,
}

impl Lane {
    fn new(stream: TcpStream, options: &Options, namespace: Geometry) -> Result<Self> {
        let shape = options.shape;
        let per_command = u64::from(shape.bytes / namespace.block_bytes).max(1);
        // One queue may sleep in its socket; several are polled.
        let wait = match options.queues {
            1 => options.wait,
            _ => wait::Kind::Poll,
        };
        Ok(Self {
            wait: Wait::new(&stream, wait)?,
            stream,
            shape,
            commands: (0..options.depth)
                .map(|cid| shape.command(cid, namespace.block_bytes))
                .collect(),
            data: vec![0x5a; usize::try_from(shape.bytes).unwrap_or(usize::MAX)],
            intake: Intake::new(),
            batch: Batch::default(),
            places: (namespace.blocks / per_command).max(1),
            blocks: per_command,
            random: SEED,
            completed: 0,
        })
    }

    /// Fills the queue.
    fn start(&mut self) -> Result<()> {
        for cid in 0..self.commands.len() {
            self.push(cid);
        }
        self.send()
    }

    /// Takes what is there and replaces each completed command by a new one.
    fn turn(&mut self) -> Result<()> {
        if !self.intake.receive(&self.stream)? {
            self.wait.pause()?;
            return Ok(());
        }
        while let Some(header) = self.intake.next()? {
            self.handle(&header)?;
        }
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        let batch = &mut self.batch;
        let sent = batch.send(&self.stream, &self.data, &mut self.wait);
        sent.context("cannot send")
    }

    fn handle(&mut self, header: &[u8; SHORT_BYTES]) -> Result<()> {
        let field = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        match PduType(header[0]) {
            PduType::C2H_DATA => {
                if header[1] & SUCCESS != 0 {
                    self.complete(field(CID));
                }
            }
            PduType::CAPSULE_RESP => {
                let status = field(RESPONSE_STATUS) >> 1;
                if status != 0 {
                    bail!("a command failed with status {status:#x}");
                }
                self.complete(field(RESPONSE_CID));
            }
            PduType::R2T => {
                let data = self.shape.data(field(CID), field(TTAG));
                self.batch.push_with_data(&data);
            }
            other => bail!("PDU of type {:#04x}", other.0),
        }
        Ok(())
    }

    fn complete(&mut self, cid: u16) {
        self.completed += 1;
        self.push(usize::from(cid));
    }

    /// Issues a command at a random place.
    fn push(&mut self, cid: usize) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let place = (u128::from(self.random) * u128::from(self.places)) >> 64;
        // Cannot truncate: the product is below 2⁶⁴ × places.
        let slba = u64::try_from(place).unwrap_or(0) * self.blocks;
        let command = &mut self.commands[cid];
        command[COMMAND_SLBA..][..8].copy_from_slice(&slba.to_le_bytes());
        match self.shape.kind {
            Kind::Capsule => self.batch.push_with_data(command),
            Kind::Read | Kind::R2t => self.batch.push(command),
        }
    }
}

/// Returns the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "the loop has no driver: it is what a driver is compared with"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Flag of data whose command succeeded without a completion.
const SUCCESS: u8 = 1 << 3;
/// Turns between two readings of the clock: some tens of microseconds at least.
const TURNS_PER_CLOCK: u32 = 64;
/// Namespace that the floor pretends to have: 8 GiB.
const FLOOR_GEOMETRY: Geometry = Geometry {
    block_bytes: 4096,
    blocks: 8 << 18,
};
/// Arbitrary, but not zero.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::floor;

    /// Exchanges commands of one shape with the floor, which ends when the connection does.
    #[track_caller]
    fn check(line: &str) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let options = Options::parse(&words).expect("good options");
        let wait = options.wait;
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let server = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            floor::exchange(&stream, options.shape, wait)
        });
        let stream = TcpStream::connect(address).expect("listening");
        let mut lane = Lane::new(stream, &options, FLOOR_GEOMETRY).expect("a socket");
        lane.start().expect("sent");
        while lane.completed < 10 * u64::from(options.depth) {
            lane.turn().expect("answered");
        }
        drop(lane);
        let ended = server.join().expect("no panic");
        assert!(ended.is_err(), "only the end of the connection ends it");
    }

    #[test]
    fn every_shape_completes() {
        check("--shape read --bytes 4096 --depth 32");
        check("--shape read --bytes 131072 --depth 3 --wait poll");
        check("--shape capsule --bytes 4096 --depth 100");
        check("--shape r2t --bytes 4096 --depth 7 --wait epoll");
        check("--shape r2t --bytes 131072 --depth 1");
    }
}
