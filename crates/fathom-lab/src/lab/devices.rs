//! Devices that runs would write, by whatever name they reach them.
//!
//! A device has many names: links in `/dev/disk`, links of the user, a node of its own. Its number
//! identifies it.

use std::fs;
use std::path::Path;

use fathom_job::Environment;
use fathom_sys::files::{DeviceNumber, FileKind};

use crate::lab_file::written_names;
use crate::lab_plan::LabPlan;

impl LabPlan {
    /// Returns a sentence about each block device that runs on this machine would write and that
    /// `writes` does not name, and about each log that is replayed and cannot be read, as it may
    /// name any. To be asked before the first run: names may lead elsewhere later.
    #[must_use]
    pub fn forbidden_devices(&self, environment: &dyn Environment) -> Vec<String> {
        // A modelled machine has no data to lose.
        if self.machine.is_some() {
            return Vec::new();
        }
        let written = written_names(self, environment);
        let devices = written.names.iter().filter_map(|(name, place)| {
            let number = device_of(name)?;
            (!may_write(&self.writes, number)).then(|| told(name, place))
        });
        let unread = written.unread.values();
        devices.chain(unread.map(|why| untold(why))).collect()
    }
}

/// Returns the block device that a name leads to.
pub(in crate::lab) fn device_of(name: &str) -> Option<DeviceNumber> {
    let metadata = fs::metadata(name).ok()?;
    (FileKind::of(&metadata) == FileKind::Block).then(|| DeviceNumber::of_node(&metadata))
}

/// Returns whether one of the names leads to this device.
pub(in crate::lab) fn may_write(writes: &[String], number: DeviceNumber) -> bool {
    writes.iter().any(|leave| device_of(leave) == Some(number))
}

fn untold(why: &str) -> String {
    format!("{why}; what a replay writes has to be known before the first run")
}

fn told(name: &str, place: &str) -> String {
    let place = match place {
        "" => String::new(),
        place => format!(" in {place}"),
    };
    let is_link = fs::canonicalize(name)
        .ok()
        .filter(|real| real != Path::new(name));
    let device = match is_link {
        Some(real) => format!("`{name}`, which leads to the device {},", real.display()),
        None => format!("the device `{name}`"),
    };
    format!(
        "{device} would be written{place}, and no name in `writes` leads to it; add it there if \
         its data may be overwritten"
    )
}
