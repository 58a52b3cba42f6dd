//! The line by which a program gets the engine.

use fathom_engine::Registration;

use crate::options::INFO;

/// The engine. A build without the feature `http` has its options, for parser and documents, and
/// refuses to start it.
pub const HTTP: Registration = Registration::new(&INFO, start);

#[cfg(feature = "http")]
use crate::engine::start;

#[cfg(not(feature = "http"))]
fn start(
    _config: &fathom_engine::EngineConfig,
) -> Result<fathom_engine::AnyEngine, fathom_core::EngineError> {
    Err(fathom_core::EngineError {
        step: fathom_core::EngineStep::Option("ioengine"),
        target: "this build has no engine `http`".into(),
        errno: None,
        hint: "build it with `cargo build --release --features http`".into(),
    })
}
