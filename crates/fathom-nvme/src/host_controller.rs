//! Controller as its host sees it: the commands of the admin queue, one after the other.

use fathom_core::{Nanos, Tick};

use crate::block_format::format_index;
use crate::command::{Command, Opcode};
use crate::completion::Completion;
use crate::fabrics::{Connect, Property};
use crate::identify::{ControllerIdentity, NamespaceIdentity, Page};
use crate::wire::{u16_at, u32_at};

mod commands;
mod error;

pub use commands::AdminCommand;
use commands::{
    CC_ENABLED, CC_SHUTDOWN, CNS_CONTROLLER, CNS_NAMESPACE, CONNECT, CONNECT_QUEUE, FEATURE_QUEUES,
    IDENTIFY_CONTROLLER, IDENTIFY_NAMESPACE, KEEP_ALIVE, PROPERTY_GET, PROPERTY_SET, SET_QUEUES,
    configure, get, identify, of,
};
pub use error::ControllerError;

/// Host's side of a controller: connects, enables and identifies it, keeps it alive, and shuts it
/// down.
///
/// # Protocol
/// One command is in flight at a time. Send what [`next`](Self::next) returns over the admin queue
/// and pass its completion to [`complete`](Self::complete). When [`facts`](Self::facts) are there,
/// I/O queues may connect, and `next` returns a Keep Alive whenever one is due. Time is an
/// argument: look again at [`deadline`](Self::deadline).
#[derive(Debug)]
pub struct HostController {
    config: HostConfig,
    step: Step,
    /// Name of the command in flight, and the time by which it must have completed.
    in_flight: Option<(&'static str, Tick)>,
    /// Earliest time of the next command.
    due_at: Tick,
    /// Time by which the controller must be ready.
    ready_by: Tick,
    capabilities: u64,
    facts: ControllerFacts,
    /// Shut it down after the Keep Alive in flight.
    is_closing: bool,
}

/// Configuration of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// NQN of the subsystem to connect to.
    pub subsystem_nqn: String,
    /// NQN of this host.
    pub host_nqn: String,
    /// Identifier of this host.
    pub host_id: [u8; 16],
    /// Keep-alive time-out; `None`: off. A command is sent after half of it.
    pub keep_alive: Option<Nanos>,
    /// I/O queues to ask for, ≥ 1.
    pub queues: u16,
    /// Namespaces to identify.
    pub namespaces: Vec<u32>,
    /// Time that a command may take, and the controller to become ready.
    pub timeout: Nanos,
}

/// Facts about an enabled controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerFacts {
    /// Identifier of the controller, for the Connect of I/O queues.
    pub cntlid: u16,
    /// I/O queues granted.
    pub queues: u16,
    /// Commands in flight per I/O queue at most.
    pub commands_max: u16,
    /// Bytes of data per command at most (MDTS).
    pub data_bytes_max: u32,
    /// Bytes of data that the capsule of an I/O command may carry.
    pub in_capsule_bytes: u32,
    /// The controller has Dataset Management.
    pub has_dataset_management: bool,
    /// Model number.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// The namespaces asked for, in that order.
    pub namespaces: Vec<NamespaceIdentity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Connect,
    Capabilities,
    Enable,
    AwaitReady,
    Identify,
    Queues,
    /// Identification of the namespace with this index.
    Namespace(usize),
    /// Only Keep Alive is left to send.
    Live,
    ShutDown,
    AwaitShutDown,
    Ended,
}

impl HostController {
    /// Entries of the admin queue, as many as Linux and SPDK ask for.
    pub const ADMIN_COMMANDS: u16 = 31;

    /// Creates a controller that is not connected yet.
    #[must_use]
    pub fn new(config: HostConfig, now: Tick) -> Self {
        Self {
            config,
            step: Step::Connect,
            in_flight: None,
            due_at: now,
            ready_by: now,
            capabilities: 0,
            facts: ControllerFacts::default(),
            is_closing: false,
        }
    }

    /// Returns the next command to send, if one is due and none is in flight.
    pub fn next(&mut self, now: Tick) -> Option<AdminCommand> {
        let is_silent = self.step == Step::Live && self.config.keep_alive.is_none();
        if self.in_flight.is_some() || now < self.due_at || is_silent {
            return None;
        }
        let (name, command) = match self.step {
            Step::Connect => (CONNECT, self.connect(0)),
            Step::Capabilities => (PROPERTY_GET, get(Property::CAP, true)),
            Step::Enable => (PROPERTY_SET, configure(CC_ENABLED)),
            Step::AwaitReady | Step::AwaitShutDown => (PROPERTY_GET, get(Property::CSTS, false)),
            Step::Identify => (IDENTIFY_CONTROLLER, identify(CNS_CONTROLLER, 0)),
            Step::Queues => (SET_QUEUES, self.ask_for_queues()),
            Step::Namespace(index) => {
                let nsid = self.config.namespaces[index];
                (IDENTIFY_NAMESPACE, identify(CNS_NAMESPACE, nsid))
            }
            Step::Live => (KEEP_ALIVE, Command::new(Opcode::KEEP_ALIVE, 0).into()),
            Step::ShutDown => (PROPERTY_SET, configure(CC_SHUTDOWN)),
            Step::Ended => return None,
        };
        // A controller gives up on a host after the keep-alive time-out, so the host does, too.
        let patience = match (self.step, self.config.keep_alive) {
            (Step::Live, Some(keep_alive)) => keep_alive,
            _ => self.config.timeout,
        };
        self.in_flight = Some((name, now + patience));
        Some(command)
    }

    /// Handles the completion of the command in flight and the data that came with it.
    ///
    /// # Errors
    /// The reason for which the controller cannot be used.
    pub fn complete(
        &mut self,
        completion: &Completion,
        data: &[u8],
        now: Tick,
    ) -> Result<(), ControllerError> {
        let Some((command, _)) = self.in_flight.take() else {
            return Ok(());
        };
        if !completion.status.is_success() {
            return Err(self.refused(command, completion));
        }
        self.due_at = now;
        let result = completion.result;
        self.step = match self.step {
            Step::Connect => {
                self.facts.cntlid = u16_at(&result.to_le_bytes(), 0);
                if result >> 16 & 0xffff != 0 {
                    return Err(ControllerError::Unsupported("authentication of hosts"));
                }
                Step::Capabilities
            }
            Step::Capabilities => {
                self.capabilities = result;
                Step::Enable
            }
            Step::Enable => {
                // Units of 500 ms, up to two minutes: the user's limit holds for this, too.
                let timeout = (self.capabilities >> 24 & 0xff).max(1) * 500;
                self.ready_by = now + Nanos::from_millis(timeout).min(self.config.timeout);
                Step::AwaitReady
            }
            Step::AwaitReady => self.on_status(result, now)?,
            Step::Identify => self.on_identity(data)?,
            Step::Queues => {
                // Granted numbers of submission and completion queues, 0's based.
                let granted = (result & 0xffff).min(result >> 16 & 0xffff) + 1;
                let granted = u16::try_from(granted).unwrap_or(u16::MAX);
                self.facts.queues = granted.min(self.config.queues);
                self.namespace_step(0, now)
            }
            Step::Namespace(index) => self.on_namespace(index, data, now)?,
            Step::Live if self.is_closing => Step::ShutDown,
            Step::Live => self.live(now),
            Step::ShutDown => {
                self.ready_by = now + self.config.timeout;
                Step::AwaitShutDown
            }
            // One that does not get there loses its connection, as one that does not answer.
            Step::AwaitShutDown
                if result & CSTS_SHUTDOWN != CSTS_SHUTDOWN_COMPLETE && now < self.ready_by =>
            {
                self.due_at = now + STATUS_INTERVAL;
                Step::AwaitShutDown
            }
            Step::AwaitShutDown | Step::Ended => Step::Ended,
        };
        Ok(())
    }

    /// Returns an error once the command in flight is overdue.
    ///
    /// # Errors
    /// [`ControllerError::Silent`].
    pub fn check(&self, now: Tick) -> Result<(), ControllerError> {
        match self.in_flight {
            Some((command, until)) if until <= now => Err(ControllerError::Silent { command }),
            _ => Ok(()),
        }
    }

    /// Returns the time at which the next command is due, or the one in flight overdue.
    #[must_use]
    pub fn deadline(&self) -> Option<Tick> {
        match (self.in_flight, self.step) {
            (Some((_, until)), _) => Some(until),
            (None, Step::Ended) => None,
            (None, Step::Live) if self.config.keep_alive.is_none() => None,
            (None, _) => Some(self.due_at),
        }
    }

    /// Returns the facts once the controller is enabled and identified.
    #[must_use]
    pub fn facts(&self) -> Option<&ControllerFacts> {
        matches!(self.step, Step::Live).then_some(&self.facts)
    }

    /// Begins to shut the controller down, once the command in flight is completed. I/O queues
    /// should be closed by then.
    pub fn shut_down(&mut self, now: Tick) {
        if self.step == Step::Live {
            self.is_closing = true;
            if self.in_flight.is_none() {
                self.step = Step::ShutDown;
                self.due_at = now;
            }
        } else if !matches!(self.step, Step::ShutDown | Step::AwaitShutDown) {
            self.step = Step::Ended;
        }
    }

    /// Returns whether nothing is left to do but to close the connection.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.step == Step::Ended && self.in_flight.is_none()
    }

    /// Returns the Connect of a queue with `commands` commands in flight.
    #[must_use]
    pub fn connect_queue(&self, qid: u16, commands: u16) -> AdminCommand {
        let connect = Connect {
            qid,
            sq_size: commands,
            cntlid: self.facts.cntlid,
            ..self.connect_of_host()
        };
        of(&connect)
    }

    /// Returns the error of the Connect of an I/O queue that failed.
    #[must_use]
    pub fn queue_refused(completion: &Completion) -> ControllerError {
        ControllerError::Refused {
            command: CONNECT_QUEUE,
            status: completion.status,
            result: completion.result,
        }
    }

    fn connect(&self, qid: u16) -> AdminCommand {
        let keep_alive = self.config.keep_alive.map_or(0, Nanos::as_millis);
        of(&Connect {
            qid,
            sq_size: Self::ADMIN_COMMANDS,
            keep_alive_ms: u32::try_from(keep_alive).unwrap_or(u32::MAX),
            ..self.connect_of_host()
        })
    }

    fn connect_of_host(&self) -> Connect {
        Connect {
            record_format: 0,
            qid: 0,
            sq_size: 0,
            attributes: 0,
            keep_alive_ms: 0,
            host_id: self.config.host_id,
            cntlid: Connect::ANY_CONTROLLER,
            subsystem_nqn: self.config.subsystem_nqn.clone(),
            host_nqn: self.config.host_nqn.clone(),
        }
    }

    fn ask_for_queues(&self) -> AdminCommand {
        let zero_based = u32::from(self.config.queues.saturating_sub(1));
        let command = Command::new(Opcode::SET_FEATURES, 0);
        let command = command.with_dword(10, FEATURE_QUEUES);
        command.with_dword(11, zero_based << 16 | zero_based).into()
    }

    fn refused(&self, command: &'static str, completion: &Completion) -> ControllerError {
        match self.step {
            Step::Namespace(index) if completion.status.type_and_code() == NO_NAMESPACE => {
                let nsid = self.config.namespaces[index];
                ControllerError::NoNamespace { nsid }
            }
            _ => ControllerError::Refused {
                command,
                status: completion.status,
                result: completion.result,
            },
        }
    }

    fn on_status(&mut self, status: u64, now: Tick) -> Result<Step, ControllerError> {
        if status & CSTS_FATAL != 0 {
            return Err(ControllerError::Fatal);
        }
        if status & CSTS_READY != 0 {
            return Ok(Step::Identify);
        }
        if now >= self.ready_by {
            return Err(ControllerError::NotReady);
        }
        self.due_at = now + STATUS_INTERVAL;
        Ok(Step::AwaitReady)
    }

    fn on_identity(&mut self, data: &[u8]) -> Result<Step, ControllerError> {
        let page = page(data)?;
        if u16_at(page, ICDOFF) != 0 {
            return Err(ControllerError::Unsupported("an offset of in-capsule data"));
        }
        if u32_at(page, SGLS) & 3 == 0 {
            return Err(ControllerError::Unsupported(
                "data pointers other than SGLs",
            ));
        }
        let identity = ControllerIdentity::decode(page);
        let facts = &mut self.facts;
        facts.data_bytes_max = data_bytes_max(self.capabilities, identity.mdts);
        facts.in_capsule_bytes = identity.in_capsule_bytes;
        // 0's based entries of a queue, of which one stays empty.
        let queue = u16_at(&self.capabilities.to_le_bytes(), 0);
        facts.commands_max = match identity.commands_max {
            0 => queue,
            commands => commands.min(queue),
        };
        facts.has_dataset_management = identity.optional.dataset_management;
        facts.model = identity.model;
        facts.serial = identity.serial;
        Ok(Step::Queues)
    }

    fn on_namespace(
        &mut self,
        index: usize,
        data: &[u8],
        now: Tick,
    ) -> Result<Step, ControllerError> {
        let page = page(data)?;
        let nsid = self.config.namespaces[index];
        // As that of a namespace that is not active.
        if page.iter().all(|&byte| byte == 0) {
            return Err(ControllerError::NoNamespace { nsid });
        }
        let identity = NamespaceIdentity::decode(page)
            .map_err(|fault| ControllerError::Namespace { nsid, fault })?;
        if u16_at(page, LBAF0 + 4 * format_index(page)) != 0 {
            return Err(ControllerError::Unsupported("blocks with metadata"));
        }
        if self.facts.data_bytes_max >> identity.block_shift == 0 {
            return Err(ControllerError::Unsupported("blocks larger than MDTS"));
        }
        self.facts.namespaces.push(identity);
        Ok(self.namespace_step(index + 1, now))
    }

    fn namespace_step(&mut self, index: usize, now: Tick) -> Step {
        match index < self.config.namespaces.len() {
            true => Step::Namespace(index),
            false => self.live(now),
        }
    }

    /// Sets the time of the next Keep Alive.
    fn live(&mut self, now: Tick) -> Step {
        let half = self.config.keep_alive.map_or(0, Nanos::get) / 2;
        self.due_at = now + Nanos::new(half);
        Step::Live
    }
}

fn page(data: &[u8]) -> Result<&Page, ControllerError> {
    let short = ControllerError::Unsupported("short Identify pages");
    data.first_chunk().ok_or(short)
}

/// Returns the limit of MDTS, which is a power of two of the controller's smallest page, in bytes.
fn data_bytes_max(capabilities: u64, mdts: u8) -> u32 {
    let page_shift = 12 + u32::from(capabilities.to_le_bytes()[6] & 0xf);
    match u32::from(mdts) {
        0 => UNLIMITED_BYTES,
        mdts => 1_u32.checked_shl(page_shift + mdts).unwrap_or(1 << 31),
    }
}

const CSTS_READY: u64 = 1;
const CSTS_FATAL: u64 = 2;
const CSTS_SHUTDOWN: u64 = 3 << 2;
const CSTS_SHUTDOWN_COMPLETE: u64 = 2 << 2;

/// Bytes per command of a controller without a limit. Its target has one all the same, if only
/// that of its buffers.
const UNLIMITED_BYTES: u32 = 1 << 20;

/// Time between two looks at CSTS.
const STATUS_INTERVAL: Nanos = Nanos::from_millis(10);

const NO_NAMESPACE: (u8, u8) = (0, 0x0b);

// Offsets in Identify pages.
const SGLS: usize = 536;
const ICDOFF: usize = 1800;
const LBAF0: usize = 128;

#[cfg(test)]
mod tests;
