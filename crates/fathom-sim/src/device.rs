//! Interface between a modelled device and the queue in front of it.

pub use fathom_block::Command;
use fathom_core::Tick;

/// Modelled device, which completes each command exactly once.
///
/// The caller passes the time, which never goes back, and must not pass over the time that
/// [`Device::next`] returns: a device does nothing at other times. A device may take commands
/// beyond its own queue depth and hold them; limiting them is the task of the queue in front.
pub trait Device: std::fmt::Debug {
    /// Accepts a command. Its tag differs from those of all commands in flight.
    fn start(&mut self, command: &Command, now: Tick);

    /// Returns the time of the next event: a completion, or an internal step of the model. `None`
    /// if nothing happens before the next command.
    fn next(&self) -> Option<Tick>;

    /// Returns the next command that has completed by `now`, in order of completion. Call it until
    /// it returns `None`.
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

/// Completion of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Tag of the command, free for reuse.
    pub tag: u32,
    /// Time of completion, at most the caller's `now`.
    pub at: Tick,
    /// Bytes moved, or a negated errno.
    pub result: i32,
}
