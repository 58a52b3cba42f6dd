//! Change points in series that are known to have none, or one.

use anyhow::Result;
use fathom_stats::change_points;

use super::super::figure::Figure;
use super::super::series::step;
use super::{Measured, Row, Setting};

/// Flat series: each change found in them is a false alarm.
pub(super) const FLAT: Row = Row {
    name: "change-points-flat",
    what: "change points of 200 flat series of 100",
    measure: flat,
};

/// Series with a step.
pub(super) const STEP: Row = Row {
    name: "change-points-step",
    what: "change points of 100 series with a step of 5 % at 2 % noise",
    measure: stepped,
};

fn flat(_: &Setting) -> Result<Measured> {
    let alarms = (0..200).filter(|&seed| {
        let values = step(FLAT_SEED + seed, LENGTH, LENGTH, 100.0);
        !change_points(&values).is_empty()
    });
    let alarms = f64::from(u32::try_from(alarms.count())?);
    let figure = Figure::at_most("series with a false change", alarms, "of 200", 5.0);
    Ok(Measured::Figures(vec![figure]))
}

fn stepped(_: &Setting) -> Result<Measured> {
    let found = (0..100).filter(|&seed| {
        let values = step(STEP_SEED + seed, LENGTH, STEP_AT, 105.0);
        let points = change_points(&values);
        points.iter().any(|point| point.at.abs_diff(STEP_AT) <= 2)
    });
    let found = f64::from(u32::try_from(found.count())?);
    let figure = Figure::at_least("found within 2 points", found, "of 100", 95.0);
    Ok(Measured::Figures(vec![figure]))
}

const LENGTH: usize = 100;
const STEP_AT: usize = 60;

/// Other seeds than those of the tests of `fathom-stats`.
const FLAT_SEED: u64 = 100_000;
const STEP_SEED: u64 = 200_000;
