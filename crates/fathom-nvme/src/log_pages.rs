//! Log pages of a controller.

use crate::command::Command;
use crate::text::{put_padded, put_terminated};
use crate::wire::put;

/// Identifier of a log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPage(pub u8);

impl LogPage {
    /// Errors.
    pub const ERROR: Self = Self(0x01);
    /// Health.
    pub const SMART: Self = Self(0x02);
    /// Firmware slots.
    pub const FIRMWARE: Self = Self(0x03);
    /// Namespaces that were added, removed or resized.
    pub const CHANGED_NAMESPACES: Self = Self(0x04);
    /// Commands and their effects.
    pub const EFFECTS: Self = Self(0x05);
    /// Subsystems of a discovery service.
    pub const DISCOVERY: Self = Self(0x70);
}

/// Get Log Page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLogPage {
    /// Page.
    pub page: LogPage,
    /// Bytes, a multiple of 4 up to 16 GiB.
    pub length: u64,
    /// Byte offset in the page.
    pub offset: u64,
    /// Reading does not re-arm the event of the page.
    pub retains_event: bool,
}

impl GetLogPage {
    /// Decodes the command. The length is 0's based in dwords, over two fields.
    #[must_use]
    pub fn decode(command: &Command) -> Self {
        let (low, high) = (command.dword(10) >> 16, command.dword(11) & 0xffff);
        Self {
            page: LogPage(command.dword(10).to_le_bytes()[0]),
            length: (u64::from(high << 16 | low) + 1) * 4,
            offset: command.qword(12),
            retains_event: command.dword(10) & 1 << 15 != 0,
        }
    }
}

/// Counters of the health page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Bytes read by hosts.
    pub read_bytes: u64,
    /// Bytes written by hosts.
    pub written_bytes: u64,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
}

impl Health {
    /// Encodes the page: a healthy device at 32 °C.
    #[must_use]
    pub fn encode(&self) -> [u8; 512] {
        // Data units are thousands of 512 bytes, rounded up.
        let units = |bytes: u64| u128::from(bytes.div_ceil(512_000)).to_le_bytes();
        let mut page = [0; 512];
        put(&mut page, 1, 305_u16.to_le_bytes()); // kelvins
        page[3] = 100; // percent of spare
        page[4] = 10; // percent of spare below which to warn
        put(&mut page, 32, units(self.read_bytes));
        put(&mut page, 48, units(self.written_bytes));
        put(&mut page, 64, u128::from(self.reads).to_le_bytes());
        put(&mut page, 80, u128::from(self.writes).to_le_bytes());
        page
    }
}

/// Encodes the firmware page: one slot, active.
#[must_use]
pub fn firmware_page(revision: &str) -> [u8; 512] {
    let mut page = [0; 512];
    page[0] = 1;
    put_padded(&mut page[8..16], revision);
    page
}

/// Encodes the effects page of these admin and I/O opcodes; those of `changing` write data.
#[must_use]
pub fn effects_page(admin: &[u8], io: &[u8], changing: &[u8]) -> Box<[u8; 4096]> {
    let mut page = Box::new([0; 4096]);
    for &opcode in admin {
        put(
            &mut page[..],
            usize::from(opcode) * 4,
            EFFECT_SUPPORTED.to_le_bytes(),
        );
    }
    for &opcode in io {
        let changes = if changing.contains(&opcode) {
            EFFECT_CHANGES_DATA
        } else {
            0
        };
        let effects = EFFECT_SUPPORTED | changes;
        put(
            &mut page[..],
            1024 + usize::from(opcode) * 4,
            effects.to_le_bytes(),
        );
    }
    page
}

/// Subsystem in the discovery log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryEntry {
    /// Address that the host can reach.
    pub address: String,
    /// IPv6 instead of IPv4.
    pub is_ipv6: bool,
    /// TCP port, as text.
    pub service: String,
    /// NQN of the subsystem.
    pub subsystem_nqn: String,
    /// Port of the subsystem, by number.
    pub port_id: u16,
}

impl DiscoveryEntry {
    /// Length of an entry, and of the header before the first.
    pub const BYTES: usize = 1024;

    fn encode(&self, entry: &mut [u8]) {
        entry[0] = 3; // TCP
        entry[1] = if self.is_ipv6 { 2 } else { 1 };
        entry[2] = 2; // a subsystem with namespaces
        entry[3] = 2; // no secure channel required
        put(entry, 4, self.port_id.to_le_bytes());
        put(entry, 6, 0xffff_u16.to_le_bytes()); // any controller
        put(entry, 8, 32_u16.to_le_bytes()); // entries of the admin queue
        put_padded(&mut entry[32..64], &self.service);
        put_terminated(&mut entry[256..512], &self.subsystem_nqn);
        put_padded(&mut entry[512..768], &self.address);
    }
}

/// Encodes the discovery log. `generation` changes with the entries and only with them: hosts
/// read it again to see whether what they read is of one piece.
#[must_use]
pub fn discovery_page(generation: u64, entries: &[DiscoveryEntry]) -> Vec<u8> {
    let mut page = vec![0; (entries.len() + 1) * DiscoveryEntry::BYTES];
    put(&mut page, 0, generation.to_le_bytes());
    put(&mut page, 8, (entries.len() as u64).to_le_bytes());
    let places = page[DiscoveryEntry::BYTES..].chunks_exact_mut(DiscoveryEntry::BYTES);
    for (place, entry) in places.zip(entries) {
        entry.encode(place);
    }
    page
}

const EFFECT_SUPPORTED: u32 = 1;
const EFFECT_CHANGES_DATA: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Opcode;
    use crate::wire::{u16_at, u32_at, u64_at};

    #[test]
    fn lengths_are_zero_based_dwords_over_two_fields() {
        let command = Command::new(Opcode::GET_LOG_PAGE, 0)
            .with_dword(10, 0xffff_8070)
            .with_dword(11, 1)
            .with_qword(12, 4096);
        let want = GetLogPage {
            page: LogPage::DISCOVERY,
            length: 0x2_0000 * 4,
            offset: 4096,
            retains_event: true,
        };
        assert_eq!(GetLogPage::decode(&command), want);
    }

    #[test]
    fn health_counts_in_thousands_of_512_bytes() {
        let health = Health {
            read_bytes: 512_001,
            ..Health::default()
        };
        let page = health.encode();
        assert_eq!((u64_at(&page, 32), u64_at(&page, 48)), (2, 0));
        assert_eq!(u16_at(&page, 1), 305);
    }

    #[test]
    fn the_discovery_log_has_a_header_and_an_entry_for_each_subsystem() {
        let entry = DiscoveryEntry {
            address: "127.0.0.1".into(),
            is_ipv6: false,
            service: "4420".into(),
            subsystem_nqn: "nqn.2026-01.io.fathom:test".into(),
            port_id: 1,
        };
        let page = discovery_page(3, &[entry]);
        assert_eq!(page.len(), 2048);
        assert_eq!((u64_at(&page, 0), u64_at(&page, 8)), (3, 1));
        assert_eq!(&page[1024..1028], [3, 1, 2, 2]);
        assert_eq!(&page[1024 + 32..1024 + 38], b"4420  ");
        assert_eq!(&page[1024 + 512..1024 + 523], b"127.0.0.1  ");
    }

    #[test]
    fn effects_are_listed_by_opcode() {
        let page = effects_page(&[0x06], &[0x01, 0x02], &[0x01]);
        assert_eq!(u32_at(&page[..], 0x06 * 4), 1);
        assert_eq!((u32_at(&page[..], 1028), u32_at(&page[..], 1032)), (3, 1));
    }
}
