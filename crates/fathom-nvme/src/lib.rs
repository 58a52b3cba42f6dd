//! NVMe, and NVMe over TCP without sockets: bytes and events in, bytes and events out.
//!
//! ```text
//! socket ─► Decoder ─► Event ─► state machine ─► Pdu ─► encode ─► socket
//! ```
//!
//! Offsets and values are those of the NVM Express Base Specification 2.0 and of the NVMe/TCP
//! Transport Specification 1.0. All integers on the wire are little-endian.
#![forbid(unsafe_code)]

mod block_format;
mod command;
mod completion;
mod controller;
mod decoder;
mod digest;
mod fabrics;
mod host_controller;
mod host_queue;
mod identify;
mod io_command;
mod log_pages;
mod pdu;
mod placement;
mod protection;
mod send_queue;
mod status_errno;
mod status_text;
mod subsystem;
mod target_queue;
mod text;
mod wire;
mod zones;

// Public items, listed once.
pub use block_format::BlockFormat;
pub use command::{Command, DataPointer, Opcode};
pub use completion::{Completion, Status};
pub use controller::{Answer, Controller, ControllerLimits};
pub use decoder::{Decoder, Event, Limits};
pub use digest::Digest;
pub use fabrics::{Connect, ConnectField, DISCOVERY_NQN, FabricsType, Property, PropertyAccess};
pub use host_controller::{
    AdminCommand, ControllerError, ControllerFacts, HostConfig, HostController,
};
pub use host_queue::{CommandData, HostEvent, HostQueue, HostQueueConfig, QueueError, Wanted};
pub use identify::{
    ABORTS, ASYNC_EVENT_REQUESTS, ControllerIdentity, ControllerKind, ERROR_ENTRIES,
    IDENTIFY_BYTES, NamespaceFault, NamespaceIdentity, OptionalCommands, Page, active_namespaces,
    namespace_descriptors,
};
pub use io_command::{FORCE_UNIT_ACCESS, IoAction, IoCommand, IoData, IoNamespace, Range, ranges};
pub use log_pages::{
    DiscoveryEntry, GetLogPage, Health, LogPage, discovery_page, effects_page, firmware_page,
};
pub use pdu::{
    DataPdu, Digests, Encoded, FatalStatus, Framing, IcReq, IcResp, Pdu, PduType, ReadyToTransfer,
    Side, TermReq,
};
pub use placement::{
    HANDLE_STATUS_HEADER_BYTES, handle_status_bytes, has_data_placement, placement_identifiers,
};
pub use protection::{Guard, Protection, ProtectionError, ProtectionTags, ProtectionType};
pub use send_queue::{Piece, SendQueue};
pub use subsystem::{Discovery, Subsystem};
pub use target_queue::{
    ADMIN_CAPSULE_BYTES, Arrival, Place, QUEUE_ENTRIES_MAX, TargetQueue, TargetQueueConfig,
    UNCONNECTED_ENTRIES,
};
pub use zones::{
    ZONES_MAX, ZoneFault, ZoneField, ZoneFormat, ZoneSurvey, is_zoned, zone_send_action,
};
