//! What others want to know of a worker's end.

use crate::worker::Worker;

impl Worker {
    /// Whether an error has ended it.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.recorder.has_failed()
    }
}
