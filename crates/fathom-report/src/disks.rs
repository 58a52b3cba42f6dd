//! Disk statistics in each of fio's formats.
//!
//! A stacked device (`md0`, `dm-0`) has, beside its own numbers, the means over its underlying
//! devices and their largest utilisation.

use fathom_record::DiskRecord;

use crate::json::{Object, Value};

/// Returns an element of `disk_util`.
pub(crate) fn object(disk: &DiskRecord, all: &[DiskRecord]) -> Object {
    let mut out = Object::new();
    out.set("name", disk.name.as_str());
    set(&mut out, "", "write_merges", disk);
    if let Some(parts) = parts(disk, all) {
        // fio's own spelling.
        set(&mut out, "aggr_", "write_merge", &parts);
    }
    out
}

fn set(out: &mut Object, prefix: &str, write_merges: &str, disk: &DiskRecord) {
    let counts: [(&str, u64); 9] = [
        ("read_ios", disk.read_ios),
        ("write_ios", disk.write_ios),
        ("read_sectors", disk.read_sectors),
        ("write_sectors", disk.write_sectors),
        ("read_merges", disk.read_merges),
        (write_merges, disk.write_merges),
        ("read_ticks", disk.read_ticks_ms),
        ("write_ticks", disk.write_ticks_ms),
        ("in_queue", disk.in_queue_ms),
    ];
    for (key, count) in counts {
        out.set(format!("{prefix}{key}"), Value::Integer(count));
    }
    out.set(format!("{prefix}util"), disk.util_percent);
}

/// Formats the device's line of the text report.
pub(crate) fn line(disk: &DiskRecord, all: &[DiskRecord]) -> String {
    let parts = parts(disk, all);
    let indent = if parts.is_some() { "    " } else { "  " };
    let own = numbers("", disk);
    let of_parts = parts.map(|parts| format!(", {}", numbers("aggr", &parts)));
    format!(
        "{indent}{}: {own}{}\n",
        disk.name,
        of_parts.unwrap_or_default()
    )
}

fn numbers(prefix: &str, disk: &DiskRecord) -> String {
    // fio's own spelling.
    let sectors = if prefix.is_empty() {
        "sectors"
    } else {
        "aggsectors"
    };
    format!(
        "{prefix}ios={}/{}, {sectors}={}/{}, {prefix}merge={}/{}, {prefix}ticks={}/{}, \
         {prefix}in_queue={}, {prefix}util={:.2}%",
        disk.read_ios,
        disk.write_ios,
        disk.read_sectors,
        disk.write_sectors,
        disk.read_merges,
        disk.write_merges,
        disk.read_ticks_ms,
        disk.write_ticks_ms,
        disk.in_queue_ms,
        disk.util_percent,
    )
}

/// Returns the device's fields of the terse report.
pub(crate) fn fields(disk: &DiskRecord, all: &[DiskRecord]) -> Vec<String> {
    let mut fields = vec![disk.name.clone()];
    fields.extend(terse_numbers(disk));
    if let Some(parts) = parts(disk, all) {
        fields.push("slaves".to_owned());
        fields.extend(terse_numbers(&parts));
    }
    fields
}

fn terse_numbers(disk: &DiskRecord) -> impl Iterator<Item = String> {
    let counts = [
        disk.read_ios,
        disk.write_ios,
        disk.read_merges,
        disk.write_merges,
        disk.read_ticks_ms,
        disk.write_ticks_ms,
        disk.in_queue_ms,
    ];
    let util = format!("{:.2}%", disk.util_percent);
    counts
        .into_iter()
        .map(|count| count.to_string())
        .chain([util])
}

/// Returns the means over a stacked device's parts, with their largest utilisation.
fn parts(disk: &DiskRecord, all: &[DiskRecord]) -> Option<DiskRecord> {
    let named = |part: &&DiskRecord| disk.parts.contains(&part.name);
    let parts: Vec<&DiskRecord> = all.iter().filter(named).collect();
    let mean = |count: fn(&DiskRecord) -> u64| {
        // In 128 bits the sum of any number of counters fits.
        let sum: u128 = parts.iter().map(|part| u128::from(count(part))).sum();
        sum.checked_div(parts.len() as u128)
            .map_or(0, |mean| u64::try_from(mean).unwrap_or(u64::MAX))
    };
    let used = parts.iter().map(|part| part.util_percent);
    Some(DiskRecord {
        host: disk.host,
        name: String::new(),
        parts: Vec::new(),
        read_ios: mean(|part| part.read_ios),
        write_ios: mean(|part| part.write_ios),
        read_sectors: mean(|part| part.read_sectors),
        write_sectors: mean(|part| part.write_sectors),
        read_merges: mean(|part| part.read_merges),
        write_merges: mean(|part| part.write_merges),
        read_ticks_ms: mean(|part| part.read_ticks_ms),
        write_ticks_ms: mean(|part| part.write_ticks_ms),
        in_queue_ms: mean(|part| part.in_queue_ms),
        util_percent: used.reduce(f64::max)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of a striped array, from a published output of fio 3.28.
    fn stack() -> Vec<DiskRecord> {
        let disk = |name: &str, read_ios, read_ticks_ms, util_percent| DiskRecord {
            name: name.to_owned(),
            read_ios,
            read_ticks_ms,
            in_queue_ms: read_ticks_ms,
            util_percent,
            ..DiskRecord::default()
        };
        let parts = vec!["nvme2n1".to_owned(), "nvme1n1".to_owned()];
        vec![
            DiskRecord {
                parts,
                ..disk("md0", 836_698, 51_308, 99.91)
            },
            disk("nvme2n1", 419_092, 26_124, 99.88),
            disk("nvme1n1", 419_028, 26_121, 99.5),
        ]
    }

    #[test]
    fn a_line_has_the_mean_of_the_parts() {
        let stack = stack();
        let md0 = "    md0: ios=836698/0, sectors=0/0, merge=0/0, ticks=51308/0, \
                   in_queue=51308, util=99.91%, aggrios=419060/0, aggsectors=0/0, \
                   aggrmerge=0/0, aggrticks=26122/0, aggrin_queue=26122, aggrutil=99.88%\n";
        assert_eq!(line(&stack[0], &stack), md0);
        let own = "  nvme2n1: ios=419092/0, sectors=0/0, merge=0/0, ticks=26124/0, \
                   in_queue=26124, util=99.88%\n";
        assert_eq!(line(&stack[1], &stack), own);
    }

    #[test]
    fn keys_and_fields_of_the_parts_follow_the_devices_own() {
        let stack = stack();
        let json = object(&stack[0], &stack).into_document();
        let keys: Vec<&str> = json
            .lines()
            .filter_map(|line| line.split('"').nth(1))
            .collect();
        assert_eq!(keys[10..13], ["util", "aggr_read_ios", "aggr_write_ios"]);
        assert_eq!(
            keys[16..],
            [
                "aggr_write_merge",
                "aggr_read_ticks",
                "aggr_write_ticks",
                "aggr_in_queue",
                "aggr_util"
            ]
        );
        let fields = fields(&stack[0], &stack);
        assert_eq!(fields[8..11], ["99.91%", "slaves", "419060"]);
        assert_eq!(fields.len(), 18);
        assert_eq!(
            object(&stack[1], &stack).into_document().lines().count(),
            13
        );
    }
}
