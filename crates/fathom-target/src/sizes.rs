//! Sizes as users write them.

/// Reads a size in bytes: a whole number, with an optional binary unit (`512`, `128k`, `8G`,
/// `1TiB`).
#[must_use]
pub fn read_size(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let short = lower.strip_suffix("ib").unwrap_or(&lower);
    let has_unit = short.len() < lower.len();
    let unit = short.chars().next_back()?;
    let (digits, shift) = match UNITS.find(unit) {
        Some(place) => (&short[..short.len() - 1], 10 * (place + 1)),
        None if has_unit => return None,
        None => (short, 0),
    };
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_plain)?;
    number.checked_mul(1 << shift)
}

/// Formats a size with the largest binary unit in which it is whole: `8 GiB`.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let whole = |shift: &u32| bytes > 0 && bytes.trailing_zeros() >= *shift;
    match [50, 40, 30, 20, 10].into_iter().find(whole) {
        Some(shift) => {
            let unit = UNITS.as_bytes()[shift as usize / 10 - 1].to_ascii_uppercase();
            let unit = if unit == b'K' {
                "KiB".to_owned()
            } else {
                format!("{}iB", char::from(unit))
            };
            format!("{} {unit}", bytes >> shift)
        }
        None => format!("{bytes} B"),
    }
}

const UNITS: &str = "kmgtp";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<u64>) {
        assert_eq!(read_size(text), want, "{text}");
    }

    #[test]
    fn sizes_have_binary_units() {
        check("512", Some(512));
        check("4k", Some(4096));
        check("8G", Some(8 << 30));
        check("8GiB", Some(8 << 30));
        check("1t", Some(1 << 40));
        check("0", Some(0));
        for wrong in [
            "",
            "k",
            "8x",
            "-1",
            "+1",
            "1.5g",
            "8 G",
            "iB",
            "5ib",
            "99999999p",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn sizes_are_shown_in_their_largest_whole_unit() {
        assert_eq!(show_size(8 << 30), "8 GiB");
        assert_eq!(show_size(132 << 10), "132 KiB");
        assert_eq!(show_size(513), "513 B");
        assert_eq!(show_size(0), "0 B");
    }
}
