//! Fabrics commands: Connect and the properties of a controller.

use crate::command::{Command, Opcode};
use crate::completion::{Completion, Status};
use crate::text::{put_terminated, text_of};
use crate::wire::{put, u16_at, u32_at};

/// NQN of the discovery service on every target.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Type of a fabrics command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricsType(pub u8);

impl FabricsType {
    /// Property Set.
    pub const PROPERTY_SET: Self = Self(0x00);
    /// Connect.
    pub const CONNECT: Self = Self(0x01);
    /// Property Get.
    pub const PROPERTY_GET: Self = Self(0x04);
    /// Disconnect of an I/O queue.
    pub const DISCONNECT: Self = Self(0x08);
}

/// Connect: creates a queue, and with queue 0 a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Format of the data; only 0 exists.
    pub record_format: u16,
    /// Queue identifier; 0: the admin queue.
    pub qid: u16,
    /// Entries of the queue, 0's based.
    pub sq_size: u16,
    /// Attributes; bit 2 asks to disable SQ flow control.
    pub attributes: u8,
    /// Keep-alive time-out in milliseconds; 0: none. Without meaning for I/O queues.
    pub keep_alive_ms: u32,
    /// Identifies the host.
    pub host_id: [u8; 16],
    /// Controller to add the queue to; [`Self::ANY_CONTROLLER`] for queue 0.
    pub cntlid: u16,
    /// NQN of the subsystem.
    pub subsystem_nqn: String,
    /// NQN of the host. SPDK's benchmark sends an empty one.
    pub host_nqn: String,
}

impl Connect {
    /// Length of the data.
    pub const DATA_BYTES: usize = 1024;
    /// Requests a new controller.
    pub const ANY_CONTROLLER: u16 = 0xffff;

    /// Decodes a command and its data.
    #[must_use]
    pub fn decode(command: &Command, data: &[u8; Self::DATA_BYTES]) -> Self {
        let sqe = command.as_bytes();
        let mut host_id = [0; 16];
        host_id.copy_from_slice(&data[..16]);
        Self {
            record_format: u16_at(sqe, 40),
            qid: u16_at(sqe, 42),
            sq_size: u16_at(sqe, 44),
            attributes: sqe[46],
            keep_alive_ms: u32_at(sqe, 48),
            host_id,
            cntlid: u16_at(data, 16),
            subsystem_nqn: text_of(&data[SUBNQN..SUBNQN + NQN_BYTES]),
            host_nqn: text_of(&data[HOSTNQN..HOSTNQN + NQN_BYTES]),
        }
    }

    /// Encodes the command, without its data pointer, and the data.
    #[must_use]
    pub fn encode(&self, cid: u16) -> (Command, [u8; Self::DATA_BYTES]) {
        let mut sqe = *fabrics(FabricsType::CONNECT, cid).as_bytes();
        put(&mut sqe, 40, self.record_format.to_le_bytes());
        put(&mut sqe, 42, self.qid.to_le_bytes());
        put(&mut sqe, 44, self.sq_size.to_le_bytes());
        sqe[46] = self.attributes;
        put(&mut sqe, 48, self.keep_alive_ms.to_le_bytes());
        let mut data = [0; Self::DATA_BYTES];
        data[..16].copy_from_slice(&self.host_id);
        put(&mut data, 16, self.cntlid.to_le_bytes());
        put_terminated(&mut data[SUBNQN..SUBNQN + NQN_BYTES], &self.subsystem_nqn);
        put_terminated(&mut data[HOSTNQN..HOSTNQN + NQN_BYTES], &self.host_nqn);
        (Command::from_bytes(sqe), data)
    }
}

/// Field of Connect that a controller refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectField {
    /// Queue identifier.
    Qid,
    /// Queue size.
    SqSize,
    /// Controller identifier.
    Cntlid,
    /// NQN of the subsystem.
    SubsystemNqn,
    /// NQN of the host.
    HostNqn,
}

impl ConnectField {
    /// Returns the completion that names the field: its offset in the low word, and bit 16 if it is
    /// in the data.
    #[must_use]
    pub fn refusal(self, cid: u16) -> Completion {
        const IN_DATA: u64 = 1 << 16;
        let result = match self {
            Self::Qid => 42,
            Self::SqSize => 44,
            Self::Cntlid => IN_DATA | 16,
            Self::SubsystemNqn => IN_DATA | SUBNQN as u64,
            Self::HostNqn => IN_DATA | HOSTNQN as u64,
        };
        Completion {
            result,
            cid,
            status: Status::CONNECT_INVALID_PARAMETERS.do_not_retry(),
            ..Completion::default()
        }
    }
}

/// Access to a property of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyAccess {
    /// Property, by its offset.
    pub property: Property,
    /// 8 bytes instead of 4.
    pub is_wide: bool,
    /// Value of Property Set.
    pub value: u64,
}

/// Property of a controller, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property(pub u32);

impl Property {
    /// Controller capabilities; 8 bytes.
    pub const CAP: Self = Self(0x00);
    /// Version.
    pub const VS: Self = Self(0x08);
    /// Controller configuration.
    pub const CC: Self = Self(0x14);
    /// Controller status.
    pub const CSTS: Self = Self(0x1c);
    /// NVM subsystem reset.
    pub const NSSR: Self = Self(0x20);
}

impl PropertyAccess {
    /// Decodes the command.
    #[must_use]
    pub fn decode(command: &Command) -> Self {
        Self {
            property: Property(command.dword(11)),
            is_wide: command.as_bytes()[40] & 7 == 1,
            value: command.qword(12),
        }
    }

    /// Encodes a Property Set or Property Get.
    #[must_use]
    pub fn encode(&self, kind: FabricsType, cid: u16) -> Command {
        fabrics(kind, cid)
            .with_dword(10, self.is_wide.into())
            .with_dword(11, self.property.0)
            .with_qword(12, self.value)
    }
}

/// Returns a fabrics command without parameters.
fn fabrics(kind: FabricsType, cid: u16) -> Command {
    // The type stands in the first byte of the field that other commands have for their namespace.
    Command::new(Opcode::FABRICS, cid).with_nsid(kind.0.into())
}

const SUBNQN: usize = 256;
const HOSTNQN: usize = 512;
const NQN_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn connect() -> Connect {
        Connect {
            record_format: 0,
            qid: 1,
            sq_size: 127,
            attributes: 0,
            keep_alive_ms: 5000,
            host_id: *b"0123456789abcdef",
            cntlid: 1,
            subsystem_nqn: "nqn.2026-01.io.fathom:test".into(),
            host_nqn: "nqn.2014-08.org.nvmexpress:uuid:1".into(),
        }
    }

    #[test]
    fn connect_survives_the_wire() {
        let (command, data) = connect().encode(9);
        assert_eq!(
            (command.opcode(), command.fabrics_type()),
            (Opcode::FABRICS, 1)
        );
        assert_eq!(command.cid(), 9);
        assert_eq!(Connect::decode(&command, &data), connect());
        assert_eq!(
            &command.as_bytes()[42..52],
            [1, 0, 127, 0, 0, 0, 0x88, 0x13, 0, 0]
        );
        assert_eq!(&data[256..264], b"nqn.2026");
    }

    /// Linux sets CC without EN: 0x460000, before it enables the controller.
    #[test]
    fn properties_survive_the_wire() {
        let access = PropertyAccess {
            property: Property::CC,
            is_wide: false,
            value: 0x46_0000,
        };
        let command = access.encode(FabricsType::PROPERTY_SET, 3);
        assert_eq!(PropertyAccess::decode(&command), access);
        assert_eq!(
            &command.as_bytes()[40..52],
            [0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x46, 0]
        );
        let wide = PropertyAccess {
            property: Property::CAP,
            is_wide: true,
            value: 0,
        };
        assert_eq!(wide.encode(FabricsType::PROPERTY_GET, 3).as_bytes()[40], 1);
    }

    #[test]
    fn a_refusal_names_the_field() {
        let refusal = ConnectField::SubsystemNqn.refusal(2);
        assert_eq!((refusal.result, refusal.cid), (0x1_0100, 2));
        assert_eq!(ConnectField::Qid.refusal(2).result, 42);
    }
}
