//! Identify data structures, which a controller returns and a host reads.

use std::fmt;

use crate::block_format::format_index;
use crate::text::{put_padded, put_terminated};
use crate::wire::{put, u16_at, u32_at, u64_at};

/// Length of every Identify answer.
pub const IDENTIFY_BYTES: usize = 4096;

/// Page of an Identify answer.
pub type Page = [u8; IDENTIFY_BYTES];

/// Identify Controller (CNS 01h): the fields that hosts over fabrics read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerIdentity {
    /// Serial number, up to 20 ASCII characters; the same for all controllers of a subsystem.
    pub serial: String,
    /// Model number, up to 40 ASCII characters.
    pub model: String,
    /// Firmware revision, up to 8 ASCII characters.
    pub firmware: String,
    /// Controller identifier. Linux requires the one that Connect returned.
    pub cntlid: u16,
    /// Largest data transfer as a power of two of 4 KiB; 0: unlimited.
    pub mdts: u8,
    /// Kind of controller.
    pub kind: ControllerKind,
    /// Granularity of the keep-alive timer in units of 100 ms. Linux requires one above 0.
    pub keep_alive_granularity: u16,
    /// Largest queue that is useful: commands in flight per queue.
    pub commands_max: u16,
    /// Largest namespace identifier.
    pub namespaces: u32,
    /// Optional I/O commands.
    pub optional: OptionalCommands,
    /// Bytes that the capsule of an I/O command may carry.
    pub in_capsule_bytes: u32,
    /// NQN of the subsystem.
    pub subsystem_nqn: String,
}

/// Kind of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerKind {
    /// Gives access to namespaces.
    Io,
    /// Lists subsystems.
    Discovery,
}

/// Optional I/O commands that a controller has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionalCommands {
    /// Compare.
    pub compare: bool,
    /// Dataset Management.
    pub dataset_management: bool,
    /// Write Zeroes.
    pub write_zeroes: bool,
    /// Write Uncorrectable.
    pub write_uncorrectable: bool,
    /// Verify.
    pub verify: bool,
}

impl ControllerIdentity {
    /// Encodes the page.
    #[must_use]
    pub fn encode(&self) -> Page {
        let mut page = [0; IDENTIFY_BYTES];
        put_padded(&mut page[4..24], &self.serial);
        put_padded(&mut page[24..64], &self.model);
        put_padded(&mut page[64..72], &self.firmware);
        page[CMIC] = 0x3; // more than one port, more than one controller
        page[MDTS] = self.mdts;
        put(&mut page, CNTLID, self.cntlid.to_le_bytes());
        put(&mut page, VERSION, NVME_1_4.to_le_bytes());
        let (events, kind) = match self.kind {
            ControllerKind::Io => (OAES_NAMESPACES, 1),
            ControllerKind::Discovery => (OAES_DISCOVERY, 2),
        };
        put(&mut page, OAES, events.to_le_bytes());
        put(&mut page, CTRATT, 1_u32.to_le_bytes()); // 128-bit host identifiers
        page[CNTRLTYPE] = kind;
        page[ACL] = ABORTS - 1;
        page[AERL] = ASYNC_EVENT_REQUESTS - 1;
        page[FRMW] = 0x3; // one slot, read-only
        page[LPA] = 0x6; // effects log, log pages at an offset
        page[ELPE] = ERROR_ENTRIES - 1;
        put(&mut page, KAS, self.keep_alive_granularity.to_le_bytes());
        page[SQES] = 0x66; // 64 bytes
        page[CQES] = 0x44; // 16 bytes
        put(&mut page, MAXCMD, self.commands_max.to_le_bytes());
        put(&mut page, NN, self.namespaces.to_le_bytes());
        put(&mut page, ONCS, self.optional.bits().to_le_bytes());
        page[VWC] = 0x5; // a volatile cache; Flush of all namespaces is not supported
        put(&mut page, SGLS, SGLS_IN_CAPSULE.to_le_bytes());
        put_terminated(&mut page[SUBNQN..SUBNQN + 256], &self.subsystem_nqn);
        let capsule = (64 + self.in_capsule_bytes) / 16;
        put(&mut page, IOCCSZ, capsule.to_le_bytes());
        put(&mut page, IORCSZ, 1_u32.to_le_bytes());
        page[MSDBD] = 1;
        page
    }

    /// Decodes a page; text that is not ASCII is replaced.
    #[must_use]
    pub fn decode(page: &Page) -> Self {
        let text = |from: usize, upto: usize| crate::text::text_of(&page[from..upto]);
        Self {
            serial: text(4, 24),
            model: text(24, 64),
            firmware: text(64, 72),
            cntlid: u16_at(page, CNTLID),
            mdts: page[MDTS],
            kind: match page[CNTRLTYPE] {
                2 => ControllerKind::Discovery,
                // Controllers before NVMe 1.4 report 0.
                _ => ControllerKind::Io,
            },
            keep_alive_granularity: u16_at(page, KAS),
            commands_max: u16_at(page, MAXCMD),
            namespaces: u32_at(page, NN),
            optional: OptionalCommands::from_bits(u16_at(page, ONCS)),
            in_capsule_bytes: u32_at(page, IOCCSZ).saturating_mul(16).saturating_sub(64),
            subsystem_nqn: text(SUBNQN, SUBNQN + 256),
        }
    }
}

impl OptionalCommands {
    const fn bits(self) -> u16 {
        self.compare as u16
            | (self.write_uncorrectable as u16) << 1
            | (self.dataset_management as u16) << 2
            | (self.write_zeroes as u16) << 3
            | (self.verify as u16) << 7
    }

    const fn from_bits(bits: u16) -> Self {
        Self {
            compare: bits & 1 != 0,
            dataset_management: bits & 4 != 0,
            write_zeroes: bits & 8 != 0,
            write_uncorrectable: bits & 2 != 0,
            verify: bits & 0x80 != 0,
        }
    }
}

/// Identify Namespace (CNS 00h) with one LBA format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceIdentity {
    /// Size in blocks.
    pub blocks: u64,
    /// Block size as a power of two, 9 to 16.
    pub block_shift: u8,
    /// Globally unique identifier; stable over restarts, as multipath and device links use it.
    pub nguid: [u8; 16],
    /// Commands that change data fail; Linux makes its block device read-only.
    pub is_write_protected: bool,
}

impl NamespaceIdentity {
    /// Encodes the page.
    #[must_use]
    pub fn encode(&self) -> Page {
        let mut page = [0; IDENTIFY_BYTES];
        for at in [NSZE, NCAP, NUSE] {
            put(&mut page, at, self.blocks.to_le_bytes());
        }
        page[NMIC] = 1; // shared by the controllers of the subsystem
        page[NSATTR] = u8::from(self.is_write_protected);
        put(&mut page, NGUID, self.nguid);
        page[LBAF0 + 2] = self.block_shift;
        page
    }

    /// Decodes a page, in the LBA format in use.
    ///
    /// # Errors
    /// The property that no host can use: a block size below 512 bytes or above 64 KiB, as in the
    /// zeroed page of an inactive namespace, or a size of 8 EiB or above.
    pub fn decode(page: &Page) -> Result<Self, NamespaceFault> {
        let format = format_index(page);
        let block_shift = page[LBAF0 + 4 * format + 2];
        let mut nguid = [0; 16];
        nguid.copy_from_slice(&page[NGUID..][..16]);
        let blocks = u64_at(page, NSZE);
        if !(9..=16).contains(&block_shift) {
            return Err(NamespaceFault::BlockSize {
                format,
                block_shift,
            });
        }
        if blocks > i64::MAX.unsigned_abs() >> block_shift {
            let block_bytes = 1 << block_shift;
            return Err(NamespaceFault::Capacity {
                blocks,
                block_bytes,
            });
        }
        Ok(Self {
            blocks,
            block_shift,
            nguid,
            is_write_protected: page[NSATTR] & 1 != 0,
        })
    }
}

/// Property of a namespace that no host can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceFault {
    /// Blocks below 512 bytes or above 64 KiB.
    BlockSize {
        /// Number of the LBA format in use (FLBAS).
        format: usize,
        /// Logarithm of its block size (LBADS); 0 of a format that is not defined.
        block_shift: u8,
    },
    /// 8 EiB or more.
    Capacity {
        /// Number of blocks (NSZE).
        blocks: u64,
        /// Bytes of a block.
        block_bytes: u32,
    },
}

impl std::error::Error for NamespaceFault {}

impl fmt::Display for NamespaceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlockSize {
                format,
                block_shift,
            } => write!(
                f,
                "LBA format {format} has blocks of 2^{block_shift} B (LBADS {block_shift}); \
                 supported are 512 B to 64 KiB"
            ),
            Self::Capacity {
                blocks,
                block_bytes,
            } => write!(
                f,
                "{blocks} blocks of {block_bytes} B; supported is less than 8 EiB"
            ),
        }
    }
}

/// Encodes the list of active namespaces (CNS 02h): those above `after`, ascending.
#[must_use]
pub fn active_namespaces(namespaces: impl Iterator<Item = u32>, after: u32) -> Page {
    let mut page = [0; IDENTIFY_BYTES];
    let listed = namespaces.filter(|&nsid| nsid > after);
    for (place, nsid) in page.chunks_exact_mut(4).zip(listed) {
        place.copy_from_slice(&nsid.to_le_bytes());
    }
    page
}

/// Encodes the identifiers of a namespace (CNS 03h): its NGUID, and its command set, NVM.
#[must_use]
pub fn namespace_descriptors(nguid: &[u8; 16]) -> Page {
    let mut page = [0; IDENTIFY_BYTES];
    page[..2].copy_from_slice(&[NIDT_NGUID, 16]);
    page[4..20].copy_from_slice(nguid);
    page[20..22].copy_from_slice(&[NIDT_COMMAND_SET, 1]);
    page
}

/// Abort commands that may be outstanding.
pub const ABORTS: u8 = 4;
/// Asynchronous Event Requests that a controller holds.
pub const ASYNC_EVENT_REQUESTS: u8 = 4;
/// Entries of the error log.
pub const ERROR_ENTRIES: u8 = 128;

/// NVMe 1.4: 2.0 would require more log pages and Identify pages.
const NVME_1_4: u32 = 0x1_0400;
/// Namespace attribute notices.
const OAES_NAMESPACES: u32 = 1 << 8;
/// Discovery log page change notices.
const OAES_DISCOVERY: u32 = 1 << 31;
/// SGLs are supported, and so are offsets in a data block: in-capsule data.
const SGLS_IN_CAPSULE: u32 = 1 << 20 | 1;

// Identify Controller.
const CMIC: usize = 76;
const MDTS: usize = 77;
const CNTLID: usize = 78;
const VERSION: usize = 80;
const OAES: usize = 92;
const CTRATT: usize = 96;
const CNTRLTYPE: usize = 111;
const ACL: usize = 258;
const AERL: usize = 259;
const FRMW: usize = 260;
const LPA: usize = 261;
const ELPE: usize = 262;
const KAS: usize = 320;
const SQES: usize = 512;
const CQES: usize = 513;
const MAXCMD: usize = 514;
const NN: usize = 516;
const ONCS: usize = 520;
const VWC: usize = 525;
const SGLS: usize = 536;
const SUBNQN: usize = 768;
const IOCCSZ: usize = 1792;
const IORCSZ: usize = 1796;
const MSDBD: usize = 1803;

// Identify Namespace.
const NSZE: usize = 0;
const NCAP: usize = 8;
const NUSE: usize = 16;
const NMIC: usize = 30;
/// Namespace attributes; bit 0: write-protected.
const NSATTR: usize = 99;
const NGUID: usize = 104;
const LBAF0: usize = 128;

const NIDT_NGUID: u8 = 2;
/// Namespace identification descriptor of the command set.
pub(crate) const NIDT_COMMAND_SET: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_page_survives_the_wire() {
        let identity = ControllerIdentity {
            serial: "FATHOM00000000000001".into(),
            model: "Fathom".into(),
            firmware: "0.1".into(),
            cntlid: 7,
            mdts: 5,
            kind: ControllerKind::Io,
            keep_alive_granularity: 10,
            commands_max: 128,
            namespaces: 2,
            optional: OptionalCommands {
                compare: true,
                dataset_management: true,
                write_zeroes: true,
                ..OptionalCommands::default()
            },
            in_capsule_bytes: 8192,
            subsystem_nqn: "nqn.2026-01.io.fathom:test".into(),
        };
        let page = identity.encode();
        assert_eq!(ControllerIdentity::decode(&page), identity);
        // What Linux insists on.
        assert_eq!(
            u32_at(&page, 536) & 0x10_0003,
            0x10_0001,
            "SGLs in capsules"
        );
        assert_eq!(u32_at(&page, 1792), 516, "capsules of 8256 bytes");
        assert_eq!(&page[24..32], b"Fathom  ", "padded by blanks");
        assert_eq!(page[768 + 26], 0, "ended by a zero");
        assert_eq!(u16_at(&page, 520), 0xd);
    }

    #[test]
    fn the_namespace_page_survives_the_wire() {
        let identity = NamespaceIdentity {
            blocks: 1 << 21,
            block_shift: 12,
            nguid: *b"0123456789abcdef",
            is_write_protected: true,
        };
        let mut page = identity.encode();
        assert_eq!(NamespaceIdentity::decode(&page), Ok(identity));
        assert_eq!(page[99], 1, "namespace attributes");
        let fault = |page| NamespaceIdentity::decode(&page).unwrap_err().to_string();
        let want = "LBA format 0 has blocks of 2^0 B (LBADS 0); supported are 512 B to 64 KiB";
        assert_eq!(fault([0; IDENTIFY_BYTES]), want);
        page[NSZE + 7] = 0x80;
        let want = format!("{} blocks of", u64_at(&page, NSZE));
        assert!(fault(page).starts_with(&want), "{}", fault(page));
    }

    #[test]
    fn the_format_in_use_may_be_beyond_the_sixteenth() {
        let identity = NamespaceIdentity {
            blocks: 1 << 21,
            block_shift: 9,
            nguid: *b"0123456789abcdef",
            is_write_protected: false,
        };
        let mut page = identity.encode();
        page[LBAF0 + 4 * 17 + 2] = 12;
        // Format 17: its low 4 bits, and the others in bits 6:5.
        page[26] = 0x21;
        let decoded = NamespaceIdentity::decode(&page).expect("a namespace");
        assert_eq!(decoded.block_shift, 12);
    }

    #[test]
    fn lists_begin_behind_the_namespace_named() {
        let page = active_namespaces([1, 2, 5].into_iter(), 1);
        assert_eq!(
            (u32_at(&page, 0), u32_at(&page, 4), u32_at(&page, 8)),
            (2, 5, 0)
        );
        let full = active_namespaces(1..5000, 0);
        assert_eq!(u32_at(&full, 4092), 1024);
    }
}
