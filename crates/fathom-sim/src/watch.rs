//! Observer of a simulation: job dependencies, sampling of workers, interruption.

use fathom_core::Tick;
use fathom_workload::Worker;

/// Observer of a simulation. Observing does not change the results.
pub trait Watch {
    /// Handles the end of a worker and returns the orders that follow from it.
    fn ended(&mut self, number: usize, worker: &Worker) -> Orders;

    /// Returns whether all workers are to stop, as after an interrupt; those not started never
    /// start. Called about a thousand times per second of real time or more often.
    fn stops(&mut self) -> bool {
        false
    }

    /// Returns the time of the next sample; a past time stands for now.
    fn next_sample(&self) -> Tick {
        Tick::MAX
    }

    /// Samples the workers, in order of addition, before the events of time `now`.
    fn sample(&mut self, now: Tick, workers: &mut dyn Iterator<Item = &Worker>) {
        let _nobody = (now, workers);
    }
}

/// Orders that follow from the end of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Workers to start.
    pub start: Vec<usize>,
    /// Workers to stop.
    pub stop: Vec<usize>,
}

/// Observer that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unobserved;

impl Watch for Unobserved {
    fn ended(&mut self, _number: usize, _worker: &Worker) -> Orders {
        Orders::default()
    }
}
