//! Logical units: what they are, their capacity, and what may be done with them.

use fathom_core::{Direction, EngineError, EngineStep, Errno, Nanos, RemoteFile};
use fathom_sys::libiscsi::{Iscsi, IscsiLogin, IscsiPortal};
use fathom_sys::library::LibraryError;
use fathom_sys::scsi::Cdb;

use crate::libraries::engine_error;
use crate::scsi::blocks::{Capacity, decode_long};
use crate::scsi::{cdb, outcome};

/// A unit that takes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) capacity: Capacity,
    pub(super) is_read_only: bool,
    /// It unmaps blocks (UNMAP).
    pub(super) can_unmap: bool,
    /// It can be told to complete a write when it is on the medium (FUA).
    pub(super) has_fua: bool,
}

/// Session of a file, to be opened.
pub(super) struct Opening<'a> {
    pub(super) iscsi: &'a mut Iscsi,
    pub(super) file: u32,
    pub(super) url: &'a str,
    pub(super) limit: Nanos,
}

impl Unit {
    /// Returns what a run has to know of it.
    pub(super) fn file(&self) -> RemoteFile {
        RemoteFile {
            bytes: self.capacity.bytes(),
            block_bytes: self.capacity.block_bytes,
            directions: match (self.is_read_only, self.can_unmap) {
                (true, _) => &[Direction::Read],
                (false, true) => &Direction::ALL,
                (false, false) => &[Direction::Read, Direction::Write],
            },
        }
    }
}

impl Opening<'_> {
    /// Connects, logs in, and asks the unit what it is. Leaves no session behind if it fails.
    pub(super) fn open(mut self, portal: IscsiPortal) -> Result<Unit, EngineError> {
        let opened = self.log_in(portal).and_then(|()| self.identify());
        if opened.is_err() {
            self.iscsi.disconnect(self.file);
        }
        opened
    }

    fn log_in(&mut self, mut portal: IscsiPortal) -> Result<(), EngineError> {
        let mut place = self.url.to_owned();
        for _portal in 0..PORTALS_MAX {
            let failed = |step, error: &LibraryError, hint| {
                Err(engine_error(EngineStep::Call(step), &place, error, hint))
            };
            if let Err(error) = self.iscsi.connect(self.file, &portal, self.limit) {
                let hint = "check host and port, and that the target runs";
                return failed("connect", &error, hint);
            }
            match self.iscsi.login(self.file, self.limit) {
                Ok(IscsiLogin::Done) => return Ok(()),
                Ok(IscsiLogin::Elsewhere(address)) => {
                    self.iscsi.disconnect(self.file);
                    // The rest is the number of a group of portals.
                    let address = address.split(',').next().unwrap_or_default();
                    address.clone_into(&mut portal.address);
                    place = format!("{}, redirected to {address}", self.url);
                }
                Err(error) => return failed("login", &error, login_hint(&error)),
            }
        }
        Err(EngineError {
            step: EngineStep::Call("login"),
            target: format!("{}: redirected {PORTALS_MAX} times", self.url),
            errno: None,
            hint: "check the addresses to which the target redirects".into(),
        })
    }

    fn identify(&mut self) -> Result<Unit, EngineError> {
        let mut facts = [0; 36];
        self.ask("INQUIRY", cdb::inquiry(36), &mut facts)?;
        self.check_kind(facts[0])?;
        let mut long = [0; 32];
        self.ask("READ CAPACITY(16)", cdb::read_capacity_16(), &mut long)?;
        let (last, block_bytes) = decode_long(&long);
        let flags = self.mode_flags()?;
        Ok(Unit {
            capacity: Capacity::new(self.url, last, block_bytes)?,
            is_read_only: flags & WRITE_PROTECTED != 0,
            can_unmap: long[14] & PROVISIONED != 0 && self.unmaps()?,
            has_fua: flags & HAS_FUA != 0,
        })
    }

    /// Refuses a unit that is not a disk, given the first byte of an INQUIRY.
    fn check_kind(&self, kind: u8) -> Result<(), EngineError> {
        let (qualifier, kind) = (kind >> 5, kind & 0x1f);
        let (why, hint) = match (qualifier, kind) {
            // Disks, write-once and optical disks, simplified disks, disks with zones.
            (0, 0x00 | 0x04 | 0x07 | 0x0e | 0x14) => return Ok(()),
            (0, kind) => (
                format!("it is not a disk but of device type {kind:02x}h"),
                "name the logical unit of a disk: on tgt, that of the first is 1",
            ),
            _ => ("the target has no such logical unit".into(), LIST_UNITS),
        };
        Err(EngineError {
            step: EngineStep::Call("INQUIRY"),
            target: format!("{}: {why}", self.url),
            errno: None,
            hint: hint.into(),
        })
    }

    /// Returns the flags of the whole medium; none where the unit does not tell them.
    fn mode_flags(&mut self) -> Result<u8, EngineError> {
        let mut modes = [0; 192];
        let asked = self.try_ask("MODE SENSE(6)", cdb::mode_sense(192), &mut modes)?;
        Ok(asked.map_or(modes[2], |_refused| 0))
    }

    /// Asks whether UNMAP is supported (page Logical Block Provisioning).
    fn unmaps(&mut self) -> Result<bool, EngineError> {
        let mut page = [0; 64];
        let asked = self.try_ask("INQUIRY", cdb::inquiry_page(0xb2, 64), &mut page)?;
        Ok(asked.is_none() && page[1] == 0xb2 && page[5] & 0x80 != 0)
    }

    /// Sends a command that asks the unit, by its name for messages, and waits for the answer.
    fn ask(&mut self, name: &'static str, cdb: Cdb, answer: &mut [u8]) -> Result<(), EngineError> {
        match self.try_ask(name, cdb, answer)? {
            None => Ok(()),
            Some(why) => Err(EngineError {
                step: EngineStep::Call(name),
                target: format!("{}: {why}", self.url),
                errno: None,
                hint: match why.contains("LOGICAL UNIT NOT SUPPORTED") {
                    true => LIST_UNITS.into(),
                    false => String::new(),
                },
            }),
        }
    }

    /// Sends a command that asks the unit; returns why the unit refuses it.
    fn try_ask(
        &mut self,
        name: &'static str,
        cdb: Cdb,
        answer: &mut [u8],
    ) -> Result<Option<String>, EngineError> {
        let mut tries = outcome::ATTENTIONS_MAX;
        loop {
            let asked = self.iscsi.ask(self.file, cdb, answer, self.limit);
            let step = EngineStep::Call(name);
            let outcome = asked.map_err(|error| engine_error(step, self.url, &error, ""))?;
            if outcome::is_unit_attention(&outcome) && tries > 0 {
                // Such as that of a new session. Each report takes one off the unit's list.
                tries -= 1;
                continue;
            }
            // Answers may be shorter than the room for them.
            return Ok(outcome::failure(&outcome, 0));
        }
    }
}

/// Returns what to do about a login that a target refuses.
fn login_hint(error: &LibraryError) -> &'static str {
    match error {
        LibraryError::Silent(_) => "check that the target runs",
        LibraryError::Call {
            errno: Some(Errno::ECONNRESET),
            ..
        } => "",
        error => {
            let text = error.to_string();
            match () {
                () if text.contains("Target not found") => {
                    "check the target's name; `iscsi-ls iscsi://HOST` lists those of a host"
                }
                () if text.contains("no connection") => {
                    "check that an iSCSI target listens at this port"
                }
                // Of libiscsi, which compares the target's answer.
                () if text.contains("response from the target") => {
                    "the target does not prove itself: check LIBISCSI_CHAP_TARGET_USERNAME and \
                     LIBISCSI_CHAP_TARGET_PASSWORD in the environment"
                }
                () if text.contains("uth") => {
                    "set LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD in the environment, and \
                     check which initiators the target admits"
                }
                () => "",
            }
        }
    }
}

const LIST_UNITS: &str = "check the number; `iscsi-ls -s iscsi://HOST` lists the units of a host";

/// Portals that a target may redirect a login to, one after the other; guess.
const PORTALS_MAX: u32 = 4;

/// Bit LBPME of READ CAPACITY(16).
const PROVISIONED: u8 = 0x80;
/// Bits of a disk's device-specific parameter in MODE SENSE: WP, DPOFUA.
const WRITE_PROTECTED: u8 = 0x80;
const HAS_FUA: u8 = 0x10;
