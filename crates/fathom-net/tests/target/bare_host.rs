//! A host of a few lines, which sends whatever a test wants.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use fathom_nvme::{
    Command, Completion, Connect, DataPdu, DataPointer, Decoder, Digest, Digests, Event,
    FabricsType, Framing, IcReq, Limits, Opcode, Pdu, Property, PropertyAccess, Side, Status,
};

use crate::setup::NQN;

pub(crate) const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:host";

/// One connection of a host.
pub(crate) struct BareHost {
    pub(crate) stream: TcpStream,
    decoder: Decoder,
    framing: Framing,
    has_data_digest: bool,
    /// Received and not decoded.
    input: Vec<u8>,
    pub(crate) cntlid: u16,
}

/// PDU with its data.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) pdu: Pdu,
    pub(crate) data: Vec<u8>,
}

impl BareHost {
    /// Connects a socket and initializes the connection.
    pub(crate) fn open(address: SocketAddr, digests: Digests) -> Self {
        let mut host = Self::raw(address);
        let request = IcReq {
            digests,
            ..IcReq::default()
        };
        host.send(&Pdu::IcReq(request), &[]);
        let Pdu::IcResp(response) = host.receive().unwrap().pdu else {
            panic!("no response");
        };
        assert_eq!((response.digests, response.cpda), (digests, 0));
        host.framing = Framing::new(digests, 0).unwrap();
        host.has_data_digest = digests.data;
        host.decoder.establish(host.framing);
        host
    }

    /// Connects a socket alone.
    pub(crate) fn raw(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // A test that waits in vain fails instead of hanging.
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        let limits = Limits {
            in_capsule_bytes: 0,
            data_bytes: 1 << 20,
        };
        Self {
            stream,
            decoder: Decoder::new(Side::Host, limits),
            framing: Framing::PLAIN,
            has_data_digest: false,
            input: Vec::new(),
            cntlid: Connect::ANY_CONTROLLER,
        }
    }

    /// Opens an admin queue and enables its controller.
    pub(crate) fn admin(address: SocketAddr, digests: Digests) -> Self {
        let mut host = Self::open(address, digests);
        let completion = host.connect(&connect(0, Connect::ANY_CONTROLLER));
        assert!(completion.status.is_success(), "{completion:?}");
        host.cntlid = u16::try_from(completion.result).unwrap();
        host.set_configuration(0x46_0001);
        host
    }

    /// Opens an I/O queue of the same controller.
    pub(crate) fn io(&self, address: SocketAddr, qid: u16, digests: Digests) -> Self {
        let mut host = Self::open(address, digests);
        let completion = host.connect(&connect(qid, self.cntlid));
        assert!(completion.status.is_success(), "{completion:?}");
        host
    }

    pub(crate) fn connect(&mut self, connect: &Connect) -> Completion {
        let (command, data) = connect.encode(1);
        self.run(command.with_data(inside(1024)), &data).0
    }

    pub(crate) fn set_configuration(&mut self, value: u64) {
        let access = PropertyAccess {
            property: Property::CC,
            is_wide: false,
            value,
        };
        let command = access.encode(FabricsType::PROPERTY_SET, 2);
        assert!(self.run(command, &[]).0.status.is_success());
    }

    /// Sends a PDU.
    pub(crate) fn send(&mut self, pdu: &Pdu, data: &[u8]) {
        let length = u32::try_from(data.len()).unwrap();
        let mut bytes = pdu.encode(self.framing, length).as_bytes().to_vec();
        bytes.extend_from_slice(data);
        if self.has_data_digest && !data.is_empty() {
            bytes.extend_from_slice(&Digest::of(data).to_bytes());
        }
        self.send_bytes(&bytes);
    }

    /// Sends a PDU without data, to a target that may have closed the connection.
    pub(crate) fn try_send(&mut self, pdu: &Pdu) -> std::io::Result<()> {
        let encoded = pdu.encode(self.framing, 0);
        self.stream.write_all(encoded.as_bytes())
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Receives a PDU; `None` at the end of the connection.
    pub(crate) fn receive(&mut self) -> Option<Received> {
        let mut current: Option<(Pdu, Vec<u8>)> = None;
        loop {
            let mut input = &self.input[..];
            let event = self.decoder.next(&mut input).expect("valid PDUs");
            let mut done = None;
            let is_some = event.is_some();
            match event {
                Some(Event::Pdu(pdu, 0)) => done = Some((pdu, Vec::new())),
                Some(Event::Pdu(pdu, _)) => current = Some((pdu, Vec::new())),
                Some(Event::Data(bytes)) => {
                    current.as_mut().unwrap().1.extend_from_slice(bytes);
                }
                Some(Event::End { is_intact }) => {
                    assert!(is_intact, "a wrong digest");
                    done = current.take();
                }
                None => {}
            }
            let left = input.len();
            self.input.drain(..self.input.len() - left);
            if let Some((pdu, data)) = done {
                return Some(Received { pdu, data });
            }
            if !is_some && !self.fill() {
                return None;
            }
        }
    }

    /// Receives bytes; returns false at the end of the connection.
    fn fill(&mut self) -> bool {
        let mut bytes = [0; 65_536];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for the end of the connection.
    pub(crate) fn wait_end(&mut self) {
        while self.receive().is_some() {}
    }

    /// Runs a command whose data, if any, are in the capsule or are sent as requested; returns its
    /// completion and its data.
    pub(crate) fn run(&mut self, command: Command, data: &[u8]) -> (Completion, Vec<u8>) {
        let is_inside = matches!(command.data_pointer(), DataPointer::InCapsule { .. });
        self.send(&Pdu::Command(command), if is_inside { data } else { &[] });
        let mut read = Vec::new();
        loop {
            let received = self.receive().expect("an answer");
            match received.pdu {
                Pdu::R2t(ready) => {
                    let from = ready.offset as usize;
                    let bytes = &data[from..from + ready.length as usize];
                    self.send(&h2c(ready.cid, ready.ttag, bytes.len()), bytes);
                }
                Pdu::C2hData(header) => {
                    assert_eq!(header.cid, command.cid());
                    assert_eq!(header.offset as usize, read.len());
                    read.extend(received.data);
                    if header.is_success {
                        let cid = header.cid;
                        let completion = Completion {
                            cid,
                            ..Completion::default()
                        };
                        return (completion, read);
                    }
                }
                Pdu::Response(completion) => {
                    assert_eq!(completion.cid, command.cid());
                    return (completion, read);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// As [`run`](Self::run); the command must succeed.
    #[track_caller]
    pub(crate) fn succeed(&mut self, command: Command, data: &[u8]) -> Vec<u8> {
        let (completion, data) = self.run(command, data);
        assert_eq!(completion.status, Status::SUCCESS, "{command:?}");
        data
    }
}

/// A Connect of a queue.
pub(crate) fn connect(qid: u16, cntlid: u16) -> Connect {
    Connect {
        record_format: 0,
        qid,
        sq_size: 31,
        attributes: 0,
        keep_alive_ms: 0,
        host_id: [1; 16],
        cntlid,
        subsystem_nqn: NQN.to_owned(),
        host_nqn: HOST.to_owned(),
    }
}

/// All data of an R2T.
pub(crate) fn h2c(cid: u16, ttag: u16, length: usize) -> Pdu {
    Pdu::H2cData(DataPdu {
        cid,
        ttag,
        offset: 0,
        length: u32::try_from(length).unwrap(),
        is_last: true,
        is_success: false,
    })
}

pub(crate) const fn inside(length: u32) -> DataPointer {
    DataPointer::InCapsule { offset: 0, length }
}

pub(crate) const fn outside(length: u32) -> DataPointer {
    DataPointer::Transport { length }
}

/// A command on `bytes` from `offset` of namespace 1, which has blocks of 512 bytes.
pub(crate) fn transfer(opcode: Opcode, cid: u16, offset: u64, bytes: u32) -> Command {
    Command::new(opcode, cid)
        .with_nsid(1)
        .with_qword(10, offset / 512)
        .with_dword(12, bytes / 512 - 1)
        .with_data(outside(bytes))
}
