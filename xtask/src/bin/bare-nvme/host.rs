//! The admin queue of a host: as little of it as it takes to open I/O queues.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};
use fathom_nvme::{
    Command, Completion, Connect, DataPointer, Decoder, Event, FabricsType, Framing,
    IDENTIFY_BYTES, IcReq, Limits, NamespaceIdentity, Opcode, Pdu, Property, PropertyAccess, Side,
};

/// A controller, connected through its admin queue.
#[derive(Debug)]
pub(crate) struct Host {
    address: String,
    nqn: String,
    admin: Queue,
    cntlid: u16,
}

/// Geometry of namespace 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) block_bytes: u32,
    pub(crate) blocks: u64,
}

impl Host {
    /// Creates and enables a controller, and asks for I/O queues.
    pub(crate) fn connect(address: &str, nqn: &str, queues: u16) -> Result<Self> {
        let mut admin = Queue::open(address)?;
        let cntlid = admin.join(nqn, 0, ENTRIES_MIN, Connect::ANY_CONTROLLER)?;
        let mut host = Self {
            address: address.to_owned(),
            nqn: nqn.to_owned(),
            admin,
            cntlid,
        };
        host.enable()?;
        let count = u32::from(queues - 1);
        let wanted = Command::new(Opcode::SET_FEATURES, 3)
            .with_dword(10, NUMBER_OF_QUEUES)
            .with_dword(11, count << 16 | count);
        host.admin.run(wanted, &[])?;
        Ok(host)
    }

    fn enable(&mut self) -> Result<()> {
        let mut set = PropertyAccess {
            property: Property::CC,
            is_wide: false,
            value: ENABLED,
        };
        self.admin
            .run(set.encode(FabricsType::PROPERTY_SET, 1), &[])?;
        set.property = Property::CSTS;
        set.value = 0;
        let (ready, _) = self
            .admin
            .run(set.encode(FabricsType::PROPERTY_GET, 2), &[])?;
        if ready.result & 1 == 0 {
            bail!("the controller is not ready");
        }
        Ok(())
    }

    /// Reads the geometry of namespace 1.
    pub(crate) fn namespace(&mut self) -> Result<Geometry> {
        let length = u32::try_from(IDENTIFY_BYTES)?;
        let identify = Command::new(Opcode::IDENTIFY, 4)
            .with_nsid(1)
            .with_data(DataPointer::Transport { length });
        let (_, data) = self.admin.run(identify, &[])?;
        let page = data
            .first_chunk()
            .context("the page of the namespace is short")?;
        let identity = NamespaceIdentity::decode(page).context("namespace 1")?;
        Ok(geometry(&identity))
    }

    /// Opens an I/O queue and returns its socket.
    pub(crate) fn queue(&self, qid: u16, entries: u16) -> Result<TcpStream> {
        let mut queue = Queue::open(&self.address)?;
        queue.join(&self.nqn, qid, entries, self.cntlid)?;
        Ok(queue.stream)
    }
}

fn geometry(identity: &NamespaceIdentity) -> Geometry {
    Geometry {
        block_bytes: 1 << identity.block_shift,
        blocks: identity.blocks,
    }
}

/// A connection on which one command is in flight at a time.
#[derive(Debug)]
struct Queue {
    stream: TcpStream,
    decoder: Decoder,
    /// Bytes received and not yet decoded.
    received: Vec<u8>,
}

impl Queue {
    /// Connects and initializes.
    fn open(address: &str) -> Result<Self> {
        let stream =
            TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let limits = Limits {
            in_capsule_bytes: 0,
            data_bytes: 1 << 20,
        };
        let mut queue = Self {
            stream,
            decoder: Decoder::new(Side::Host, limits),
            received: Vec::new(),
        };
        queue.send(&Pdu::IcReq(IcReq::default()), &[])?;
        match queue.next(&mut Vec::new())? {
            Pdu::IcResp(_) => queue.decoder.establish(Framing::PLAIN),
            other => bail!("{other:?} instead of the answer to the initialization"),
        }
        Ok(queue)
    }

    /// Connects the queue to a controller, whose identifier it returns.
    fn join(&mut self, nqn: &str, qid: u16, entries: u16, cntlid: u16) -> Result<u16> {
        let connect = Connect {
            record_format: 0,
            qid,
            sq_size: entries - 1,
            attributes: 0,
            keep_alive_ms: 0,
            host_id: *b"bare-nvme bench ",
            cntlid,
            subsystem_nqn: nqn.to_owned(),
            host_nqn: HOST_NQN.to_owned(),
        };
        let (command, data) = connect.encode(0);
        let length = u32::try_from(data.len())?;
        let in_capsule = DataPointer::InCapsule { offset: 0, length };
        let (completion, _) = self.run(command.with_data(in_capsule), &data)?;
        Ok(u16::try_from(completion.result & 0xffff)?)
    }

    /// Runs a command and returns its completion and its data.
    fn run(&mut self, command: Command, data: &[u8]) -> Result<(Completion, Vec<u8>)> {
        self.send(&Pdu::Command(command), data)?;
        let mut received = Vec::new();
        loop {
            let completion = match self.next(&mut received)? {
                Pdu::C2hData(data) if data.is_success => Completion::default(),
                Pdu::C2hData(_) => continue,
                Pdu::Response(completion) => completion,
                other => bail!("{other:?} instead of a completion"),
            };
            if !completion.status.is_success() {
                bail!("{command:?} failed: {:?}", completion.status);
            }
            return Ok((completion, received));
        }
    }

    fn send(&mut self, pdu: &Pdu, data: &[u8]) -> Result<()> {
        let header = pdu.encode(Framing::PLAIN, u32::try_from(data.len())?);
        let bytes = [header.as_bytes(), data].concat();
        self.stream.write_all(&bytes).context("cannot send")
    }

    /// Returns the next PDU, after all its data.
    fn next(&mut self, data: &mut Vec<u8>) -> Result<Pdu> {
        let mut current = None;
        loop {
            let mut input = self.received.as_slice();
            let event = match self.decoder.next(&mut input) {
                Ok(event) => event,
                Err(error) => bail!("the peer broke the protocol: {error:?}"),
            };
            let done = match event {
                Some(Event::Pdu(pdu, 0)) => Some(pdu),
                Some(Event::Pdu(pdu, _)) => {
                    current = Some(pdu);
                    None
                }
                Some(Event::Data(bytes)) => {
                    data.extend_from_slice(bytes);
                    None
                }
                Some(Event::End { .. }) => current,
                None => None,
            };
            let is_dry = event.is_none();
            let used = self.received.len() - input.len();
            self.received.drain(..used);
            if let Some(pdu) = done {
                return Ok(pdu);
            }
            if is_dry {
                self.receive()?;
            }
        }
    }

    fn receive(&mut self) -> Result<()> {
        let mut bytes = [0; 8192];
        let length = self.stream.read(&mut bytes).context("cannot receive")?;
        if length == 0 {
            bail!("the peer closed the connection");
        }
        self.received.extend_from_slice(&bytes[..length]);
        Ok(())
    }
}

/// Entries of the smallest admin queue.
pub(crate) const ENTRIES_MIN: u16 = 32;
/// CC with 64-byte commands, 16-byte completions, and EN.
const ENABLED: u64 = 0x46_0001;
/// Feature identifier.
const NUMBER_OF_QUEUES: u32 = 0x07;
const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:f0f0f0f0-0000-4000-8000-00000000bea0";
