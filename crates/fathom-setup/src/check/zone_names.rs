//! Zones that jobs change by commands and write through the block layer.

use std::ptr;

use fathom_core::Direction;
use fathom_host::probe;
use fathom_workload::ZoneSet;

use crate::plan_warning::{PlanWarning, PlanWarningKind};
use crate::translate::JobSetup;
use crate::translate::pattern::{uses, writes};

/// Returns a warning per job that writes zones through a block layer that keeps write pointers,
/// while another job changes them by commands.
pub fn by_two_names(setups: &[JobSetup]) -> Vec<PlanWarning> {
    match probe::block_layer_keeps_write_pointers() {
        true => written_two_ways(setups),
        false => Vec::new(),
    }
}

/// Returns a warning per job that writes zones through the block layer that another job changes by
/// commands, which the block layer does not see.
pub(crate) fn written_two_ways(setups: &[JobSetup]) -> Vec<PlanWarning> {
    let by_commands = |setup: &&JobSetup| setup.job.options.engine.manages_zones;
    let mut warnings: Vec<PlanWarning> = Vec::new();
    let writers = setups
        .iter()
        .filter(|setup| !by_commands(setup) && uses(&setup.job.options, Direction::Write));
    for setup in writers {
        let mut others = setups.iter().filter(by_commands).filter(|other| {
            let mut theirs = other.zone_sets();
            let is_ours = |set: &ZoneSet| setup.zone_sets().any(|own| ptr::eq(own, set));
            writes(&other.job.options) && theirs.any(is_ours)
        });
        // Clones would repeat it.
        let is_told = warnings.iter().any(|warning| warning.job == setup.name);
        if let Some(other) = others.next().filter(|_| !is_told) {
            warnings.push(PlanWarning {
                kind: PlanWarningKind::ZonesByTwoNames,
                job: setup.name.clone(),
                message: format!(
                    "its zones are changed by the commands of `{}`, too: since Linux 6.10, the \
                     block layer keeps write pointers of its own, which miss these, and fails \
                     writes with EIO",
                    other.name
                ),
                hint: format!("use `ioengine={}` in both", other.job.options.engine.name),
            });
        }
    }
    warnings
}
