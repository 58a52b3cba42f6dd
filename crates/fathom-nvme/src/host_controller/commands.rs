//! Commands of the admin queue.

use crate::command::{Command, Opcode};
use crate::fabrics::{Connect, FabricsType, Property, PropertyAccess};
use crate::identify::IDENTIFY_BYTES;

/// Command for the admin queue.
#[derive(Clone, Debug)]
pub struct AdminCommand {
    /// The command, without identifier and data pointer.
    pub command: Command,
    /// Data that go with it; empty for none.
    pub data: Vec<u8>,
    /// Bytes of data that come back.
    pub answer_bytes: u32,
}

impl From<Command> for AdminCommand {
    fn from(command: Command) -> Self {
        Self {
            command,
            data: Vec::new(),
            answer_bytes: 0,
        }
    }
}

pub(super) fn of(connect: &Connect) -> AdminCommand {
    let (command, data) = connect.encode(0);
    AdminCommand {
        data: data.to_vec(),
        ..command.into()
    }
}

pub(super) fn get(property: Property, is_wide: bool) -> AdminCommand {
    let access = PropertyAccess {
        property,
        is_wide,
        value: 0,
    };
    access.encode(FabricsType::PROPERTY_GET, 0).into()
}

pub(super) fn configure(value: u64) -> AdminCommand {
    let access = PropertyAccess {
        property: Property::CC,
        is_wide: false,
        value,
    };
    access.encode(FabricsType::PROPERTY_SET, 0).into()
}

pub(super) fn identify(cns: u32, nsid: u32) -> AdminCommand {
    let command = Command::new(Opcode::IDENTIFY, 0).with_nsid(nsid);
    AdminCommand {
        answer_bytes: PAGE_BYTES,
        ..command.with_dword(10, cns).into()
    }
}

pub(super) const CONNECT: &str = "Connect";
pub(super) const CONNECT_QUEUE: &str = "Connect of an I/O queue";
pub(super) const PROPERTY_GET: &str = "Property Get";
pub(super) const PROPERTY_SET: &str = "Property Set";
pub(super) const IDENTIFY_CONTROLLER: &str = "Identify Controller";
pub(super) const IDENTIFY_NAMESPACE: &str = "Identify Namespace";
pub(super) const SET_QUEUES: &str = "Set Features (number of queues)";
pub(super) const KEEP_ALIVE: &str = "Keep Alive";

/// EN, and entries of 64 and 16 bytes.
pub(super) const CC_ENABLED: u64 = 0x46_0001;
/// The same with SHN 01b: normal shutdown.
pub(super) const CC_SHUTDOWN: u64 = 0x46_4001;

pub(super) const CNS_NAMESPACE: u32 = 0;
pub(super) const CNS_CONTROLLER: u32 = 1;
pub(super) const FEATURE_QUEUES: u32 = 7;

/// Length of an Identify page as a field.
const PAGE_BYTES: u32 = 4096;
const _: () = assert!(PAGE_BYTES as usize == IDENTIFY_BYTES);
