//! The engines of this program.

use fathom_engine::Registry;
use fathom_http::HTTP;
use fathom_net::{NBD, NVME_TCP};

/// Returns the engines that a job can name: the built-in ones, and those of other crates, each by a
/// line of its own.
pub(crate) fn registry() -> Registry {
    Registry::built_in().with(NVME_TCP).with(NBD).with(HTTP)
}
