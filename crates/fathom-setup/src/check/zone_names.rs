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
    let (by_commands, others): (Vec<_>, Vec<_>) = setups.iter().partition(by_commands);
    let changers: Vec<_> = by_commands
        .into_iter()
        .filter(|setup| writes(&setup.job.options))
        .collect();
    let mut warnings: Vec<PlanWarning> = Vec::new();
    for setup in others {
        let is_ours = |set: &ZoneSet| setup.zone_sets().any(|own| ptr::eq(own, set));
        let mut changers = changers.iter();
        let Some(other) = changers.find(|other| other.zone_sets().any(is_ours)) else {
            continue;
        };
        // Clones would repeat it.
        let is_told = warnings.iter().any(|warning| warning.job == setup.name);
        if uses(&setup.job.options, Direction::Write) && !is_told {
            warnings.push(warning(setup, other));
        }
    }
    warnings
}

fn warning(setup: &JobSetup, other: &JobSetup) -> PlanWarning {
    PlanWarning {
        kind: PlanWarningKind::ZonesByTwoNames,
        job: setup.name.clone(),
        message: format!(
            "`{}` changes its zones by commands, too: since Linux 6.10, the block layer keeps \
             write pointers of its own, does not see commands, and fails writes with EIO",
            other.name
        ),
        hint: format!("use `ioengine={}` in both", other.job.options.engine.name),
    }
}
