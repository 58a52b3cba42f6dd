//! Target files: subsystems, namespaces and devices of an NVMe/TCP target, in TOML.

use std::path::Path;

use fathom_host::target_kind::TargetKind;
use fathom_target::{Host, Obstacle, TargetPlan};

use super::machine::words_of;
use crate::target::Verdict;

/// Decodes a target file and checks what every plan promises.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Ok(text) = std::str::from_utf8(input) else {
        return Ok(Verdict::Refused("not UTF-8".to_owned()));
    };
    let plan = match TargetPlan::parse("t.toml", text, &Invented) {
        Ok(plan) => plan,
        Err(error) if error.problems.is_empty() => {
            return Err("refused without a problem".to_owned());
        }
        Err(error) => {
            return Ok(Verdict::Refused(
                error.diagnostics().render("fathom", false),
            ));
        }
    };
    check(&plan)?;
    match plan.check_exposure() {
        Ok(()) => Ok(Verdict::Accepted),
        Err(error) => Ok(Verdict::Refused(error.to_string())),
    }
}

/// Checks the numbers on which the target relies without looking again.
fn check(plan: &TargetPlan) -> Result<(), String> {
    if plan.listen.is_empty() || plan.subsystems.is_empty() {
        return Err("a plan without an address or a subsystem".to_owned());
    }
    if !plan.buffers.bytes.is_power_of_two() || plan.buffers.count == Some(0) {
        return Err(format!("buffers: {:?}", plan.buffers));
    }
    let cpus = plan.cpus.len();
    let is_one_each = plan.threads.is_none_or(|threads| threads as usize == cpus);
    if cpus > 0 && !is_one_each {
        return Err(format!("{cpus} CPUs for {:?} threads", plan.threads));
    }
    for subsystem in &plan.subsystems {
        let namespaces = &subsystem.namespaces;
        let is_ascending = namespaces.is_sorted_by(|one, next| one.nsid < next.nsid);
        if namespaces.is_empty() || namespaces[0].nsid == 0 || !is_ascending {
            return Err(format!("namespaces of {}", subsystem.nqn));
        }
        for namespace in namespaces {
            let geometry = namespace.device.geometry();
            let is_whole = geometry.bytes > 0 && geometry.bytes % geometry.block_bytes as u64 == 0;
            if !is_whole || namespace.device.describe().is_empty() {
                return Err(format!("{}: {geometry:?}", namespace.device.describe()));
            }
        }
    }
    Ok(())
}

/// Keys and table heads of the examples.
pub(crate) fn words() -> Vec<String> {
    words_of(&EXAMPLES)
}

/// Host of a regular file, a block device and 16 GiB of memory; no input reaches the real one.
struct Invented;

impl Host for Invented {
    fn file(&self, path: &Path) -> Result<TargetKind, Obstacle> {
        match path.to_str() {
            Some("disk.img") => Ok(TargetKind::Regular(1 << 30)),
            Some("/dev/disk") => Ok(TargetKind::Block {
                bytes: 1 << 30,
                logical_block: 4096,
            }),
            Some("/dev/mounted") => Err(Obstacle {
                why: "/dev/mounted: in use".to_owned(),
                hint: "choose another".to_owned(),
            }),
            _ => Ok(TargetKind::Missing),
        }
    }

    fn memory_bytes(&self) -> u64 {
        16 << 30
    }
}

const EXAMPLES: [&str; 4] = [
    include_str!("../../../examples/targets/faulty.toml"),
    include_str!("../../../examples/targets/layered.toml"),
    include_str!("../../../examples/targets/many-devices.toml"),
    include_str!("../../../examples/targets/paced.toml"),
];
