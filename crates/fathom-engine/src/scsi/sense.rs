//! Sense data of a failed command, in both formats of SPC-5.

use std::fmt;

use super::sense_codes::{KEYS, additional_sense};

/// Decoded sense data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sense {
    pub(crate) key: u8,
    /// Additional sense code, and its qualifier.
    code: [u8; 2],
    /// It is about an earlier command, whose success was reported.
    pub(crate) is_deferred: bool,
    /// Field INFORMATION: for errors of the medium, the first bad block.
    information: Option<u64>,
    /// Place of an invalid field.
    field: Option<Field>,
}

/// Place of an invalid field (SENSE KEY SPECIFIC of ILLEGAL REQUEST).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    in_command: bool,
    byte: u16,
    bit: Option<u8>,
}

impl Sense {
    /// Decodes sense data; `None` if they are of no known format, or too short for it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? & 0x7f {
            format @ (0x70 | 0x71) => Self::fixed(bytes, format == 0x71),
            format @ (0x72 | 0x73) => Self::descriptors(bytes, format == 0x73),
            _ => None,
        }
    }

    fn fixed(bytes: &[u8], is_deferred: bool) -> Option<Self> {
        let key = bytes.get(2)? & 0xf;
        // Bytes after what the device has filled in do not count.
        let filled = bytes.get(7).map_or(7, |more| 8 + usize::from(*more));
        let bytes = &bytes[..bytes.len().min(filled)];
        let is_valid = bytes[0] & 0x80 != 0;
        let information = bytes.get(3..7).and_then(|field| field.try_into().ok());
        let code = bytes.get(12..14).and_then(|field| field.try_into().ok());
        Some(Self {
            key,
            code: code.unwrap_or_default(),
            is_deferred,
            information: information
                .filter(|_| is_valid)
                .map(|field| u32::from_be_bytes(field).into()),
            field: bytes.get(15..18).and_then(|part| Field::decode(key, part)),
        })
    }

    fn descriptors(bytes: &[u8], is_deferred: bool) -> Option<Self> {
        let [_, key, code, qualifier] = *bytes.first_chunk::<4>()?;
        let mut sense = Self {
            key: key & 0xf,
            code: [code, qualifier],
            is_deferred,
            ..Self::default()
        };
        let more = bytes.get(7).map_or(0, |more| usize::from(*more));
        let mut rest = bytes.get(8..).unwrap_or_default();
        rest = &rest[..rest.len().min(more)];
        while let [kind, length, own @ ..] = rest {
            let own = &own[..own.len().min((*length).into())];
            sense.take_descriptor(*kind, own);
            rest = &rest[2 + own.len()..];
        }
        Some(sense)
    }

    /// Takes a descriptor, given without its type and length.
    fn take_descriptor(&mut self, kind: u8, own: &[u8]) {
        match (kind, own) {
            (0x00, [valid, _, number @ ..]) if valid & 0x80 != 0 => {
                let number = number.first_chunk().copied();
                self.information = number.map(u64::from_be_bytes);
            }
            (0x02, [_, _, part @ ..]) => self.field = Field::decode(self.key, part),
            _ => {}
        }
    }

    /// Returns whether the command did all that it was asked for: the sense is information.
    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.key, NO_SENSE | RECOVERED_ERROR) && !self.is_deferred
    }

    /// Returns whether the device reports an event, such as a reset, instead of executing the
    /// command.
    pub(crate) const fn is_unit_attention(&self) -> bool {
        self.key == UNIT_ATTENTION
    }

    /// Returns whether the device refuses a value in the command, or in its parameter list.
    pub(crate) const fn is_invalid_field(&self) -> bool {
        self.key == ILLEGAL_REQUEST && matches!(self.code[0], 0x24 | 0x26)
    }
}

impl Field {
    fn decode(key: u8, part: &[u8]) -> Option<Self> {
        let [flags, high, low] = *part.first_chunk()?;
        (key == ILLEGAL_REQUEST && flags & 0x80 != 0).then_some(Self {
            in_command: flags & 0x40 != 0,
            byte: u16::from_be_bytes([high, low]),
            bit: (flags & 0x08 != 0).then_some(flags & 7),
        })
    }
}

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [code, qualifier] = self.code;
        if self.is_deferred {
            f.write_str("of an earlier command: ")?;
        }
        f.write_str(KEYS[usize::from(self.key & 0xf)])?;
        if let Some(text) = additional_sense(code, qualifier) {
            write!(f, ", {text}")?;
        }
        if let Some(block) = self.information.filter(|_| self.key == MEDIUM_ERROR) {
            write!(f, " at LBA {block}")?;
        }
        if let Some(field) = self.field {
            write!(f, ", {field}")?;
        }
        write!(f, " (sense {:x}h/{code:02x}h/{qualifier:02x}h)", self.key)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_command { "command" } else { "data" };
        write!(f, "byte {}", self.byte)?;
        if let Some(bit) = self.bit {
            write!(f, " bit {bit}")?;
        }
        write!(f, " of the {place}")
    }
}

const NO_SENSE: u8 = 0x0;
const RECOVERED_ERROR: u8 = 0x1;
const MEDIUM_ERROR: u8 = 0x3;
const ILLEGAL_REQUEST: u8 = 0x5;
const UNIT_ATTENTION: u8 = 0x6;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fixed-format sense of 18 bytes.
    fn fixed(key: u8, code: [u8; 2], information: Option<u32>, specific: [u8; 3]) -> Vec<u8> {
        let mut bytes = vec![0; 18];
        bytes[0] = 0x70 | u8::from(information.is_some()) << 7;
        bytes[2] = key;
        bytes[3..7].copy_from_slice(&information.unwrap_or(0).to_be_bytes());
        bytes[7] = 10;
        bytes[12..14].copy_from_slice(&code);
        bytes[15..18].copy_from_slice(&specific);
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8], want: &str) {
        let sense = Sense::decode(bytes).unwrap();
        assert_eq!(sense.to_string(), want, "{bytes:02x?}");
    }

    #[test]
    fn keys_and_codes_are_named() {
        check(
            &fixed(3, [0x11, 0], Some(0x1234), [0; 3]),
            "MEDIUM ERROR, UNRECOVERED READ ERROR at LBA 4660 (sense 3h/11h/00h)",
        );
        check(
            &fixed(5, [0x24, 0], None, [0xcb, 0, 1]),
            "ILLEGAL REQUEST, INVALID FIELD IN CDB, byte 1 bit 3 of the command (sense 5h/24h/00h)",
        );
        check(
            &fixed(5, [0x26, 0], None, [0x80, 0, 8]),
            "ILLEGAL REQUEST, INVALID FIELD IN PARAMETER LIST, byte 8 of the data (sense \
             5h/26h/00h)",
        );
        check(
            &fixed(6, [0x29, 0], None, [0; 3]),
            "UNIT ATTENTION, POWER ON, RESET, OR BUS DEVICE RESET OCCURRED (sense 6h/29h/00h)",
        );
        check(
            &fixed(9, [0x80, 7], None, [0; 3]),
            "VENDOR SPECIFIC (sense 9h/80h/07h)",
        );
    }

    #[test]
    fn both_formats_tell_the_same() {
        let mut descriptors = vec![0x72, 3, 0x11, 0, 0, 0, 0, 20];
        descriptors.extend([0x00, 0x0a, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        descriptors.extend([0x02, 0x06, 0, 0, 0xcb, 0, 1, 0]);
        check(
            &descriptors,
            "MEDIUM ERROR, UNRECOVERED READ ERROR at LBA 4294967296 (sense 3h/11h/00h)",
        );
        descriptors[1] = 5;
        let sense = Sense::decode(&descriptors).unwrap();
        let field = Field {
            in_command: true,
            byte: 1,
            bit: Some(3),
        };
        assert_eq!(sense.field, Some(field));
    }

    #[test]
    fn deferred_sense_is_of_another_command() {
        let mut bytes = fixed(1, [0x17, 0], None, [0; 3]);
        assert!(Sense::decode(&bytes).unwrap().is_success());
        bytes[0] = 0x71;
        assert!(!Sense::decode(&bytes).unwrap().is_success());
        check(
            &bytes,
            "of an earlier command: RECOVERED ERROR, RECOVERED DATA WITH NO ERROR CORRECTION \
             APPLIED (sense 1h/17h/00h)",
        );
        assert!(
            !Sense::decode(&fixed(6, [0x29, 0], None, [0; 3]))
                .unwrap()
                .is_success()
        );
    }

    #[test]
    fn short_and_odd_bytes_are_no_panic() {
        for bytes in [
            fixed(5, [0x24, 0], Some(7), [0xcb, 0, 1]),
            vec![
                0x72, 3, 0x11, 0, 0, 0, 0, 255, 0, 255, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 2,
            ],
            vec![0x7f; 96],
            vec![0; 96],
        ] {
            for length in 0..=bytes.len() {
                let _some_or_none = Sense::decode(&bytes[..length]).map(|sense| sense.to_string());
            }
        }
        assert_eq!(Sense::decode(&[]), None);
        assert_eq!(Sense::decode(&[0x70, 0]), None);
        let short = Sense::decode(&[0x70, 0, 4]).unwrap();
        assert_eq!(short.to_string(), "HARDWARE ERROR (sense 4h/00h/00h)");
    }
}
