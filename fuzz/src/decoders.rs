//! The decoders under test, a file for each format.

pub(crate) mod history;
pub(crate) mod host_message;
pub(crate) mod iolog;
pub(crate) mod job;
pub(crate) mod lab_file;
pub(crate) mod log;
pub(crate) mod log_page;
pub(crate) mod machine;
pub(crate) mod merge;
pub(crate) mod nbd;
pub(crate) mod nvme;
pub(crate) mod nvme_host;
pub(crate) mod nvme_host_controller;
pub(crate) mod nvme_target;
pub(crate) mod nvme_zones;
pub(crate) mod page;
pub(crate) mod planted;
pub(crate) mod rank_frames;
pub(crate) mod record;
pub(crate) mod target_file;
pub(crate) mod trace;
pub(crate) mod verify;
