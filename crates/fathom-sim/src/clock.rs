//! The clock of a simulation.

use std::cell::Cell;
use std::rc::Rc;

use fathom_core::Tick;

/// A clock that stands still until the driver moves it; clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock(Rc<Cell<Tick>>);

impl VirtualClock {
    /// A clock that shows zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.0.get()
    }

    /// Moves the clock forward to `to`.
    ///
    /// # Panics
    /// If `to` is in the past: an event was lost, and no result after it could be trusted.
    pub(crate) fn advance(&self, to: Tick) {
        assert!(to >= self.0.get(), "virtual time ran backwards");
        self.0.set(to);
    }
}
