//! `zonemode=zbd`: jobs on the zones of a device.
//!
//! ```text
//!  pattern ─► target ─► ZoneSet::admit ─┬─► target at the write pointer, the zone is held
//!                 ▲                     ├─► reset, finish or report a zone, then ask again
//!                 └── wait, or skip ◄───┘
//! ```
//!
//! All jobs of a run on one device share its [`ZoneSet`]. The rules are in `table.rs`, `writes.rs`,
//! `reads.rs` and `trims.rs`, for several writes in flight in `area.rs` and `appends.rs`, and for
//! replays in `recorded.rs`: they know neither engine nor clock. `worker.rs` carries their answers
//! out.

mod access;
mod answer;
mod appends;
mod area;
mod reads;
mod recorded;
mod set;
mod shared_writes;
mod table;
#[cfg(test)]
mod tests;
mod trims;
mod worker;
mod writes;

pub use access::{ResetRule, ZoneAccess};
pub use set::ZoneSet;
pub(crate) use worker::Zoned;
