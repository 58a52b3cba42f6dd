//! The engines of this program.

use fathom_engine::Registry;

/// The engines that a job can name: the built-in ones, and those of other crates, each by a line
/// of its own (`.with(their_crate::ENGINE)`).
pub(crate) fn registry() -> Registry {
    Registry::built_in()
}
