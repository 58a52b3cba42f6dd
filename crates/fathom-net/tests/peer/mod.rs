//! Target for tests of the initiator: one thread per connection, memory for a namespace, and
//! faults on demand, which a real target does not have.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use fathom_core::Tick;
use fathom_nvme::{
    Answer, Arrival, Command, Completion, Connect, ConnectField, Controller, ControllerLimits,
    DataPointer, Digest, Digests, FabricsType, NamespaceIdentity, Opcode, OptionalCommands, Pdu,
    Status, Subsystem, TargetQueue, TargetQueueConfig,
};

pub(crate) const NQN: &str = "nqn.2026-01.io.fathom:peer";

/// Behaviour of a peer.
#[derive(Clone, Debug)]
pub(crate) struct PeerConfig {
    pub(crate) limits: ControllerLimits,
    pub(crate) digests: Digests,
    pub(crate) allowed_hosts: Option<Vec<String>>,
    pub(crate) block_shift: u8,
    pub(crate) bytes: usize,
    pub(crate) nguid: [u8; 16],
    /// Leave out the completion of reads that succeed.
    pub(crate) success_in_data: bool,
}

impl Default for PeerConfig {
    fn default() -> Self {
        Self {
            limits: ControllerLimits {
                queues: 4,
                queue_entries: 128,
                mdts: 5,
                in_capsule_bytes: 4096,
                optional: OptionalCommands {
                    compare: false,
                    dataset_management: true,
                    write_zeroes: true,
                    ..OptionalCommands::default()
                },
            },
            digests: Digests {
                header: true,
                data: true,
            },
            allowed_hosts: None,
            block_shift: 9,
            bytes: 64 << 12,
            nguid: [7; 16],
            success_in_data: true,
        }
    }
}

/// A target. Dropping it closes everything.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    config: PeerConfig,
    subsystem: Arc<Subsystem>,
    memory: Mutex<Vec<u8>>,
    controllers: Mutex<HashMap<u16, Controller>>,
    next_cntlid: AtomicU32,
    streams: Mutex<Vec<TcpStream>>,
    is_stopped: AtomicBool,
    /// I/O commands to answer before all connections are cut; negative: none.
    cut_after: Mutex<Option<u32>>,
    /// Reads whose data digest is to be wrong.
    corrupt: AtomicU32,
    io_commands: AtomicU64,
    connects: AtomicU32,
    accepted: AtomicU32,
    shutdowns: AtomicU32,
    is_deaf: AtomicBool,
    /// Each I/O command cuts all connections.
    cuts_always: AtomicBool,
    /// A queue that has answered an I/O command is closed.
    leaves: AtomicBool,
    /// I/O commands to leave unanswered.
    unanswered: AtomicU32,
}

impl Peer {
    pub(crate) fn start(config: PeerConfig) -> Self {
        Self::start_at(config, "127.0.0.1:0")
    }

    pub(crate) fn start_at(config: PeerConfig, address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let namespace = NamespaceIdentity {
            blocks: (config.bytes >> config.block_shift) as u64,
            block_shift: config.block_shift,
            nguid: config.nguid,
            is_write_protected: false,
        };
        let subsystem = Subsystem {
            nqn: NQN.into(),
            serial: "1".into(),
            model: "Peer".into(),
            firmware: "1".into(),
            allowed_hosts: config.allowed_hosts.clone(),
            namespaces: vec![(1, namespace), (2, namespace)],
            discovery: None,
        };
        let shared = Arc::new(Shared {
            subsystem: Arc::new(subsystem),
            memory: Mutex::new(vec![0; config.bytes * 2]),
            controllers: Mutex::default(),
            next_cntlid: AtomicU32::new(1),
            streams: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            cut_after: Mutex::new(None),
            corrupt: AtomicU32::new(0),
            io_commands: AtomicU64::new(0),
            connects: AtomicU32::new(0),
            accepted: AtomicU32::new(0),
            shutdowns: AtomicU32::new(0),
            is_deaf: AtomicBool::new(false),
            cuts_always: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
            config,
        });
        let accepter = Arc::clone(&shared);
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepter.is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                accepter.accepted.fetch_add(1, Ordering::SeqCst);
                stream.set_nodelay(true).expect("an option");
                let clone = stream.try_clone().expect("a clone");
                accepter.streams.lock().expect("streams").push(clone);
                let shared = Arc::clone(&accepter);
                thread::spawn(move || Connection::new(stream, shared).run());
            }
        });
        Self {
            address,
            shared,
            accepting: Some(accepting),
        }
    }

    /// The `filename` of a namespace.
    pub(crate) fn filename(&self, nsid: u32) -> String {
        let (ip, port) = (self.address.ip(), self.address.port());
        format!("trtype=tcp adrfam=ipv4 traddr={ip} trsvcid={port} subnqn={NQN} ns={nsid}")
    }

    /// Cuts all connections when `commands` more I/O commands have arrived; the last is not
    /// answered.
    pub(crate) fn cut_after(&self, commands: u32) {
        *self.shared.cut_after.lock().expect("cut") = Some(commands);
    }

    /// Cuts all connections at each I/O command from now on.
    pub(crate) fn cut_always(&self) {
        self.shared.cuts_always.store(true, Ordering::SeqCst);
    }

    /// Closes each I/O queue with its first answer from now on.
    pub(crate) fn leave(&self) {
        self.shared.leaves.store(true, Ordering::SeqCst);
    }

    /// Leaves `commands` I/O commands unanswered.
    pub(crate) fn ignore(&self, commands: u32) {
        self.shared.unanswered.store(commands, Ordering::SeqCst);
    }

    /// Answers `reads` reads with a wrong data digest.
    pub(crate) fn corrupt(&self, reads: u32) {
        self.shared.corrupt.store(reads, Ordering::SeqCst);
    }

    /// Stops answering anything, or goes on.
    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        self.shared.is_deaf.store(is_deaf, Ordering::SeqCst);
    }

    /// Ends the admin queue of the first controller, amid a PDU.
    pub(crate) fn end_admin_queue(&self) {
        let streams = self.shared.streams.lock().expect("streams");
        let mut first = streams.first().expect("an admin queue");
        let response = [5, 0, 24, 0];
        first.write_all(&response).expect("an open connection");
        first.shutdown(Shutdown::Write).expect("an open connection");
    }

    /// Returns the number of I/O commands that have arrived.
    pub(crate) fn io_commands(&self) -> u64 {
        self.shared.io_commands.load(Ordering::SeqCst)
    }

    /// Returns the number of controllers that were connected.
    pub(crate) fn connects(&self) -> u32 {
        self.shared.connects.load(Ordering::SeqCst)
    }

    /// Returns the number of connections that were accepted.
    pub(crate) fn accepted(&self) -> u32 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Returns the number of controllers that their hosts have shut down.
    pub(crate) fn shutdowns(&self) -> u32 {
        self.shared.shutdowns.load(Ordering::SeqCst)
    }

    /// Returns the content of a namespace.
    pub(crate) fn content(&self, nsid: u32) -> Vec<u8> {
        let bytes = self.shared.config.bytes;
        let memory = self.shared.memory.lock().expect("memory");
        memory[bytes * (nsid as usize - 1)..][..bytes].to_vec()
    }

    /// Sets the content of a namespace.
    pub(crate) fn set_content(&self, nsid: u32, content: &[u8]) {
        let bytes = self.shared.config.bytes;
        let mut memory = self.shared.memory.lock().expect("memory");
        memory[bytes * (nsid as usize - 1)..][..content.len()].copy_from_slice(content);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.shared.cut();
        // Ends the loop that accepts.
        let _woken = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _it_panicked = accepting.join();
        }
    }
}

impl Shared {
    fn cut(&self) {
        for stream in self.streams.lock().expect("streams").drain(..) {
            let _closed = stream.shutdown(Shutdown::Both);
        }
    }
}

struct Connection {
    stream: TcpStream,
    shared: Arc<Shared>,
    queue: TargetQueue,
    commands: HashMap<u16, (Command, Vec<u8>)>,
    cntlid: u16,
}

impl Connection {
    fn new(stream: TcpStream, shared: Arc<Shared>) -> Self {
        let queue = TargetQueue::new(TargetQueueConfig {
            in_capsule_bytes: shared.config.limits.in_capsule_bytes,
            h2c_data_bytes_max: 8192,
            digests: shared.config.digests,
        });
        Self {
            stream,
            shared,
            queue,
            commands: HashMap::new(),
            cntlid: 0,
        }
    }

    fn run(mut self) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = self.stream.read(&mut buffer) {
            while self.shared.is_deaf.load(Ordering::SeqCst) {
                if self.shared.is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                thread::yield_now();
            }
            if self.handle(&buffer[..count]).is_none() {
                break;
            }
        }
        let _closed = self.stream.shutdown(Shutdown::Both);
        if self.queue.qid() == Some(0) {
            let mut controllers = self.shared.controllers.lock().expect("controllers");
            controllers.remove(&self.cntlid);
        }
    }

    /// Returns `None` if the connection ends.
    fn handle(&mut self, mut input: &[u8]) -> Option<()> {
        loop {
            let arrival = match self.queue.next(&mut input) {
                Ok(Some(arrival)) => arrival,
                Ok(None) => return Some(()),
                Err(_) => return None,
            };
            match arrival {
                Arrival::Initialized(response) => {
                    let bytes = self.queue.encode(&response, 0);
                    self.stream.write_all(bytes.as_bytes()).ok()?;
                }
                Arrival::Command {
                    slot,
                    command,
                    in_capsule,
                } => {
                    let length = match command.data_pointer() {
                        DataPointer::InCapsule { length, .. }
                        | DataPointer::Transport { length } => length,
                        DataPointer::Other(_) => 0,
                    };
                    let is_to_us = command.opcode().0 & 3 == 1 || in_capsule > 0;
                    let data = vec![0; if is_to_us { length as usize } else { 0 }];
                    self.commands.insert(slot, (command, data));
                    if in_capsule == 0 && is_to_us && length > 0 {
                        let request = self.queue.request_data(slot, length);
                        self.send(&request, &[])?;
                    } else if in_capsule == 0 {
                        self.execute(slot)?;
                    }
                }
                Arrival::Data {
                    slot,
                    offset,
                    bytes,
                } => {
                    let data = &mut self.commands.get_mut(&slot)?.1;
                    data[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                }
                Arrival::Received { slot, is_intact } => {
                    assert!(is_intact, "digests of the host are right");
                    self.execute(slot)?;
                }
                Arrival::Terminated(_) => return None,
            }
        }
    }

    fn execute(&mut self, slot: u16) -> Option<()> {
        let (command, data) = self.commands.remove(&slot)?;
        let completion = Completion {
            cid: command.cid(),
            ..Completion::default()
        };
        let is_connect =
            command.opcode() == Opcode::FABRICS && command.fabrics_type() == FabricsType::CONNECT.0;
        if is_connect {
            let completion = self.connect(&command, &data, completion);
            return self.complete(slot, completion);
        }
        if self.queue.qid() == Some(0) {
            let answer = {
                let mut controllers = self.shared.controllers.lock().expect("controllers");
                let controller = controllers.get_mut(&self.cntlid)?;
                let answer = controller.admin(&command, &data, Tick::ZERO);
                let is_property = command.opcode() == Opcode::FABRICS
                    && command.fabrics_type() == FabricsType::PROPERTY_SET.0;
                if is_property && controller.is_shut_down() {
                    self.shared.shutdowns.fetch_add(1, Ordering::SeqCst);
                }
                answer
            };
            return match answer {
                Answer::Complete(completion) => self.complete(slot, completion),
                Answer::Data(data, completion) => {
                    let header = self
                        .queue
                        .data(slot, u32::try_from(data.len()).ok()?, false);
                    self.send(&header, &data)?;
                    self.complete(slot, completion)
                }
                Answer::Held => Some(()),
            };
        }
        let unanswered = &self.shared.unanswered;
        let count = |left: u32| left.checked_sub(1);
        let ignored = unanswered.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count);
        if ignored.is_ok() {
            return Some(());
        }
        self.io(slot, &command, &data, completion)?;
        (!self.shared.leaves.load(Ordering::SeqCst)).then_some(())
    }

    fn connect(&mut self, command: &Command, data: &[u8], ok: Completion) -> Completion {
        let connect = Connect::decode(command, data.first_chunk().expect("data of Connect"));
        let subsystem = &self.shared.subsystem;
        if connect.subsystem_nqn != subsystem.nqn {
            return ConnectField::SubsystemNqn.refusal(ok.cid);
        }
        if !subsystem.allows(&connect.host_nqn) {
            return Completion {
                status: Status::CONNECT_INVALID_HOST.do_not_retry(),
                ..ok
            };
        }
        let mut controllers = self.shared.controllers.lock().expect("controllers");
        if connect.qid == 0 {
            let cntlid = self.shared.next_cntlid.fetch_add(1, Ordering::SeqCst);
            self.cntlid = u16::try_from(cntlid).expect("few controllers");
            self.shared.connects.fetch_add(1, Ordering::SeqCst);
            let host = (connect.host_id, connect.keep_alive_ms);
            let limits = self.shared.config.limits;
            let subsystem = Arc::clone(subsystem);
            let made = Controller::new(self.cntlid, subsystem, limits, host, Tick::ZERO);
            controllers.insert(self.cntlid, made);
        } else {
            assert!(
                controllers.contains_key(&connect.cntlid),
                "controller of the queue"
            );
            assert!(connect.sq_size < self.shared.config.limits.queue_entries);
            self.cntlid = connect.cntlid;
        }
        self.queue.connected(connect.qid, connect.sq_size + 1);
        Completion {
            result: self.cntlid.into(),
            ..ok
        }
    }

    fn io(&mut self, slot: u16, command: &Command, data: &[u8], ok: Completion) -> Option<()> {
        self.shared.io_commands.fetch_add(1, Ordering::SeqCst);
        let is_cut = {
            let mut cut = self.shared.cut_after.lock().expect("cut");
            match cut.as_mut() {
                Some(0) => {
                    *cut = None;
                    true
                }
                Some(left) => {
                    *left -= 1;
                    false
                }
                None => false,
            }
        };
        if is_cut || self.shared.cuts_always.load(Ordering::SeqCst) {
            self.shared.cut();
            return None;
        }
        let config = &self.shared.config;
        let (shift, size) = (config.block_shift, config.bytes);
        let base = size * (command.nsid() as usize - 1);
        let offset = usize::try_from(command.qword(10) << shift).ok()?;
        let length = ((command.dword(12) as usize & 0xffff) + 1) << shift;
        assert!(data.len() <= 4096 << config.limits.mdts, "MDTS is kept");
        match command.opcode() {
            Opcode::READ => {
                assert!(offset + length <= size && length <= 4096 << config.limits.mdts);
                let content = {
                    let memory = self.shared.memory.lock().expect("memory");
                    memory[base + offset..][..length].to_vec()
                };
                let is_success = config.success_in_data;
                let header = self
                    .queue
                    .data(slot, u32::try_from(length).ok()?, is_success);
                self.send(&header, &content)?;
                if is_success {
                    self.queue.release(slot);
                    return Some(());
                }
            }
            Opcode::WRITE => {
                assert!(offset + length <= size && data.len() == length);
                let mut memory = self.shared.memory.lock().expect("memory");
                memory[base + offset..][..length].copy_from_slice(data);
            }
            Opcode::DATASET_MANAGEMENT => {
                assert_eq!((data.len(), command.dword(10)), (16, 0), "one range");
                let blocks = u32::from_le_bytes(data[4..8].try_into().ok()?) as usize;
                let block = u64::from_le_bytes(data[8..16].try_into().ok()?);
                let offset = usize::try_from(block << shift).ok()?;
                let mut memory = self.shared.memory.lock().expect("memory");
                memory[base + offset..][..blocks << shift].fill(0);
            }
            Opcode::FLUSH => {}
            other => panic!("unexpected {other:?}"),
        }
        self.complete(slot, ok)
    }

    fn complete(&mut self, slot: u16, completion: Completion) -> Option<()> {
        let response = self.queue.response(completion);
        self.send(&response, &[])?;
        self.queue.release(slot);
        Some(())
    }

    fn send(&mut self, pdu: &Pdu, data: &[u8]) -> Option<()> {
        let header = self.queue.encode(pdu, u32::try_from(data.len()).ok()?);
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(data);
        if !data.is_empty() && self.queue.has_data_digest() {
            let mut digest = Digest::of(data).to_bytes();
            let take = |left: u32| left.checked_sub(1);
            let corrupt = &self.shared.corrupt;
            let order = Ordering::SeqCst;
            if self.queue.qid() != Some(0) && corrupt.fetch_update(order, order, take).is_ok() {
                digest[0] ^= 1;
            }
            bytes.extend_from_slice(&digest);
        }
        self.stream.write_all(&bytes).ok()
    }
}
