//! The floor: a target's bytes without a target.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use anyhow::Result;
use fathom_nvme::{Completion, Pdu, PduType};
use fathom_sys::sockets;

use crate::batch::Batch;
use crate::intake::Intake;
use crate::options::Options;
use crate::shape::{CID, COMMAND_CID, Kind, RESPONSE_CID, Shape, header};
use crate::wait::{self, Wait};

/// Serves connections, one thread each, until standard input ends.
pub(crate) fn serve(options: &Options) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    let (shape, wait) = (options.shape, options.wait);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that ends is no error: its peer has measured enough.
            thread::spawn(move || exchange(&stream, shape, wait));
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Answers what is there with one gathered write, then waits for more.
pub(crate) fn exchange(stream: &TcpStream, shape: Shape, wait: wait::Kind) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockets::set_send_buffer(stream, SEND_BYTES)?;
    let mut wait = Wait::new(stream, wait)?;
    let data = vec![0; usize::try_from(shape.bytes).unwrap_or(usize::MAX)];
    let mut answers = Answers::new(shape);
    let mut intake = Intake::new();
    let mut batch = Batch::default();
    loop {
        if !intake.receive(stream)? {
            wait.pause()?;
            continue;
        }
        while let Some(header) = intake.next()? {
            answers.push(&header, &mut batch);
        }
        batch.send(stream, &data, &mut wait)?;
    }
}

/// Send buffer, as the target has on loopback: what is sent is still cached when it is received.
const SEND_BYTES: u32 = 128 << 10;

/// Answers of a target, ready but for the CID.
struct Answers {
    kind: Kind,
    read: [u8; 24],
    request: [u8; 24],
    done: [u8; 24],
}

impl Answers {
    fn new(shape: Shape) -> Self {
        Self {
            kind: shape.kind,
            read: shape.read_answer(),
            request: shape.request(),
            done: header(&Pdu::Response(Completion::default()), 0),
        }
    }

    fn push(&mut self, header: &[u8; 24], batch: &mut Batch) {
        if PduType(header[0]) == PduType::H2C_DATA {
            self.done[RESPONSE_CID..][..2].copy_from_slice(&header[CID..][..2]);
            batch.push(&self.done);
            return;
        }
        let cid = &header[COMMAND_CID..][..2];
        match self.kind {
            Kind::Read => {
                self.read[CID..][..2].copy_from_slice(cid);
                batch.push_with_data(&self.read);
            }
            Kind::Capsule => {
                self.done[RESPONSE_CID..][..2].copy_from_slice(cid);
                batch.push(&self.done);
            }
            Kind::R2t => {
                self.request[CID..][..2].copy_from_slice(cid);
                batch.push(&self.request);
            }
        }
    }
}
