//! Numbers that leave the program must carry their unit in their name.

use super::Finding;
use super::tree::{File, Tree};

/// Finds numeric fields of `fathom-record` that name a time or a size without its unit.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let records = tree
        .rust()
        .filter(|file| file.path.starts_with("crates/fathom-record/src/"));
    records.flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.code.lines().enumerate() {
        let Some((name, kind)) = field(line) else {
            continue;
        };
        if !kind
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| NUMBERS.contains(&word))
        {
            continue;
        }
        for quantity in QUANTITIES {
            let speaks = name.split('_').any(|word| quantity.words.contains(&word));
            let has_unit = name
                .split('_')
                .next_back()
                .is_some_and(|word| is_unit(quantity, word));
            if speaks && !has_unit && !ALLOWED.contains(&name) {
                let what = format!("field `{name}` is a {} without its unit", quantity.name);
                findings.push(Finding::new(&file.path, index + 1, what, quantity.why));
            }
        }
    }
    findings
}

/// Returns name and type of a `pub name: Type,` line.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, kind) = line.trim().strip_prefix("pub ")?.split_once(':')?;
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then_some((name, kind.trim()))
}

fn is_unit(quantity: &Quantity, word: &str) -> bool {
    quantity.units.contains(&word)
}

struct Quantity {
    name: &'static str,
    words: &'static [&'static str],
    units: &'static [&'static str],
    why: &'static str,
}

const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "time",
        words: &[
            "time",
            "times",
            "runtime",
            "elapsed",
            "duration",
            "start",
            "end",
            "wall",
            "user",
            "system",
            "ticks",
            "timestamp",
            "queue",
            "latency",
            "delay",
            "interval",
        ],
        units: &["ns", "us", "ms", "s"],
        why: "let it end in _ns, _us, _ms or _s",
    },
    Quantity {
        name: "size",
        words: &[
            "size",
            "sizes",
            "memory",
            "block",
            "length",
            "capacity",
            "bandwidth",
        ],
        units: &["bytes", "kib", "mib", "gib", "sectors"],
        why: "let it end in _bytes, _kib, _mib, _gib or _sectors",
    },
    Quantity {
        name: "share",
        words: &["percent", "util", "share", "ratio"],
        units: &["percent", "ratio"],
        why: "let it end in _percent (0–100) or _ratio (0–1)",
    },
];

const NUMBERS: [&str; 10] = [
    "u8", "u16", "u32", "u64", "usize", "i32", "i64", "u128", "f32", "f64",
];

/// Fields whose unit is determined elsewhere, each with its reason.
const ALLOWED: [&str; 1] = [
    // Pairs in bytes; named as the header line of the report names them.
    "block_sizes",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_field(field: &str, found: bool) {
        let file = File::new(
            "crates/fathom-record/src/a.rs",
            &format!("    pub {field},\n"),
        );
        assert_eq!(!check_file(&file).is_empty(), found, "{field}");
    }

    #[test]
    fn times_and_sizes_need_their_unit() {
        check_field("runtime_ms: u64", false);
        check_field("runtime: u64", true);
        check_field("memory_bytes: u64", false);
        check_field("memory: u64", true);
        check_field("util_percent: f64", false);
        check_field("util: f64", true);
        check_field("wall_time: Option<u64>", true);
    }

    #[test]
    fn counts_texts_and_structures_need_none() {
        check_field("ios: u64", false);
        check_field("time: String", false);
        check_field("lat: Latency", false);
    }
}
