//! Character devices that a job may open. An allow list: there are far too many harmful ones, and
//! merely opening a watchdog can reset the machine.
//!
//! Devices are identified by the kernel's registered numbers, not by the names of their nodes.

use std::fs;

use fathom_sys::files::DeviceNumber;

use crate::block_tree::BlockTree;

/// Returns the description of a device that a job must not open; `None` if it may.
pub(super) fn objection(number: DeviceNumber, writes: bool, tree: &BlockTree) -> Option<String> {
    let is_safe = is_source_and_sink(number) || !writes && is_safe_to_read(number);
    (!is_safe).then(|| description(number, tree))
}

/// Returns the description of a device that no report or log may go to; `None` if one may.
pub(super) fn objection_to_output(number: DeviceNumber, tree: &BlockTree) -> Option<String> {
    objection(number, true, tree).filter(|what| what != TERMINAL)
}

/// Writes are discarded, refused, or mixed into the random pool, which any user may do.
const fn is_source_and_sink(number: DeviceNumber) -> bool {
    // null, zero, full, random, urandom.
    matches!((number.major, number.minor), (1, 3 | 5 | 7..=9))
}

/// Opening and reading have no side effect.
const fn is_safe_to_read(number: DeviceNumber) -> bool {
    matches!(
        (number.major, number.minor),
        // The contents of virtual consoles (vcs), hwrng, and flash (mtd).
        (7, _) | (10, 183) | (90, _)
    )
}

fn description(number: DeviceNumber, tree: &BlockTree) -> String {
    if let Some(device) = tree.behind_character_device(number) {
        let name = device.name;
        return match engine_of(number, tree) {
            Some(engine) => format!(
                "a passthrough device: use `ioengine={engine}`, or the block device /dev/{name}"
            ),
            None => format!("a passthrough device, which no engine supports: use /dev/{name}"),
        };
    }
    let what = match (number.major, number.minor) {
        (1, _) => "the machine's memory, its ports or its kernel log",
        (4 | 5 | 136..=143, _) => TERMINAL,
        (7, _) => "a console's screen",
        (9, _) => "a tape drive",
        (10, 130) => "a watchdog",
        (10, _) => "a control device of the kernel",
        (13, _) => "an input device",
        (21, _) => "a passthrough device: use `ioengine=sg` if it is a disk",
        (29, _) => "a frame buffer",
        (90, _) => "flash memory",
        _ => match subsystem(number, tree).as_deref() {
            Some("tty") => TERMINAL,
            Some("watchdog") => "a watchdog",
            Some("dax") => "persistent memory, which can only be mapped",
            Some("nvme" | "nvme-generic" | "scsi_generic" | "bsg") => {
                "a passthrough device, which no engine supports"
            }
            Some(other) => return format!("a character device of `{other}`, not known to be safe"),
            None => "a character device that is not known to be safe",
        },
    };
    what.to_owned()
}

/// Returns whether an engine sends commands to this character device: that of an NVMe namespace,
/// or of a SCSI device.
pub(super) fn takes_commands(number: DeviceNumber, tree: &BlockTree) -> bool {
    engine_of(number, tree).is_some()
}

/// Returns the engine that sends commands to a character device.
fn engine_of(number: DeviceNumber, tree: &BlockTree) -> Option<&'static str> {
    match subsystem(number, tree)?.as_str() {
        "nvme-generic" => Some("io_uring_cmd"),
        "scsi_generic" | "bsg" => Some("sg"),
        _ => None,
    }
}

/// Returns the kernel's name of the device's subsystem.
fn subsystem(number: DeviceNumber, tree: &BlockTree) -> Option<String> {
    let target = fs::read_link(tree.character_device(number)?.join("subsystem")).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

const TERMINAL: &str = "a terminal";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeHost;

    #[track_caller]
    fn check(major: u32, minor: u32, may_read: bool, may_write: bool, what: &str) {
        let fake = FakeHost::new(&format!("characters-{major}-{minor}"));
        let number = DeviceNumber { major, minor };
        let judge = |writes| objection(number, writes, &fake.tree());
        assert_eq!(judge(false).is_none(), may_read, "reading {number}");
        assert_eq!(judge(true).is_none(), may_write, "writing {number}");
        let said = judge(true).unwrap_or_default();
        assert!(said.contains(what), "{number}: {said}");
    }

    #[test]
    fn only_devices_that_are_known_to_be_safe_are_opened() {
        for minor in [3, 5, 7, 8, 9] {
            check(1, minor, true, true, "");
        }
        check(1, 1, false, false, "memory"); // mem
        check(1, 11, false, false, "kernel log"); // kmsg
        check(4, 1, false, false, "terminal"); // tty1
        check(4, 64, false, false, "terminal"); // ttyS0
        check(5, 1, false, false, "terminal"); // console
        check(7, 1, true, false, "screen"); // vcs1
        check(7, 129, true, false, "screen"); // vcsa1
        check(9, 0, false, false, "tape"); // st0
        check(10, 130, false, false, "watchdog");
        check(10, 183, true, false, "control device"); // hwrng
        check(10, 232, false, false, "control device"); // kvm
        check(21, 0, false, false, "passthrough"); // sg0
        check(90, 0, true, false, "flash"); // mtd0
        check(188, 0, false, false, "not known to be safe"); // ttyUSB0
        check(229, 0, false, false, "not known to be safe"); // hvc0
        check(511, 0, false, false, "not known to be safe");
    }

    #[test]
    fn devices_that_take_commands_are_known_by_their_subsystem() {
        let fake = FakeHost::new("characters-commands");
        fake.device("nvme0n1", "259:0")
            .device("sda", "8:0")
            .character("ng0n1", "242:0", "nvme-generic")
            .character("nvme0", "241:0", "nvme")
            .character("sg0", "21:0", "scsi_generic")
            .character("0:0:0:0", "250:0", "bsg")
            .attribute("sg0", "device/block/sda", "")
            .attribute("0:0:0:0", "device/block/sda", "");
        let check = |major, engine: Option<&str>, block| {
            let number = DeviceNumber { major, minor: 0 };
            assert_eq!(takes_commands(number, &fake.tree()), engine.is_some());
            let said = objection(number, false, &fake.tree()).unwrap();
            let named = engine.is_none_or(|engine| said.contains(engine));
            assert!(named && said.contains(block), "{said}");
        };
        check(242, Some("`ioengine=io_uring_cmd`"), "/dev/nvme0n1");
        check(21, Some("`ioengine=sg`"), "/dev/sda");
        check(250, Some("`ioengine=sg`"), "/dev/sda");
        check(241, None, "no engine supports");
    }

    #[test]
    fn an_unknown_number_is_described_by_its_subsystem() {
        let fake = FakeHost::new("characters-subsystem");
        fake.character("ttyUSB0", "188:0", "tty")
            .character("watchdog1", "250:1", "watchdog")
            .character("gpiochip0", "254:0", "gpio");
        let said =
            |major, minor| objection(DeviceNumber { major, minor }, false, &fake.tree()).unwrap();
        assert_eq!(said(188, 0), "a terminal");
        let output = |major, minor| {
            objection_to_output(DeviceNumber { major, minor }, &fake.tree()).is_none()
        };
        assert!(output(188, 0) && output(136, 3) && output(1, 3));
        assert!(!output(250, 1) && !output(1, 11) && !output(7, 1));
        assert_eq!(said(250, 1), "a watchdog");
        assert_eq!(
            said(254, 0),
            "a character device of `gpio`, not known to be safe"
        );
    }
}
