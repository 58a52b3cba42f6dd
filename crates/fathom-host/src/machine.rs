//! Description of the host for the record.

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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
