//! Connect, and the commands of the admin queue.

use std::sync::Arc;

use fathom_nvme::{
    ADMIN_CAPSULE_BYTES, Answer, Command, Completion, Connect, ConnectField, Controller,
    DISCOVERY_NQN, DataPointer, Digest, FabricsType, Opcode, Status,
};

use super::connection::{AdminRole, Connection, IoRole, Role, State};
use super::flight::{FlightState, Payload};
use super::log::{Ended, Refusal, TargetEvent};
use super::mailbox::{ConnectionId, Message};
use super::send_queue::Source;
use super::subsystem::Served;
use super::work::Work;

impl Connection {
    /// Starts a command of the admin queue, or the Connect of any queue.
    pub(crate) fn start_admin(
        &mut self,
        slot: u16,
        command: &Command,
        in_capsule: u32,
        work: &mut Work,
    ) {
        self.counters.admin_commands += 1;
        let flight = self.flights.open(slot);
        flight.admin = Some(Box::new(*command));
        flight.payload = Payload::None;
        flight.state = FlightState::Capsule;
        flight.drops_data = false;
        if in_capsule > 0 {
            // At most 8 KiB, which the queue has checked.
            if !self.add_page(slot, vec![0; in_capsule as usize], work) {
                let flight = self.flights.get(slot);
                flight.state = FlightState::Dropping;
                flight.drops_data = true;
                flight.status = Status::INTERNAL_ERROR;
            }
            return;
        }
        let is_connecting = matches!(self.role, Role::Connecting);
        match requested_bytes(command) {
            0 => self.run_admin(slot, work),
            // A Connect has its data in its capsule.
            _ if is_connecting => {
                self.fail_admin(slot, Status::COMMAND_SEQUENCE_ERROR.do_not_retry(), work);
            }
            length @ 1..=ADMIN_CAPSULE_BYTES => {
                if !self.add_page(slot, vec![0; length as usize], work) {
                    return self.fail_admin(slot, Status::INTERNAL_ERROR, work);
                }
                self.flights.get(slot).state = FlightState::Transfer;
                let request = self.queue.request_data(slot, length);
                self.push(&request, None, work);
            }
            _ => self.fail_admin(slot, Status::INVALID_FIELD.do_not_retry(), work),
        }
    }

    /// Gives a command its data, and takes their memory into account; returns `false` if there is
    /// too little left of it. A connection always has some: what others hold keeps no host out.
    fn add_page(&mut self, slot: u16, data: Vec<u8>, work: &mut Work) -> bool {
        let bytes = data.len() as u64;
        let is_reserved = self.page_bytes + bytes <= PAGE_BYTES_RESERVED;
        if !is_reserved && work.page_bytes + bytes > PAGE_BYTES_MAX {
            return false;
        }
        self.page_bytes += bytes;
        work.page_bytes += bytes;
        self.flights.get(slot).payload = Payload::Page(data);
        true
    }

    /// Notes that data of an admin command are gone.
    pub(crate) const fn remove_page(&mut self, bytes: usize, work: &mut Work) {
        self.page_bytes -= bytes as u64;
        work.page_bytes -= bytes as u64;
    }

    /// Completes a command that is not run, without success. Nothing of it may stay in its slot: a
    /// Connect after it may make the connection an I/O queue before the response is sent.
    pub(crate) fn fail_admin(&mut self, slot: u16, status: Status, work: &mut Work) {
        let flight = self.flights.get(slot);
        flight.admin = None;
        let payload = std::mem::take(&mut flight.payload);
        self.remove_page(payload.bytes().len(), work);
        self.fail(slot, status, work);
    }

    /// Runs a command of the admin queue whose data are there.
    pub(crate) fn run_admin(&mut self, slot: u16, work: &mut Work) {
        let flight = self.flights.get(slot);
        let payload = std::mem::take(&mut flight.payload);
        let Some(command) = flight.admin.take() else {
            return;
        };
        self.remove_page(payload.bytes().len(), work);
        match &mut self.role {
            Role::Connecting => self.connect(slot, &command, payload.bytes(), work),
            Role::Admin(admin) => {
                if command.opcode() == Opcode::GET_LOG_PAGE {
                    let health = work.shared.health(&admin.served);
                    admin.controller.set_health(health);
                }
                let answer = admin.controller.admin(&command, payload.bytes(), work.now);
                self.answer(slot, &command, answer, work);
                self.publish_controller(work);
            }
            Role::Io(_) => {}
        }
    }

    fn answer(&mut self, slot: u16, command: &Command, answer: Answer, work: &mut Work) {
        match answer {
            Answer::Complete(completion) => self.complete(slot, completion, work),
            Answer::Data(data, completion) => match command.data_pointer() {
                DataPointer::Transport { length } if length as usize == data.len() => {
                    self.send_page(slot, data, completion, work);
                }
                // A host ends the connection when it gets more data than it has room for.
                DataPointer::Transport { .. } => {
                    self.fail(slot, Status::DATA_SGL_LENGTH_INVALID.do_not_retry(), work);
                }
                _ => self.fail(slot, Status::SGL_TYPE_INVALID.do_not_retry(), work),
            },
            // The controller keeps the command's identifier; its slot is free.
            Answer::Held => {
                self.flights.get(slot).state = FlightState::Free;
                self.queue.release(slot);
            }
        }
    }

    /// Sends a page and the response.
    fn send_page(&mut self, slot: u16, data: Vec<u8>, completion: Completion, work: &mut Work) {
        // Cannot truncate: pages have at most 128 KiB.
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let digest = (self.queue.has_data_digest()).then(|| Digest::of(&data).to_bytes());
        // The host receives none of its answers.
        if !self.add_page(slot, data, work) {
            return self.fail(slot, Status::INTERNAL_ERROR, work);
        }
        let header = self.queue.data(slot, length, false);
        let encoded = self.queue.encode(&header, length);
        let source = (Source::Payload(slot), length);
        (self.out).push_data(encoded.as_bytes(), source, digest, None);
        self.complete(slot, completion, work);
    }

    /// Handles the first command of a queue, which must be a Connect.
    fn connect(&mut self, slot: u16, command: &Command, data: &[u8], work: &mut Work) {
        let kind = FabricsType(command.fabrics_type());
        if command.opcode() != Opcode::FABRICS || kind != FabricsType::CONNECT {
            return self.fail(slot, Status::COMMAND_SEQUENCE_ERROR.do_not_retry(), work);
        }
        let Some(data) = data.first_chunk() else {
            return self.fail(slot, Status::DATA_SGL_LENGTH_INVALID.do_not_retry(), work);
        };
        let connect = Connect::decode(command, data);
        let completion = match self.try_connect(&connect, command.cid(), work) {
            Ok(cntlid) => {
                work.shared.log.event(&TargetEvent::Connected {
                    peer: self.peer,
                    host_nqn: &connect.host_nqn,
                    subsystem_nqn: &connect.subsystem_nqn,
                    cntlid,
                    qid: connect.qid,
                    thread: work.thread,
                });
                Completion {
                    cid: command.cid(),
                    result: cntlid.into(),
                    ..Completion::default()
                }
            }
            Err(refusal) => {
                work.counters.refused_connects += 1;
                work.shared.log.event(&TargetEvent::Refused {
                    peer: self.peer,
                    refusal: Refusal::Connect {
                        status: refusal.status,
                        host_nqn: &connect.host_nqn,
                        subsystem_nqn: &connect.subsystem_nqn,
                    },
                });
                refusal
            }
        };
        self.complete(slot, completion, work);
    }

    /// Connects the queue; returns the controller's identifier.
    fn try_connect(
        &mut self,
        connect: &Connect,
        cid: u16,
        work: &mut Work,
    ) -> Result<u16, Completion> {
        if connect.record_format != 0 {
            let status = Status::CONNECT_INCOMPATIBLE_FORMAT;
            return Err(refuse(status, cid));
        }
        let queue_entries = work.shared.config.limits.queue_entries;
        let entries_max = match connect.qid {
            0 => queue_entries.max(ADMIN_ENTRIES_MIN),
            _ => queue_entries,
        };
        if connect.sq_size == 0 || connect.sq_size >= entries_max {
            return Err(ConnectField::SqSize.refusal(cid));
        }
        let cntlid = match connect.qid {
            0 => self.connect_admin(connect, cid, work)?,
            _ => self.connect_io(connect, cid, work)?,
        };
        self.queue.connected(connect.qid, connect.sq_size + 1);
        Ok(cntlid)
    }

    fn connect_admin(
        &mut self,
        connect: &Connect,
        cid: u16,
        work: &mut Work,
    ) -> Result<u16, Completion> {
        if connect.cntlid != Connect::ANY_CONTROLLER {
            return Err(ConnectField::Cntlid.refusal(cid));
        }
        let served = self.find(connect, work);
        let served = served.ok_or_else(|| ConnectField::SubsystemNqn.refusal(cid))?;
        if !served.subsystem.allows(&connect.host_nqn) {
            return Err(refuse(Status::CONNECT_INVALID_HOST, cid));
        }
        let added = work.shared.registry.add(&served, &connect.host_nqn);
        let cntlid = added.ok_or_else(|| refuse(Status::CONNECT_CONTROLLER_BUSY, cid))?;
        let host = (connect.host_id, connect.keep_alive_ms);
        let subsystem = Arc::clone(&served.subsystem);
        let controller = Controller::new(cntlid, subsystem, served.limits, host, work.now);
        self.role = Role::Admin(Box::new(AdminRole {
            controller,
            served,
            host_nqn: connect.host_nqn.clone(),
            queues_published: 0,
        }));
        work.shared.mailboxes[work.thread as usize].subtract_load();
        Ok(cntlid)
    }

    fn connect_io(
        &mut self,
        connect: &Connect,
        cid: u16,
        work: &mut Work,
    ) -> Result<u16, Completion> {
        let served = work.shared.registry.connect(connect, cid, self.id)?;
        self.role = Role::Io(Box::new(IoRole {
            cntlid: connect.cntlid,
            qid: connect.qid,
            host_nqn: connect.host_nqn.clone(),
            served,
        }));
        Ok(connect.cntlid)
    }

    /// Finds the subsystem that a host asks for.
    fn find(&self, connect: &Connect, work: &Work) -> Option<Arc<Served>> {
        let shared = &work.shared;
        if connect.subsystem_nqn == DISCOVERY_NQN {
            let local = self.stream.local_addr().ok()?;
            let addresses = (&shared.addresses[..], local);
            let (host, limits) = (&connect.host_nqn, &shared.config.limits);
            let discovery = Served::discovery(&shared.subsystems, addresses, host, limits);
            return Some(Arc::new(discovery));
        }
        let mut subsystems = shared.subsystems.iter();
        subsystems
            .find(|served| served.subsystem.nqn == connect.subsystem_nqn)
            .cloned()
    }

    /// Tells other threads of a change of the controller: I/O queues may connect once it is
    /// enabled, and end with a reset.
    fn publish_controller(&mut self, work: &mut Work) {
        let Role::Admin(admin) = &mut self.role else {
            return;
        };
        let queues = match admin.controller.accepts_queues() {
            true => admin.controller.qid_max(),
            false => 0,
        };
        if queues == admin.queues_published {
            return;
        }
        admin.queues_published = queues;
        let cntlid = admin.controller.cntlid();
        close_all(work.shared.registry.set_queues(cntlid, queues), work);
    }

    /// Ends what the connection is to its controller: an admin queue takes all queues with it, an
    /// I/O queue nothing.
    pub(crate) fn leave_controller(&mut self, work: &mut Work) {
        debug_assert_eq!(self.state, State::Closed, "ends once");
        let mailbox = &work.shared.mailboxes[work.thread as usize];
        match &self.role {
            Role::Connecting => mailbox.subtract_load(),
            Role::Io(io) => {
                mailbox.subtract_load();
                (work.shared.registry).disconnect(io.cntlid, io.qid, self.id);
            }
            Role::Admin(admin) => {
                let queues = work.shared.registry.remove(admin.controller.cntlid());
                close_all(queues, work);
            }
        }
    }
}

/// Closes the queues of a controller, on all threads.
fn close_all(queues: Vec<ConnectionId>, work: &Work) {
    for queue in queues {
        let message = Message::Close(queue, Ended::ControllerEnded);
        work.shared.post(queue.thread, message);
    }
}

/// Returns the bytes that a command has for the controller outside its capsule.
fn requested_bytes(command: &Command) -> u32 {
    let kind = match command.opcode() {
        Opcode::FABRICS => command.fabrics_type(),
        Opcode(opcode) => opcode,
    };
    match command.data_pointer() {
        DataPointer::Transport { length } if kind & TRANSFER == FROM_HOST => length,
        _ => 0,
    }
}

fn refuse(status: Status, cid: u16) -> Completion {
    Completion {
        cid,
        status: status.do_not_retry(),
        ..Completion::default()
    }
}

/// Entries of an admin queue that any host may ask for; hosts ask for 32.
const ADMIN_ENTRIES_MIN: u16 = 128;

/// Data of admin commands on a thread, beyond which commands that need more fail: a thousand log
/// pages.
const PAGE_BYTES_MAX: u64 = 64 << 20;
/// Data of admin commands that a connection may have in any case: the largest of a capsule and two
/// Identify pages. Of all connections that a target has by default, as much as the limit.
const PAGE_BYTES_RESERVED: u64 = 16 << 10;

/// Direction of the data, in an opcode or the type of a fabrics command.
const TRANSFER: u8 = 3;
const FROM_HOST: u8 = 1;
