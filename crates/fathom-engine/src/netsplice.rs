//! `netsplice`: as `net` over a stream, with data passed through a pipe by `splice(2)`.

use fathom_core::{EngineError, EngineInfo};

use crate::EngineConfig;
use crate::net::{self, Net};

/// Facts about `netsplice`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    name: "netsplice",
    help: "as net, by splice(2) through a pipe; TCP and Unix sockets",
    ..net::FACTS
};

/// Starts the engine.
pub(crate) fn start(config: &EngineConfig) -> Result<Net, EngineError> {
    Net::start(config, &INFO, true)
}
