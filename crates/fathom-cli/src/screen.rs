//! `fathom run --live`: the figures of a run in the terminal.

#[cfg(feature = "live")]
mod draw;
#[cfg(feature = "live")]
mod graphs;
#[cfg(feature = "live")]
mod keys;
#[cfg(feature = "live")]
mod shown;
#[cfg(feature = "live")]
mod units;

#[cfg(not(feature = "live"))]
pub(crate) use missing::Screen;
#[cfg(feature = "live")]
pub(crate) use shown::Screen;

#[cfg(not(feature = "live"))]
mod missing {
    use std::sync::Arc;

    use anyhow::Result;

    use crate::failure::with_hint;
    use crate::live::Hub;

    /// No view: this program was built without it.
    pub(crate) enum Screen {}

    impl Screen {
        pub(crate) fn open(_hub: &Arc<Hub>) -> Result<Self> {
            let why = "--live: this program was built without it";
            let hint = "build it with the feature `live`, or use `--serve 0`, which has the same \
                        figures for a browser";
            Err(with_hint(why, Some(hint)))
        }

        pub(crate) fn show(&mut self) {
            match *self {}
        }

        pub(crate) fn leave(self) {
            match self {}
        }
    }
}
