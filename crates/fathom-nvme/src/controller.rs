//! Controller of a subsystem: properties, admin commands and the keep-alive timer.

use std::sync::Arc;

use fathom_core::{Nanos, Tick};

use crate::command::{Command, Opcode};
use crate::completion::{Completion, Status};
use crate::fabrics::{FabricsType, Property, PropertyAccess};
use crate::identify::{
    ASYNC_EVENT_REQUESTS, ControllerIdentity, ControllerKind, IDENTIFY_BYTES, OptionalCommands,
    active_namespaces, namespace_descriptors,
};
use crate::log_pages::{GetLogPage, Health, LogPage, discovery_page, effects_page, firmware_page};
use crate::subsystem::Subsystem;
use crate::wire::u32_at;

/// Controller: the state that one host has on one subsystem, reached through its admin queue.
///
/// Created by a Connect of queue 0, which [`Subsystem::allows`] has passed, and dropped with the
/// connection of that queue. Pass each command of the admin queue to [`admin`](Self::admin) and
/// carry out its [`Answer`]. The end of an I/O queue is not an event here: Linux closes those
/// first, before it shuts the controller down.
///
/// Nothing blocks, and time is an argument: ask [`deadline`](Self::deadline) when to look again.
/// An admin command may allocate its data, at most a page; I/O commands do not come here.
#[derive(Debug)]
pub struct Controller {
    cntlid: u16,
    subsystem: Arc<Subsystem>,
    limits: ControllerLimits,
    configuration: u32,
    status: u32,
    /// Time-out of the keep-alive timer; `None`: off.
    keep_alive: Option<Nanos>,
    heard_at: Tick,
    /// Configuration of asynchronous events, as the host set it.
    event_mask: u32,
    /// Asynchronous Event Requests held, by command identifier.
    event_requests: Vec<u16>,
    host_id: [u8; 16],
    health: Health,
    /// I/O queues granted; `None` until the host has asked.
    queues_granted: Option<u16>,
}

/// Limits of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerLimits {
    /// I/O queues.
    pub queues: u16,
    /// Entries of an I/O queue.
    pub queue_entries: u16,
    /// Largest data transfer as a power of two of 4 KiB.
    pub mdts: u8,
    /// Bytes of data in the capsule of an I/O command.
    pub in_capsule_bytes: u32,
    /// Optional commands.
    pub optional: OptionalCommands,
}

/// Answer to an admin command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Send this completion.
    Complete(Completion),
    /// Send these data, if the command's data pointer has their length, and then the completion.
    Data(Vec<u8>, Completion),
    /// Send nothing yet: the command waits for an event.
    Held,
}

impl Controller {
    /// Creates a controller for a host that has connected at `now`. A keep-alive time-out of 0 ms
    /// turns the timer off, except on a discovery controller.
    #[must_use]
    pub fn new(
        cntlid: u16,
        subsystem: Arc<Subsystem>,
        limits: ControllerLimits,
        (host_id, keep_alive_ms): ([u8; 16], u32),
        now: Tick,
    ) -> Self {
        Self {
            cntlid,
            keep_alive: timeout(keep_alive_ms, subsystem.kind()),
            subsystem,
            limits,
            configuration: 0,
            status: 0,
            heard_at: now,
            event_mask: 0,
            event_requests: Vec::with_capacity(ASYNC_EVENT_REQUESTS.into()),
            host_id,
            health: Health::default(),
            queues_granted: None,
        }
    }

    /// Sets the counters that the health page reports.
    pub const fn set_health(&mut self, health: Health) {
        self.health = health;
    }

    /// Handles a command of the admin queue with the data that came with it.
    pub fn admin(&mut self, command: &Command, data: &[u8], now: Tick) -> Answer {
        if self.keep_alive.is_some() && command.opcode() == Opcode::KEEP_ALIVE {
            self.heard_at = now;
        }
        let result = match command.opcode() {
            Opcode::FABRICS => self.fabrics(command, now),
            _ if !self.is_enabled() => Err(Status::COMMAND_SEQUENCE_ERROR.do_not_retry()),
            Opcode::IDENTIFY => self.identify(command),
            Opcode::GET_LOG_PAGE => self.log_page(command),
            Opcode::SET_FEATURES => self.set_feature(command, data, now),
            Opcode::GET_FEATURES => self.feature(command),
            Opcode::ASYNC_EVENT_REQUEST => return self.hold_event_request(command),
            Opcode::KEEP_ALIVE => Ok(Output::NOTHING),
            // Bit 0 of the result: not aborted.
            Opcode::ABORT => Ok(Output::value(1)),
            _ => Err(Status::INVALID_OPCODE.do_not_retry()),
        };
        let completion = Completion {
            cid: command.cid(),
            ..Completion::default()
        };
        match result {
            Err(status) => Answer::Complete(Completion {
                status,
                ..completion
            }),
            Ok(Output { value, data }) => {
                let completion = Completion {
                    result: value,
                    ..completion
                };
                match data {
                    Some(data) => Answer::Data(data, completion),
                    None => Answer::Complete(completion),
                }
            }
        }
    }

    /// Returns the time at which the keep-alive timer runs out.
    #[must_use]
    pub fn deadline(&self) -> Option<Tick> {
        let runs = self.keep_alive.filter(|_| !self.is_shut_down());
        runs.map(|timeout| self.heard_at + timeout)
    }

    /// Returns whether the keep-alive timer has run out: the connections of the controller end.
    #[must_use]
    pub fn has_expired(&self, now: Tick) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Returns the completion of the oldest Asynchronous Event Request if the namespaces have
    /// changed and the host wants to know.
    pub fn namespaces_changed(&mut self) -> Option<Completion> {
        let wanted = self.event_mask & EVENT_NAMESPACES != 0 && !self.event_requests.is_empty();
        wanted.then(|| Completion {
            // Type: notice; information: namespace attributes; log page to read.
            result: u64::from(LogPage::CHANGED_NAMESPACES.0) << 16 | 2,
            cid: self.event_requests.remove(0),
            ..Completion::default()
        })
    }

    /// Returns the controller's identifier.
    #[must_use]
    pub const fn cntlid(&self) -> u16 {
        self.cntlid
    }

    /// Returns the subsystem.
    #[must_use]
    pub fn subsystem(&self) -> &Arc<Subsystem> {
        &self.subsystem
    }

    /// Returns whether the host has enabled the controller: I/O queues may connect.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.configuration & CC_ENABLE != 0
    }

    /// Returns whether I/O queues may connect: the controller is enabled, and the host has set the
    /// sizes of queue entries that fabrics have.
    #[must_use]
    pub const fn accepts_queues(&self) -> bool {
        self.is_enabled() && self.configuration & CC_ENTRY_SIZES == ENTRY_SIZES
    }

    /// Returns whether the host has shut the controller down: it will close the connection.
    #[must_use]
    pub const fn is_shut_down(&self) -> bool {
        self.status & CSTS_SHUTDOWN_COMPLETE != 0
    }

    /// Returns the largest identifier of an I/O queue.
    #[must_use]
    pub fn qid_max(&self) -> u16 {
        match self.subsystem.kind() {
            ControllerKind::Discovery => 0,
            ControllerKind::Io => self.queues_granted.unwrap_or(self.limits.queues),
        }
    }

    fn fabrics(&mut self, command: &Command, now: Tick) -> Result<Output, Status> {
        let access = PropertyAccess::decode(command);
        match FabricsType(command.fabrics_type()) {
            FabricsType::PROPERTY_GET => self.property(access).map(Output::value),
            FabricsType::PROPERTY_SET => {
                if access.property != Property::CC || access.is_wide {
                    return Err(Status::INVALID_FIELD.do_not_retry());
                }
                // CC has 4 bytes: the upper half is reserved.
                self.configure(u32_at(&access.value.to_le_bytes(), 0), now);
                Ok(Output::NOTHING)
            }
            FabricsType::CONNECT => Err(Status::COMMAND_SEQUENCE_ERROR.do_not_retry()),
            _ => Err(Status::INVALID_OPCODE.do_not_retry()),
        }
    }

    fn property(&self, access: PropertyAccess) -> Result<u64, Status> {
        match (access.property, access.is_wide) {
            (Property::CAP, true) => Ok(self.capabilities()),
            (Property::VS, false) => Ok(VERSION_1_4),
            (Property::CC, false) => Ok(self.configuration.into()),
            (Property::CSTS, false) => Ok(self.status.into()),
            _ => Err(Status::INVALID_FIELD.do_not_retry()),
        }
    }

    /// CAP: entries of a queue (0's based), contiguous queues, time-out in units of 500 ms, the NVM
    /// command set; pages of 4 KiB only.
    fn capabilities(&self) -> u64 {
        let entries = u64::from(self.limits.queue_entries.saturating_sub(1));
        entries | 1 << 16 | READY_TIMEOUT << 24 | 1 << 37
    }

    /// Sets CC. A host reads it back and expects what it wrote.
    fn configure(&mut self, configuration: u32, now: Tick) {
        let was_enabled = self.is_enabled();
        self.configuration = configuration;
        if self.is_enabled() && !was_enabled {
            // An earlier shutdown is over.
            self.status = CSTS_READY;
            self.heard_at = now;
        } else if was_enabled && !self.is_enabled() {
            self.status = 0;
            self.event_requests.clear();
            self.event_mask = 0;
            self.queues_granted = None;
        }
        if configuration & CC_SHUTDOWN != 0 {
            self.status |= CSTS_SHUTDOWN_COMPLETE;
            self.event_requests.clear();
        }
    }

    fn identify(&self, command: &Command) -> Result<Output, Status> {
        let invalid = Status::INVALID_FIELD.do_not_retry();
        let nsid = command.nsid();
        let page = match command.dword(10).to_le_bytes()[0] {
            CNS_NAMESPACE => match self.subsystem.namespace(nsid) {
                Some(namespace) => namespace.encode(),
                None if nsid == 0 || nsid > self.subsystem.nsid_max() => {
                    return Err(Status::INVALID_NAMESPACE.do_not_retry());
                }
                // Inactive.
                None => [0; IDENTIFY_BYTES],
            },
            CNS_CONTROLLER => self.identity().encode(),
            CNS_ACTIVE_NAMESPACES => {
                let nsids = self.subsystem.namespaces.iter().map(|&(nsid, _)| nsid);
                active_namespaces(nsids, nsid)
            }
            CNS_DESCRIPTORS => match self.subsystem.namespace(nsid) {
                Some(namespace) => namespace_descriptors(&namespace.nguid),
                None => return Err(Status::INVALID_NAMESPACE.do_not_retry()),
            },
            // Of the NVM command set, which has no limits to report.
            CNS_COMMAND_SET_NAMESPACE | CNS_COMMAND_SET_CONTROLLER
                if command.dword(11) >> 24 == 0 =>
            {
                [0; IDENTIFY_BYTES]
            }
            _ => return Err(invalid),
        };
        Ok(Output::data(page.to_vec()))
    }

    fn identity(&self) -> ControllerIdentity {
        ControllerIdentity {
            serial: self.subsystem.serial.clone(),
            model: self.subsystem.model.clone(),
            firmware: self.subsystem.firmware.clone(),
            cntlid: self.cntlid,
            mdts: self.limits.mdts,
            kind: self.subsystem.kind(),
            keep_alive_granularity: KEEP_ALIVE_GRANULARITY,
            commands_max: self.limits.queue_entries,
            namespaces: self.subsystem.nsid_max(),
            optional: self.limits.optional,
            in_capsule_bytes: self.limits.in_capsule_bytes,
            subsystem_nqn: self.subsystem.nqn.clone(),
        }
    }

    fn log_page(&self, command: &Command) -> Result<Output, Status> {
        let invalid = Status::INVALID_FIELD.do_not_retry();
        let wanted = GetLogPage::decode(command);
        let page = match (wanted.page, &self.subsystem.discovery) {
            (LogPage::DISCOVERY, Some(discovery)) => {
                discovery_page(discovery.generation, &discovery.entries)
            }
            (_, Some(_)) => return Err(invalid),
            (LogPage::ERROR, _) => vec![0; 64 * usize::from(crate::identify::ERROR_ENTRIES)],
            (LogPage::SMART, _) => self.health.encode().to_vec(),
            (LogPage::FIRMWARE, _) => firmware_page(&self.subsystem.firmware).to_vec(),
            (LogPage::CHANGED_NAMESPACES, _) => vec![0; 4096],
            (LogPage::EFFECTS, _) => effects_page(&ADMIN, &IO, &IO_CHANGING).to_vec(),
            _ => return Err(invalid),
        };
        let from = usize::try_from(wanted.offset)
            .ok()
            .filter(|&from| from < page.len());
        let from = from.ok_or(invalid)?;
        let length = usize::try_from(wanted.length).ok();
        // Refused as a whole: hosts take less data than they asked for as an error of transport.
        let length = length.filter(|&length| length <= LOG_BYTES_MAX);
        let length = length.ok_or(invalid)?;
        // A host may ask for more than there is; it gets zeros.
        let mut part: Vec<u8> = page[from..].iter().copied().take(length).collect();
        part.resize(length, 0);
        Ok(Output::data(part))
    }

    fn set_feature(&mut self, command: &Command, data: &[u8], now: Tick) -> Result<Output, Status> {
        let value = command.dword(11);
        match command.dword(10).to_le_bytes()[0] {
            FEATURE_QUEUES => {
                if self.queues_granted.is_some() {
                    return Err(Status::COMMAND_SEQUENCE_ERROR.do_not_retry());
                }
                let [submission, completion] = [value & 0xffff, value >> 16];
                if submission == 0xffff || completion == 0xffff {
                    return Err(Status::INVALID_FIELD.do_not_retry());
                }
                let asked = u16::try_from(submission.min(completion) + 1).unwrap_or(u16::MAX);
                self.queues_granted = Some(asked.min(self.limits.queues));
                Ok(Output::value(self.queues()))
            }
            FEATURE_EVENTS => {
                self.event_mask = value;
                Ok(Output::NOTHING)
            }
            FEATURE_KEEP_ALIVE => {
                self.keep_alive = timeout(value, self.subsystem.kind());
                // It begins anew: the last Keep Alive may be older than the new time-out.
                self.heard_at = now;
                Ok(Output::NOTHING)
            }
            FEATURE_HOST_ID => {
                let id = data
                    .first_chunk()
                    .ok_or(Status::INVALID_FIELD.do_not_retry())?;
                self.host_id = *id;
                Ok(Output::NOTHING)
            }
            feature if IGNORED_FEATURES.contains(&feature) => Ok(Output::NOTHING),
            _ => Err(Status::INVALID_FIELD.do_not_retry()),
        }
    }

    fn feature(&self, command: &Command) -> Result<Output, Status> {
        match command.dword(10).to_le_bytes()[0] {
            FEATURE_QUEUES => Ok(Output::value(self.queues())),
            FEATURE_EVENTS => Ok(Output::value(self.event_mask.into())),
            FEATURE_KEEP_ALIVE => {
                let ms = self.keep_alive.map_or(0, Nanos::as_millis);
                Ok(Output::value(ms))
            }
            FEATURE_HOST_ID if command.dword(11) & EXTENDED_HOST_ID == 0 => {
                Err(Status::INVALID_FIELD.do_not_retry())
            }
            FEATURE_HOST_ID => Ok(Output::data(self.host_id.to_vec())),
            feature if IGNORED_FEATURES.contains(&feature) => Ok(Output::NOTHING),
            _ => Err(Status::INVALID_FIELD.do_not_retry()),
        }
    }

    /// Result of the queue feature: both numbers, 0's based.
    fn queues(&self) -> u64 {
        let granted = u64::from(self.queues_granted.unwrap_or(self.limits.queues));
        let zero_based = granted.saturating_sub(1);
        zero_based << 16 | zero_based
    }

    fn hold_event_request(&mut self, command: &Command) -> Answer {
        if self.event_requests.len() < usize::from(ASYNC_EVENT_REQUESTS) {
            self.event_requests.push(command.cid());
            return Answer::Held;
        }
        Answer::Complete(Completion {
            cid: command.cid(),
            status: Status::ASYNC_EVENT_LIMIT.do_not_retry(),
            ..Completion::default()
        })
    }
}

/// Outcome of a command that succeeds.
struct Output {
    /// Dwords 0 and 1 of the completion.
    value: u64,
    data: Option<Vec<u8>>,
}

impl Output {
    const NOTHING: Self = Self {
        value: 0,
        data: None,
    };

    const fn value(value: u64) -> Self {
        Self { value, data: None }
    }

    const fn data(data: Vec<u8>) -> Self {
        Self {
            value: 0,
            data: Some(data),
        }
    }
}

/// Returns a keep-alive time-out, rounded up to the granularity as far as its 32 bits go; `None` if
/// 0 turns the timer off.
fn timeout(ms: u32, kind: ControllerKind) -> Option<Nanos> {
    let unit = u64::from(KEEP_ALIVE_GRANULARITY) * 100;
    match (ms, kind) {
        (0, ControllerKind::Io) => None,
        // Nobody else ends a discovery controller whose host is gone.
        (0, ControllerKind::Discovery) => Some(DISCOVERY_SILENCE_MAX),
        _ => {
            let most = u64::from(u32::MAX) / unit * unit;
            let rounded = u64::from(ms).next_multiple_of(unit);
            Some(Nanos::from_millis(rounded.min(most)))
        }
    }
}

// CC and CSTS.
const CC_ENABLE: u32 = 1;
const CC_SHUTDOWN: u32 = 3 << 14;
/// IOCQES and IOSQES: entries of 16 and 64 bytes, as powers of two.
const CC_ENTRY_SIZES: u32 = 0xff << 16;
const ENTRY_SIZES: u32 = 0x46 << 16;
const CSTS_READY: u32 = 1;
const CSTS_SHUTDOWN_COMPLETE: u32 = 2 << 2;

/// NVMe 1.4, as the Identify page says.
const VERSION_1_4: u64 = 0x1_0400;
/// A host waits at most 15 s for the controller, which is ready at once.
const READY_TIMEOUT: u64 = 30;
/// Units of 100 ms; Linux requires a value above 0.
const KEEP_ALIVE_GRANULARITY: u16 = 10;
/// SPDK's limit of the silence on a discovery controller without a keep-alive timer.
const DISCOVERY_SILENCE_MAX: Nanos = Nanos::from_secs(120);
/// Largest part of a log page per command; hosts read in parts of 4 KiB.
const LOG_BYTES_MAX: usize = 1 << 17;

const CNS_NAMESPACE: u8 = 0x00;
const CNS_CONTROLLER: u8 = 0x01;
const CNS_ACTIVE_NAMESPACES: u8 = 0x02;
const CNS_DESCRIPTORS: u8 = 0x03;
const CNS_COMMAND_SET_NAMESPACE: u8 = 0x05;
const CNS_COMMAND_SET_CONTROLLER: u8 = 0x06;

const FEATURE_QUEUES: u8 = 0x07;
const FEATURE_EVENTS: u8 = 0x0b;
const FEATURE_KEEP_ALIVE: u8 = 0x0f;
const FEATURE_HOST_ID: u8 = 0x81;
/// EXHID: 16 bytes instead of 8, which fabrics do not have.
const EXTENDED_HOST_ID: u32 = 1;
/// Arbitration, power, temperature, error recovery, volatile write cache, interrupts, write
/// atomicity: hosts set and read them, and nothing here depends on them.
const IGNORED_FEATURES: [u8; 8] = [0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a];

/// Namespace attribute notices, in the feature of asynchronous events.
const EVENT_NAMESPACES: u32 = 1 << 8;

/// Admin commands, by opcode, for the effects log.
const ADMIN: [u8; 7] = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18];
/// I/O commands, likewise.
const IO: [u8; 6] = [0x00, 0x01, 0x02, 0x05, 0x08, 0x09];
/// Those that change data.
const IO_CHANGING: [u8; 3] = [0x01, 0x08, 0x09];

#[cfg(test)]
mod tests;
