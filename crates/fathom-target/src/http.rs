//! Requests and replies of the pages that are served here: of a run in progress, and the metrics
//! of a target.
//!
//! The parser is `httparse`, which hyper uses. There is no keep-alive and no body of a request.

mod reply;
mod request;

pub use reply::Reply;
pub use request::{Hosts, REQUEST_BYTES_MAX, Refusal, Request, is_whole};
