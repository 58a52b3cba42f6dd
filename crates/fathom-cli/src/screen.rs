//! `fathom run --live`: the figures of a run in the terminal.

pub(crate) use missing::Screen;

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
            let hint = "use `--serve 0`, which has the same figures for a browser";
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
