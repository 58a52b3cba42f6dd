//! Numbers as the terminal shows them: three digits and a unit.

/// Formats a number of ops.
pub(super) fn count(value: u64) -> String {
    scaled(value, 1000, &["", "k", "M", "G", "T"], "")
}

/// Formats a number of bytes.
pub(super) fn bytes(value: u64) -> String {
    scaled(value, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"], " ")
}

/// Formats a latency; `-` if there is none.
pub(super) fn time(ns: Option<u64>) -> String {
    let units = ["ns", "us", "ms", "s"];
    ns.map_or_else(|| "-".to_owned(), |ns| scaled(ns, 1000, &units, " "))
}

/// Formats a value in the largest unit in which it is at least 1.
fn scaled(value: u64, base: u32, units: &[&str], gap: &str) -> String {
    let mut scaled = value as f64;
    let mut at = 0;
    while scaled >= f64::from(base) && at + 1 < units.len() {
        scaled /= f64::from(base);
        at += 1;
    }
    let digits = match scaled {
        _ if at == 0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{gap}{}", units[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(
            [0, 999, 1000, 12_345, 1_500_000].map(count),
            ["0", "999", "1.00k", "12.3k", "1.50M"]
        );
        assert_eq!(
            [0, 1023, 4096, 1 << 20].map(bytes),
            ["0 B", "1023 B", "4.00 KiB", "1.00 MiB"]
        );
        let times = [
            None,
            Some(850),
            Some(85_000),
            Some(1_240_000),
            Some(120_000_000_000),
        ];
        assert_eq!(
            times.map(time),
            ["-", "850 ns", "85.0 us", "1.24 ms", "120 s"]
        );
        assert_eq!(count(u64::MAX), "18446744T");
    }
}
