//! Network Block Device, client side, without sockets: bytes in, events out.
//!
//! ```text
//! URI ─► Handshake ─► Export ─► RequestQueue ─► requests ─► socket
//!                                    ▲                         │
//!                       events ◄─────┴──────── replies ◄───────┘
//! ```
//!
//! Numbers and rules are those of the NBD protocol (`doc/proto.md` of the NBD project) and of its
//! URI specification. All integers on the wire are big-endian.
#![forbid(unsafe_code)]

mod address;
mod coverage;
mod export;
mod handshake;
mod queue;
mod replies;
mod request;
mod send_queue;
mod server_error;
mod text;
mod wire;

// Public items, listed once.
pub use address::{Endpoint, ExportAddress, UriError};
pub use export::{BlockSizes, Export, Features, ReplyForm};
pub use handshake::{Handshake, HandshakeError};
pub use queue::{Event, RequestQueue};
pub use replies::ReplyError;
pub use request::{Command, Request};
pub use send_queue::{Piece, SendQueue};
pub use server_error::ServerError;
