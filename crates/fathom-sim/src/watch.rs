//! What goes on around the workers of a simulation: who starts and ends with whom, who looks at
//! them meanwhile, who wants them to stop.

use fathom_core::Tick;
use fathom_workload::Worker;

/// Somebody who follows a simulation. What it looks at is not changed by its looking.
pub trait Watch {
    /// A worker has ended: what follows from it.
    fn ended(&mut self, number: usize, worker: &Worker) -> Orders;

    /// Whether all workers are to stop, as after an interrupt: those that wait for their start
    /// never do. Asked now and then in the world's time, a thousand times a second or more.
    fn stops(&mut self) -> bool {
        false
    }

    /// When it wants to look at the workers next; a moment that has passed stands for now.
    fn next_look(&self) -> Tick {
        Tick::MAX
    }

    /// Looks at the workers, in the order they were added. It is `now`, and nothing of what
    /// happens at this moment has happened yet.
    fn look(&mut self, now: Tick, workers: &mut dyn Iterator<Item = &Worker>) {
        let _nobody = (now, workers);
    }
}

/// What is to happen when a worker has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// These workers are called for the first time.
    pub start: Vec<usize>,
    /// These are told to stop.
    pub stop: Vec<usize>,
}

/// Nothing follows, and nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nobody;

impl Watch for Nobody {
    fn ended(&mut self, _number: usize, _worker: &Worker) -> Orders {
        Orders::default()
    }
}
