//! Runs of a lab in the history, read without continuing it.

use fathom_record::Record;

use super::{BOOT, MEASURE, StoredLab, text};
use crate::lab::{EarlierRun, JournalError, RunDone};
use crate::lab_plan::LabPlan;
use crate::order::Slot;
use crate::store::{History, LabRun, RunState};

impl StoredLab<'_> {
    /// Returns the runs of the last lab of this text, without changing anything; none if it never
    /// ran. The first ones have records, which tell how long they took.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn runs_before(history: &History, plan: &LabPlan) -> Result<Vec<EarlierRun>, JournalError> {
        let Some(lab) = history.lab_of(&plan.name, &text(plan))? else {
            return Ok(Vec::new());
        };
        let mut earlier = Vec::new();
        for run in history.runs_of(lab)? {
            let mut variants = plan.variants.iter();
            let variant = variants.position(|one| one.name == run.planned.variant);
            let is_done = run.state == RunState::Done && run.planned.role == MEASURE;
            if let Some(variant) = variant.filter(|_| is_done) {
                let has_record = earlier.len() < RECORDS_MAX;
                earlier.push(earlier_run(history, &run, variant, has_record)?);
            }
        }
        Ok(earlier)
    }
}

/// Reads a run of a complete repeat.
pub(super) fn earlier_run(
    history: &History,
    run: &LabRun,
    variant: usize,
    has_record: bool,
) -> Result<EarlierRun, JournalError> {
    let record = match has_record {
        true => history.record_of(run.id)?,
        false => None,
    };
    let record = record.map(|text| Record::from_json(&text)).transpose();
    Ok(EarlierRun {
        slot: Slot {
            cell: run.planned.cell as usize,
            repeat: run.planned.repeat,
            variant,
            place: run.planned.place as usize,
            seed: run.planned.seed,
            load: None,
        },
        done: RunDone {
            record: record.map_err(|error| JournalError(error.to_string()))?,
            program: None,
            measures: history.measures_of_run(run.id)?,
            wall_ms: run.wall_ms.unwrap_or_default(),
            disturbance: run.note.clone(),
            boot: history.tag_of(run.id, BOOT)?,
        },
    })
}

/// Records that are read: each takes a millisecond.
const RECORDS_MAX: usize = 100;
