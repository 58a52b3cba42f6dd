//! Zoned namespaces: their zones before a run, and the commands on a zone.

use std::fs::{self, File};
use std::path::Path;

use fathom_core::{EngineError, EngineStep, Zone, ZoneAction, ZoneReport};
use fathom_nvme::{Status, ZoneFault, ZoneFormat, ZoneSurvey, is_zoned, zone_send_action};
use fathom_sys::files::{self, Access};
use fathom_sys::nvme::{self, CommandError, Identify, IdentifyPage};

use super::namespace::{Namespace, check_node, command_failed, open_failed, transfer_limit};
use super::options::Options;
use super::write_modes::{WRITE_MODE, WriteMode};
use crate::error::refused_value;

/// Returns the format of a namespace's zones, given what Identify Namespace says of it; `None` if
/// it has none. Costs two commands.
pub(super) fn format(
    path: &str,
    device: &File,
    id: u32,
    page: &IdentifyPage,
) -> Result<Option<ZoneFormat>, EngineError> {
    let failed = |what| move |error| command_failed(path, what, &error);
    let identify = |what| nvme::identify(device, id, what);
    let descriptors = match identify(Identify::NamespaceDescriptors) {
        Ok(descriptors) => descriptors,
        // Controllers before NVMe 1.3 have no such list, and no zones.
        Err(error) if is_invalid_field(&error) => return Ok(None),
        Err(error) => return Err(failed("Identify Namespace identifiers")(error)),
    };
    if !is_zoned(&descriptors) {
        return Ok(None);
    }
    let zoned =
        identify(Identify::ZonedNamespace).map_err(failed("Identify Namespace for zones"))?;
    let format = ZoneFormat::decode(page, &zoned);
    format.map(Some).ok_or_else(|| EngineError {
        step: EngineStep::Call("Identify Namespace for zones"),
        target: path.into(),
        errno: None,
        hint: "the namespace has no usable zones: too many of them, none, or of no length".into(),
    })
}

/// Returns the most bytes that an append to a namespace may transfer; `None` without a limit but
/// that of all transfers. Costs a command.
pub(super) fn append_limit(path: &str, device: &File, id: u32) -> Result<Option<u64>, EngineError> {
    let page = nvme::identify(device, id, Identify::ZonedController);
    let page =
        page.map_err(|error| command_failed(path, "Identify Controller for zones", &error))?;
    Ok(transfer_limit(page[ZASL]))
}

/// Reads the zones of the namespace at `path` before a run; `None` if it has none.
pub(super) fn look_up(path: &str, options: &Options) -> Result<Option<ZoneReport>, EngineError> {
    check_node(path)?;
    let device =
        files::open(Path::new(path), Access::READING).map_err(|error| open_failed(path, &error))?;
    let namespace = Namespace::identify(path, &device, options, true)?;
    let Some(format) = namespace.zones else {
        return Ok(None);
    };
    check_blocks(path, &namespace)?;
    let mut survey = ZoneSurvey::new(format);
    while let Some(first) = survey.next() {
        let mut report = [0; REPORT_BYTES];
        nvme::zone_report(&device, namespace.id, first, &mut report)
            .map_err(|error| command_failed(path, REPORT, &error))?;
        survey
            .add(&report)
            .map_err(|fault| impossible(path, fault))?;
    }
    let node = fs::metadata(path).map_err(|error| open_failed(path, &error))?;
    Ok(Some(ZoneReport {
        zones: survey.into_zones(),
        open_max: format.open_max,
        area: format.area,
        device: nvme::device_identity(&node),
    }))
}

impl Namespace {
    /// Refuses options with which writes would not advance the write pointers of zones, or ops not
    /// be in the blocks in which zones are.
    pub(super) fn check_zones(
        &self,
        path: &str,
        options: &Options,
        writes: bool,
    ) -> Result<(), EngineError> {
        if self.zones.is_none() {
            return Ok(());
        }
        check_blocks(path, self)?;
        let mut modes = options.write_modes.used();
        match !writes || modes.all(WriteMode::advances) {
            true => Ok(()),
            false => {
                let hint = "with `zonemode=zbd`, writes have to advance the write pointer of a \
                            zone: choose another, or remove `zonemode`";
                Err(refused_value(WRITE_MODE.name, path.into(), hint))
            }
        }
    }

    /// Refuses appends to a namespace that does not take them.
    pub(super) fn check_appends(&self, path: &str, buffer_bytes: u32) -> Result<(), EngineError> {
        let refuse = |option, hint: &str| Err(refused_value(option, path.into(), hint));
        if self.zones.is_none() {
            let hint = "Zone Append needs a namespace with zones, and `zonemode=zbd`";
            return refuse(WRITE_MODE.name, hint);
        }
        if self.format.protection.is_some() {
            let hint = "protection information contains the address of a block, which an append \
                        does not know: format the namespace without it";
            return refuse(WRITE_MODE.name, hint);
        }
        match self.append_bytes_max {
            Some(most) if u64::from(buffer_bytes) > most => {
                let hint = format!("the controller appends {most} B per command at most");
                refuse("bs", &hint)
            }
            _ => Ok(()),
        }
    }

    /// Reads the state of the zone that contains the byte `offset`.
    pub(super) fn report_zone(
        &self,
        path: &str,
        device: &File,
        offset: u64,
    ) -> Result<Zone, EngineError> {
        let format = self.zones.ok_or_else(|| no_zone(path, offset))?;
        let first = format.first_block(offset / format.zone_bytes());
        let first = first.ok_or_else(|| no_zone(path, offset))?;
        let mut report = [0; ONE_ZONE_BYTES];
        nvme::zone_report(device, self.id, first, &mut report)
            .map_err(|error| command_failed(path, REPORT, &error))?;
        let zone = format.zone_at(first, &report);
        zone.map_err(|fault| impossible(path, fault))
    }

    /// Changes the state of a zone.
    pub(super) fn manage_zone(
        &self,
        path: &str,
        device: &File,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        let block = match action {
            ZoneAction::Commit => match self.last_to_commit(path, device, zone)? {
                Some(last) => last,
                None => return Ok(()),
            },
            ZoneAction::Finish => {
                // Nothing has to be known of what a finish makes of the area.
                self.manage_zone(path, device, ZoneAction::Commit, zone)?;
                self.block(zone.start)
            }
            ZoneAction::Reset | ZoneAction::OpenWithArea => self.block(zone.start),
        };
        let call = match action {
            ZoneAction::Reset => "Zone Management Send (reset)",
            ZoneAction::Finish => "Zone Management Send (finish)",
            ZoneAction::OpenWithArea => "Zone Management Send (open with ZRWA)",
            ZoneAction::Commit => "Zone Management Send (commit ZRWA)",
        };
        nvme::manage_zone(device, self.id, block, zone_send_action(action))
            .map_err(|error| command_failed(path, call, &error))
    }

    /// Returns the last block that a commit puts behind the write pointer of a zone, written up to
    /// `zone.write_pointer`; `None` if the zone has no random write area, or nothing to commit.
    fn last_to_commit(
        &self,
        path: &str,
        device: &File,
        zone: &Zone,
    ) -> Result<Option<u64>, EngineError> {
        let format = self.zones.filter(|format| format.commits);
        let Some(area) = format.and_then(|format| format.area) else {
            return Ok(None);
        };
        let found = self.report_zone(path, device, zone.start)?;
        let written = zone.write_pointer - zone.start;
        let end = zone.write_pointer - written % area.granule;
        let is_due = found.has_area && end > found.write_pointer;
        Ok(is_due.then(|| self.block(end) - 1))
    }

    fn block(&self, offset: u64) -> u64 {
        offset / u64::from(self.op_block_bytes)
    }
}

/// Refuses a namespace whose ops have metadata after the data of each block: zones would have
/// another length for each way to transfer them.
fn check_blocks(path: &str, namespace: &Namespace) -> Result<(), EngineError> {
    if namespace.op_block_bytes == namespace.format.block_bytes() {
        return Ok(());
    }
    let hint = "the ops of the job have metadata after the data of each block: format the \
                namespace to blocks without metadata, or with metadata apart";
    Err(refused_value("zonemode", path.into(), hint))
}

fn is_invalid_field(error: &CommandError) -> bool {
    let invalid = Status::INVALID_FIELD.type_and_code();
    matches!(error, CommandError::Status(status)
        if Status::from_bits(*status).type_and_code() == invalid)
}

#[cold]
fn no_zone(path: &str, offset: u64) -> EngineError {
    bad_report(format!("{path}: no zone at byte {offset}"))
}

/// Returns the error of a report that makes no sense.
#[cold]
fn impossible(path: &str, fault: ZoneFault) -> EngineError {
    bad_report(format!("{path}: {fault}"))
}

fn bad_report(target: String) -> EngineError {
    EngineError {
        step: EngineStep::Call(REPORT),
        target,
        errno: None,
        hint: String::new(),
    }
}

/// Byte of the Zone Append Size Limit.
const ZASL: usize = 0;

const REPORT: &str = "Zone Management Receive";

/// Bytes of a report of many zones: the header and 127 zones. Every controller can transfer them:
/// the least limit is two pages.
const REPORT_BYTES: usize = 8192;
/// Bytes of a report of one zone.
const ONE_ZONE_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use fathom_core::EngineValues;

    use super::*;
    use crate::passthrough::namespace::tests::namespace;
    use crate::passthrough::write_modes::WriteModes;

    const FORMAT: ZoneFormat = ZoneFormat {
        zone_blocks: 250,
        block_shift: 12,
        zones: 4,
        open_max: None,
        area: None,
        commits: false,
    };

    fn options(mode: WriteMode) -> Options {
        Options {
            write_modes: WriteModes::only(mode),
            ..Options::resolve(&EngineValues::default()).unwrap()
        }
    }

    /// Checks the options of a job that writes to a namespace with these metadata after its data.
    #[track_caller]
    fn check(metadata: u16, zones: Option<ZoneFormat>, mode: WriteMode, want: Result<(), &str>) {
        let options = options(mode);
        let mut own = namespace(metadata, true, None, &options);
        own.zones = zones;
        let got = own.check_zones("/dev/ng0n1", &options, true);
        assert_eq!(
            got.map_err(|error| error.to_string()),
            want.map_err(Into::into)
        );
        assert_eq!(
            own.check_zones("/dev/ng0n1", &options, false).is_ok(),
            metadata == 0
        );
    }

    #[test]
    fn writes_advance_the_write_pointers() {
        check(0, Some(FORMAT), WriteMode::Write, Ok(()));
        check(0, Some(FORMAT), WriteMode::Zeroes, Ok(()));
        check(0, Some(FORMAT), WriteMode::Append, Ok(()));
        let refused = Err("write_mode: /dev/ng0n1");
        check(0, Some(FORMAT), WriteMode::Compare, refused);
        check(0, Some(FORMAT), WriteMode::Verify, refused);
        check(0, None, WriteMode::Compare, Ok(()));
    }

    #[test]
    fn appends_are_to_zones_without_protection() {
        let options = options(WriteMode::Append);
        let check = |zones, guard, bytes| {
            let mut own = namespace(8, false, guard, &options);
            (own.zones, own.append_bytes_max) = (zones, Some(16 << 10));
            let got = own.check_appends("/dev/ng0n1", bytes);
            got.map_err(|error| error.to_string())
        };
        assert_eq!(check(Some(FORMAT), None, 16 << 10), Ok(()));
        let refused = |option| Err(format!("{option}: /dev/ng0n1"));
        assert_eq!(check(Some(FORMAT), None, 20 << 10), refused("bs"));
        let guard = Some(fathom_nvme::Guard::Crc16);
        assert_eq!(check(Some(FORMAT), guard, 4096), refused("write_mode"));
        assert_eq!(check(None, None, 4096), refused("write_mode"));
    }

    #[test]
    fn zones_are_in_blocks_of_data_alone() {
        check(
            64,
            Some(FORMAT),
            WriteMode::Write,
            Err("zonemode: /dev/ng0n1"),
        );
    }

    #[test]
    fn no_zone_lies_behind_the_last_one() {
        let options = options(WriteMode::Write);
        let mut own = namespace(0, false, None, &options);
        own.zones = Some(FORMAT);
        let device = File::open("/dev/null").unwrap();
        let error = own
            .report_zone("/dev/ng0n1", &device, 1000 << 12)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "Zone Management Receive: /dev/ng0n1: no zone at byte 4096000"
        );
        let error = own
            .report_zone("/dev/ng0n1", &device, 999 << 12)
            .unwrap_err();
        assert!(error.errno.is_some(), "the command is sent: {error}");
    }

    #[test]
    fn old_controllers_do_not_know_the_list_of_identifiers() {
        assert!(is_invalid_field(&CommandError::Status(0x4002)));
        assert!(!is_invalid_field(&CommandError::Status(0x102)));
        let call = std::io::Error::from_raw_os_error(2);
        assert!(!is_invalid_field(&CommandError::Call(call)));
    }

    #[test]
    fn other_files_are_refused_before_they_are_opened() {
        let error = look_up("/dev/null", &options(WriteMode::Write)).unwrap_err();
        assert_eq!(error.step, EngineStep::Open);
        assert!(error.hint.contains("/dev/ng0n1"), "{error:?}");
    }
}
