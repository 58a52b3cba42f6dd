//! What a modelled device is to the queue in front of it.

pub use fathom_block::Command;
use fathom_core::Tick;

/// A device that has been given commands and completes each of them once.
///
/// Time is told to it and never goes back. Between two calls nothing happens but what
/// [`Device::next`] has announced.
pub trait Device: std::fmt::Debug {
    /// Takes a command. Its tag is not that of another command in flight.
    fn start(&mut self, command: &Command, now: Tick);

    /// When it has something to do next: a command completes, or some inner step of the model is
    /// due. `None` if nothing will happen before another command comes.
    fn next(&self) -> Option<Tick>;

    /// A command that has completed by `now`, in the order in which they did; `None` if there is no
    /// further one. To be asked until then.
    fn completed(&mut self, now: Tick) -> Option<Finished>;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn start(&mut self, command: &Command, now: Tick) {
        (**self).start(command, now);
    }

    fn next(&self) -> Option<Tick> {
        (**self).next()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        (**self).completed(now)
    }
}

/// A command that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The command's tag, free for another one.
    pub tag: u32,
    /// When: at most the `now` it was asked for with.
    pub at: Tick,
    /// Bytes moved, or a negated errno.
    pub result: i32,
}
