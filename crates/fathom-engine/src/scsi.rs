//! SCSI commands, and their outcomes, of all engines that send them.

pub(crate) mod blocks;
pub(crate) mod cdb;
pub(crate) mod outcome;
pub(crate) mod sense;
mod sense_codes;
