//! Description of the host for the record.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fathom_record::{Machine, StorageRecord};
use fathom_sys::clock::Clock;
use fathom_sys::system;

/// Describes this host: kernel, processors, memory, the run's clock and the storage of its files.
#[must_use]
pub fn machine(
    clock: &Clock,
    storage: Vec<StorageRecord>,
    engine_features: Vec<String>,
) -> Machine {
    let kernel = system::kernel();
    let read_ns = u32::try_from(clock.read_cost_ns()).unwrap_or(u32::MAX);
    Machine {
        kernel: format!("{} {}", kernel.release, kernel.version)
            .trim()
            .to_owned(),
        cpu: system::cpu_model(),
        cpus_online: system::cpus_online(),
        memory_bytes: system::memory_bytes(),
        clock_source: clock.source().to_owned(),
        clock_hz: clock.hz(),
        clock_read_ns: f64::from(read_ns),
        storage,
        engine_features,
        governor: governor(Path::new("/sys/devices/system/cpu")),
    }
}

/// Returns the frequency governors under `cpus`, each once and sorted: usually a single name.
fn governor(cpus: &Path) -> String {
    let folders = fs::read_dir(cpus).into_iter().flatten().flatten();
    let names = folders.filter_map(|folder| {
        let file = folder.path().join("cpufreq/scaling_governor");
        Some(fs::read_to_string(file).ok()?.trim().to_owned())
    });
    let names: BTreeSet<String> = names.collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_governor_is_named_once() {
        let folder = std::env::temp_dir().join(format!("fathom-governor-{}", std::process::id()));
        for (cpu, name) in [
            ("cpu0", "schedutil\n"),
            ("cpu1", "performance\n"),
            ("cpu2", "schedutil\n"),
        ] {
            let cpufreq = folder.join(cpu).join("cpufreq");
            fs::create_dir_all(&cpufreq).unwrap();
            fs::write(cpufreq.join("scaling_governor"), name).unwrap();
        }
        let found = governor(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, "performance, schedutil");
        assert_eq!(governor(&folder), "");
    }

    #[test]
    fn this_machine_is_described() {
        let clock = Clock::monotonic();
        let machine = machine(
            &clock,
            vec![StorageRecord::default()],
            vec!["null: none".into()],
        );
        assert!(!machine.kernel.is_empty());
        assert!(machine.cpus_online >= 1);
        assert!(machine.memory_bytes > 0);
        assert_eq!(machine.clock_source, clock.source());
        assert_eq!(machine.storage.len(), 1);
        assert_eq!(machine.engine_features, ["null: none"]);
    }
}
