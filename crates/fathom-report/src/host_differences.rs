//! Facts that set slow and fast hosts apart from the others of a run.

use std::collections::BTreeMap;

use fathom_record::{HostRecord, Machine, ProcessorsRecord, StorageRecord};

/// Formats how the machines of marked hosts differ from most others, a line a host; empty if no
/// host is marked.
pub(crate) fn differences(hosts: &[HostRecord]) -> String {
    let facts: Vec<Vec<Fact>> = hosts.iter().map(facts).collect();
    let usual = usual(&facts);
    let marked = hosts.iter().zip(&facts).filter_map(|(host, facts)| {
        let mut marks = host.results.iter().map(|result| result.mark.as_deref());
        let mark = marks.find_map(|mark| mark)?;
        host.machine.is_some().then_some((host, mark, facts))
    });
    let marked: Vec<_> = marked.collect();
    let lines = marked.iter().take(LINES_MAX).map(|(host, mark, facts)| {
        let odd = facts.iter().filter_map(|fact| {
            let most = usual.get(&fact.kind)?;
            (fact.value != **most).then(|| format!("{} {} (most: {most})", fact.label, fact.value))
        });
        let odd: Vec<String> = odd.collect();
        let what = match odd.as_slice() {
            [] => "nothing recorded about its machine differs".to_owned(),
            odd => odd.join(", "),
        };
        format!("{mark}: rank {} ({}): {what}\n", host.rank, host.name)
    });
    let mut out: String = lines.collect();
    if marked.len() > LINES_MAX {
        out += &format!("{} more marked hosts in JSON\n", marked.len() - LINES_MAX);
    }
    out
}

/// Fact about a host.
struct Fact {
    /// Facts of one kind are compared. Disks are counted: hosts name them differently.
    kind: (&'static str, usize),
    label: String,
    value: String,
}

fn facts(host: &HostRecord) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(machine) = &host.machine {
        facts.extend(of_machine(machine));
        let storage = machine.storage.iter().enumerate();
        facts.extend(storage.flat_map(|(at, storage)| of_storage(at, storage)));
    }
    facts.extend(host.processors.as_ref().map(stolen));
    let is_cached = host
        .validity
        .iter()
        .any(|validity| validity.check == "page_cache" && !validity.ok);
    facts.push(fact(
        "page cache",
        if is_cached { "in use" } else { "not seen" },
    ));
    facts
}

fn of_machine(machine: &Machine) -> [Fact; 5] {
    let gib = machine.memory_bytes.saturating_add(GIB / 2) / GIB;
    [
        fact("kernel", &machine.kernel),
        fact("processor", &machine.cpu),
        fact("processors", &machine.cpus_online.to_string()),
        fact("memory", &format!("{gib} GiB")),
        fact("governor", &machine.governor),
    ]
}

fn of_storage(at: usize, storage: &StorageRecord) -> [Fact; 4] {
    let device = &storage.device;
    let of = |kind, value: String| Fact {
        kind: (kind, at),
        label: format!("{kind} of {device}"),
        value,
    };
    [
        of("file system", storage.filesystem.clone()),
        of("scheduler", storage.scheduler.clone()),
        of("nr_requests", storage.nr_requests.to_string()),
        of("rotating media", storage.rotational.to_string()),
    ]
}

/// Returns the share of time that the hypervisor took, in steps that are worth a line.
fn stolen(processors: &ProcessorsRecord) -> Fact {
    let whole = processors.wall_us.saturating_mul(processors.cpus).max(1);
    let percent = processors.stolen_us.saturating_mul(100) / whole;
    let share = match percent {
        0 => "under 1 %".to_owned(),
        percent => format!("{percent} %"),
    };
    fact("stolen time", &share)
}

fn fact(kind: &'static str, value: &str) -> Fact {
    Fact {
        kind: (kind, 0),
        label: kind.to_owned(),
        value: value.to_owned(),
    }
}

/// Returns the value of each kind that more than half of the hosts have.
fn usual(facts: &[Vec<Fact>]) -> BTreeMap<(&'static str, usize), &str> {
    let mut counts: BTreeMap<_, BTreeMap<&str, usize>> = BTreeMap::new();
    for fact in facts.iter().flatten() {
        let of_kind = counts.entry(fact.kind).or_default();
        *of_kind.entry(fact.value.as_str()).or_default() += 1;
    }
    let most = counts.into_iter().filter_map(|(kind, counts)| {
        let (value, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (count * 2 > facts.len()).then_some((kind, value))
    });
    most.collect()
}

/// Most lines about single hosts.
const LINES_MAX: usize = 10;
const GIB: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use fathom_record::HostResult;

    use super::*;

    fn host(rank: u32, kernel: &str, scheduler: &str) -> HostRecord {
        HostRecord {
            name: format!("n{rank}"),
            rank,
            machine: Some(Machine {
                kernel: kernel.to_owned(),
                storage: vec![StorageRecord {
                    device: format!("vd{rank}"),
                    scheduler: scheduler.to_owned(),
                    ..StorageRecord::default()
                }],
                ..Machine::default()
            }),
            processors: Some(ProcessorsRecord {
                cpus: 2,
                wall_us: 1_000_000,
                ..ProcessorsRecord::default()
            }),
            results: vec![HostResult::default()],
            ..HostRecord::default()
        }
    }

    #[test]
    fn marked_hosts_differ_from_most_others() {
        let mut hosts: Vec<HostRecord> = (0..5).map(|rank| host(rank, "6.18", "none")).collect();
        assert_eq!(differences(&hosts), "");
        hosts[3] = host(3, "6.1", "bfq");
        if let Some(processors) = &mut hosts[3].processors {
            processors.stolen_us = 240_000;
        }
        // That it differs is of no interest while it is as fast as the others.
        hosts[4] = host(4, "5.10", "none");
        assert_eq!(differences(&hosts), "");
        hosts[3].results[0].mark = Some("slow".to_owned());
        let want = "slow: rank 3 (n3): kernel 6.1 (most: 6.18), scheduler of vd3 bfq (most: none), \
                    stolen time 12 % (most: under 1 %)\n";
        assert_eq!(differences(&hosts), want);
        hosts[0].results[0].mark = Some("fast".to_owned());
        let nothing = "fast: rank 0 (n0): nothing recorded about its machine differs\n";
        assert_eq!(differences(&hosts), format!("{nothing}{want}"));
    }

    #[test]
    fn without_a_majority_nothing_is_odd() {
        let mut hosts = [host(0, "a", "none"), host(1, "b", "none")];
        hosts[0].results[0].mark = Some("slow".to_owned());
        let want = "slow: rank 0 (n0): nothing recorded about its machine differs\n";
        assert_eq!(differences(&hosts), want);
    }
}
