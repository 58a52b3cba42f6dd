//! Names of subsystems and hosts, and the identifiers that follow from them.

use std::fmt::Write as _;

use fathom_nvme::DISCOVERY_NQN;

/// Checks an NVMe Qualified Name: `nqn.`, year and month, reversed domain, `:`, any text.
///
/// # Errors
/// The reason why it is none.
pub fn check_nqn(name: &str) -> Result<(), &'static str> {
    let rest = name
        .strip_prefix("nqn.")
        .ok_or("it does not begin with `nqn.`")?;
    if name.len() > NQN_BYTES_MAX {
        return Err("it is longer than 223 bytes");
    }
    if !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it has characters other than printable ASCII without blanks");
    }
    let (date, domain) = rest
        .split_once('.')
        .ok_or("it has no domain after the date")?;
    if !is_date(date) {
        return Err("no year and month (`2026-01`) follow `nqn.`");
    }
    match domain.split(':').next() {
        None | Some("") => Err("it has no domain after the date"),
        Some(_) if name == DISCOVERY_NQN => Err("it is that of the discovery subsystem"),
        Some(_) => Ok(()),
    }
}

fn is_date(text: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((year, month)) = text.split_once('-') else {
        return false;
    };
    let month_is_real = matches!(month.parse(), Ok(1..=12_u8));
    year.len() == 4 && month.len() == 2 && is_number(year) && is_number(month) && month_is_real
}

/// Returns the identifier of a namespace that was given none: the same for the same names, on
/// every host, as links and multipath of hosts depend on it.
#[must_use]
pub fn default_nguid(nqn: &str, nsid: u32) -> [u8; 16] {
    let mut bytes = hash(&format!("{nqn}\0{nsid}"));
    // Marked as a UUID of version 8 (own scheme), so that it collides with no vendor's.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// Returns the serial number of a subsystem that was given none.
#[must_use]
pub fn default_serial(nqn: &str) -> String {
    let mut serial = String::from("FTHM");
    for byte in &hash(nqn)[..8] {
        let _infallible = write!(serial, "{byte:02X}");
    }
    serial
}

/// Reads an identifier of 16 bytes in hexadecimal digits, with or without dashes; not zero.
#[must_use]
pub fn read_identifier(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|&one| one != '-').collect();
    let is_plain = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|_| is_plain)?;
    (number != 0).then(|| number.to_be_bytes())
}

/// FNV-1a over 128 bits: no secret depends on it, and it is the same everywhere.
fn hash(text: &str) -> [u8; 16] {
    let mix = |state: u128, byte: u8| (state ^ u128::from(byte)).wrapping_mul(FNV_PRIME);
    text.bytes().fold(FNV_OFFSET, mix).to_be_bytes()
}

const NQN_BYTES_MAX: usize = 223;
const FNV_OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, want: Result<(), &str>) {
        let found = check_nqn(name);
        match want {
            Ok(()) => assert_eq!(found, Ok(()), "{name}"),
            Err(part) => assert!(found.unwrap_err().contains(part), "{name}: {found:?}"),
        }
    }

    #[test]
    fn names_are_checked() {
        check("nqn.2026-01.org.example:disk", Ok(()));
        check(
            "nqn.2014-08.org.nvmexpress:uuid:52f5e0a4-7f3b-4e4e-8e0a-6a2b3c4d5e6f",
            Ok(()),
        );
        check("nqn.2026-01.org.example", Ok(()));
        check("disk", Err("begin with"));
        check("nqn.org.example:disk", Err("year and month"));
        check("nqn.2026-13.org.example:disk", Err("year and month"));
        check("nqn.2026-01", Err("no domain"));
        check("nqn.2026-01.:x", Err("no domain"));
        check("nqn.2026-01.org.example:a disk", Err("printable"));
        check(
            &format!("nqn.2026-01.org.example:{}", "x".repeat(200)),
            Err("223"),
        );
        check(DISCOVERY_NQN, Err("discovery"));
    }

    #[test]
    fn identifiers_are_stable_and_differ() {
        let nqn = "nqn.2026-01.org.example:disk";
        let first = default_nguid(nqn, 1);
        // Hosts have seen it: it may not change.
        assert_eq!(
            u128::from_be_bytes(first),
            NGUID_OF_THE_FIRST,
            "{first:02x?}"
        );
        assert_ne!(first, default_nguid(nqn, 2));
        assert_ne!(first, default_nguid("nqn.2026-01.org.example:other", 1));
        assert_ne!(
            default_serial(nqn),
            default_serial("nqn.2026-01.org.example:other")
        );
        assert_eq!(default_serial(nqn).len(), 20);
    }

    #[test]
    fn identifiers_are_read_with_and_without_dashes() {
        let want = Some(*b"\x52\xf5\xe0\xa4\x7f\x3b\x4e\x4e\x8e\x0a\x6a\x2b\x3c\x4d\x5e\x6f");
        assert_eq!(
            read_identifier("52f5e0a4-7f3b-4e4e-8e0a-6a2b3c4d5e6f"),
            want
        );
        assert_eq!(read_identifier("52F5E0A47F3B4E4E8E0A6A2B3C4D5E6F"), want);
        for wrong in [
            "",
            "52f5",
            "+2F5E0A47F3B4E4E8E0A6A2B3C4D5E6F",
            &"0".repeat(32),
        ] {
            assert_eq!(read_identifier(wrong), None, "{wrong}");
        }
    }

    const NGUID_OF_THE_FIRST: u128 = 0xf7fa_0a0d_a84b_8ed0_af59_b57b_6619_d00e;
}
