//! Time of day as text, in the local time zone.

/// Formats milliseconds since 1970 as `ctime(3)` does, without the line feed:
/// `Sat Nov 21 21:41:00 2026`.
#[must_use]
pub fn ctime(ms: u64) -> String {
    let seconds = (ms / 1_000).try_into().unwrap_or(i32::MAX.into());
    // SAFETY: `tm` is a plain C struct of integers and a pointer, for which zeros are a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both addresses are of live values of the right types. It fails only for years that
    // do not fit into an int, and then the zeros stand.
    unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    let name = |names: &[&'static str], index: libc::c_int| {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        names.get(index).copied().unwrap_or("???")
    };
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        name(&DAYS, parts.tm_wday),
        name(&MONTHS, parts.tm_mon),
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec,
        i64::from(parts.tm_year) + 1900,
    )
}

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_24_characters() {
        // Day and hour depend on the zone of the machine; the shape does not.
        let text = ctime(1_700_000_000_000);
        assert_eq!(text.len(), 24, "{text}");
        assert!(text.contains("Nov 1") && text.ends_with(" 2023"), "{text}");
    }
}
