//! This process among the ranks of a run, outside of its jobs: it waits, answers and leaves.

use std::cell::RefCell;
use std::thread;

use anyhow::Result;
use fathom_core::Nanos;
use fathom_hosts::{Event, Ranks, RanksOptions};
use fathom_mpi::MpiLink;
use fathom_sys::clock::{self, Clock};
use fathom_sys::exit;

use crate::ranks::exchange::Offer;

/// This rank, with the texts that others may ask it for.
pub(crate) struct Crew {
    /// State of the run; the run borrows it too.
    pub(crate) ranks: RefCell<Ranks<MpiLink>>,
    /// Texts for others.
    pub(crate) offer: Offer,
    /// Clock of the rank.
    pub(crate) clock: Clock,
}

impl Crew {
    /// Joins the run.
    pub(crate) fn join(
        link: MpiLink,
        stop_together: bool,
        tell: Box<dyn FnMut(&Event)>,
    ) -> Result<Self> {
        let clock = Clock::calibrated();
        let options = RanksOptions {
            wall_origin_ns: clock::wall_ns().saturating_sub(clock.now().get()),
            clock: Box::new(move || clock.now()),
            host_ranks: host_ranks(),
            stop_together,
            tell,
        };
        Ok(Self {
            ranks: RefCell::new(Ranks::new(link, options)?),
            offer: Offer::default(),
            clock,
        })
    }

    /// Waits until `is_over`, asleep most of the time: spinning would slow ranks down that share
    /// the processors.
    pub(crate) fn wait(&self, is_over: &mut dyn FnMut(&mut Ranks<MpiLink>) -> bool) -> Result<()> {
        let mut ranks = self.ranks.borrow_mut();
        let mut lively_until = self.clock.now();
        while !is_over(&mut ranks) {
            ranks.poll(true);
            let now = self.clock.now();
            if self.offer.serve(ranks.link_mut(), &mut |_, _| {})? {
                lively_until = now + LIVELY;
            }
            let nap = match now < lively_until {
                true => LIVELY_NAP,
                false => NAP_MAX,
            };
            clock::sleep(ranks.patience().min(nap));
        }
        Ok(())
    }

    /// Leaves, with all other ranks unless one of them is lost.
    pub(crate) fn leave(self, code: u8, some_lost: bool) {
        if some_lost {
            return;
        }
        // A rank may be lost just now. Launchers end those that are left once one has ended without
        // this call, so it is tried first.
        let watch = move || {
            clock::sleep(FINISH_PATIENCE);
            exit::now(code);
        };
        // At a limit of threads there is none: only a rank that is lost now would be waited for.
        let _watch = thread::Builder::new().spawn(watch);
        self.ranks.into_inner().link_mut().finish();
    }
}

/// Returns the number of ranks on this host, as launchers tell it: Open MPI, MPICH and Intel MPI,
/// Slurm.
fn host_ranks() -> u32 {
    let names = [
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS",
        "SLURM_TASKS_PER_NODE",
    ];
    let told = names.iter().find_map(|name| std::env::var(name).ok());
    // Slurm's is a list, such as `2(x3),1`: the first is that of most hosts.
    let digits = told.map(|text| {
        let end = text.find(|letter: char| !letter.is_ascii_digit());
        text[..end.unwrap_or(text.len())].parse().ok()
    });
    digits.flatten().unwrap_or(1)
}

/// Longest nap: a request for a record is answered after it at the latest.
const NAP_MAX: Nanos = Nanos::from_millis(5);
/// Time after a request in which the next one is expected.
const LIVELY: Nanos = Nanos::from_millis(5);
const LIVELY_NAP: Nanos = Nanos::from_micros(50);
/// Time that all ranks have to leave MPI together.
const FINISH_PATIENCE: Nanos = Nanos::from_secs(10);
