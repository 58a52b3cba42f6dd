//! `cargo xtask bench nvme`: the target and the initiator beside a bare loop that exchanges the
//! same bytes.
//!
//! ```text
//! core 0: bare-nvme serve (the floor)  or  fathom target
//!            │ loopback TCP
//! core 1: bare-nvme load               or  fathom run --ioengine=nvme_tcp
//! ```
//!
//! Processes are restarted for every run, so that no run inherits the state of another, and a
//! polling server is never there beside the one that is measured.

mod idle;
mod pacing;
mod rows;
mod server;
mod trial;

pub(crate) use pacing::Choice;
pub(crate) use rows::ROWS;
pub(crate) use server::Core;
pub(crate) use trial::Nvme;

use anyhow::Result;

use super::pairs::{Bench, Pair, in_turn};
use super::row::Row;

/// Runs one pair of a row and returns it for each check.
pub(crate) fn sample(
    bench: &mut Bench,
    row: &Row,
    nvme: Nvme,
    fathom_first: bool,
) -> Result<Vec<Pair>> {
    let (other, fathom) = match nvme {
        Nvme::Beside {
            exchange,
            other,
            fathom,
        } => in_turn(
            fathom_first,
            || trial::run(bench, exchange, other),
            || trial::run(bench, exchange, fathom),
        )?,
        Nvme::BestFixed {
            exchange,
            settings,
            paced,
        } => {
            let best = pacing::best_fixed(bench, row.name, exchange, settings)?;
            in_turn(
                fathom_first,
                || trial::run(bench, exchange, best),
                || trial::run(bench, exchange, paced),
            )?
        }
        Nvme::Idle { connections } => return idle::connections(bench, connections),
        Nvme::Join => return idle::join(bench),
    };
    let values = row.checks.iter().map(|check| Pair {
        other: other.value(check.measure),
        fathom: fathom.value(check.measure),
    });
    Ok(values.collect())
}
