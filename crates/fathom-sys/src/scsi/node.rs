//! Nodes through which a SCSI device takes commands, as sysfs shows them. Nothing is opened.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use crate::files::{DeviceNumber, FileKind};

/// Kind of node through which commands are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Of the SCSI generic driver (`/dev/sg0`): takes commands by `write(2)` and returns them by
    /// `read(2)`, up to 16 at a time for each opened file.
    Generic,
    /// Block device of a disk (`/dev/sda`): one command at a time.
    Block,
    /// Of the block layer (`/dev/bsg/0:0:0:0`): one command at a time.
    Bsg,
}

/// Node of a SCSI device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScsiNode {
    /// Kind of node.
    pub kind: NodeKind,
    /// sysfs folder of the device.
    folder: PathBuf,
}

impl ScsiNode {
    /// Returns the node of a whole SCSI device; `None` for partitions and anything else.
    #[must_use]
    pub fn of(node: &Metadata) -> Option<Self> {
        Self::within(Path::new("/sys"), node)
    }

    fn within(sys: &Path, node: &Metadata) -> Option<Self> {
        let list = match FileKind::of(node) {
            FileKind::Block => "dev/block",
            FileKind::Character => "dev/char",
            FileKind::Regular | FileKind::Directory | FileKind::Other => return None,
        };
        let link = sys.join(list).join(DeviceNumber::of_node(node).to_string());
        let own = fs::canonicalize(link).ok()?;
        let kind = match subsystem(&own)?.as_str() {
            "scsi_generic" => NodeKind::Generic,
            "bsg" => NodeKind::Bsg,
            "block" => NodeKind::Block,
            _ => return None,
        };
        // Partitions, and bsg devices of host adapters, have none of subsystem `scsi`.
        let folder = fs::canonicalize(own.join("device")).ok()?;
        (subsystem(&folder)? == "scsi" && folder.join("type").exists())
            .then_some(Self { kind, folder })
    }

    /// Returns the peripheral device type as in INQUIRY: 0 for disks.
    #[must_use]
    pub fn device_type(&self) -> Option<u8> {
        let text = fs::read_to_string(self.folder.join("type")).ok()?;
        text.trim().parse().ok()
    }

    /// Returns the name of its block device, `sda`; `None` if it has none.
    #[must_use]
    pub fn block_name(&self) -> Option<String> {
        first_name(&self.folder.join("block"))
    }
}

/// Returns the name of a device's subsystem.
fn subsystem(folder: &Path) -> Option<String> {
    let target = fs::read_link(folder.join("subsystem")).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

fn first_name(folder: &Path) -> Option<String> {
    let mut entries = fs::read_dir(folder).ok()?;
    let entry = entries.next()?.ok()?;
    entry.file_name().into_string().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A /sys in which /dev/null is a device of this kind.
    struct Sys(PathBuf);

    impl Sys {
        fn new(name: &str, class: &str, device: &str) -> Self {
            let root = std::env::temp_dir();
            let root = root.join(format!("fathom-scsi-{}-{name}", std::process::id()));
            let (own, scsi) = (root.join("devices/own"), root.join("devices/0:0:0:0"));
            for made in [&own, &root.join("dev/char"), &scsi] {
                fs::create_dir_all(made).unwrap();
            }
            let null = DeviceNumber::of_node(&fs::metadata("/dev/null").unwrap());
            symlink(&own, root.join(format!("dev/char/{null}"))).unwrap();
            symlink(root.join(class), own.join("subsystem")).unwrap();
            symlink(&scsi, own.join("device")).unwrap();
            symlink(root.join(device), scsi.join("subsystem")).unwrap();
            fs::write(scsi.join("type"), "0\n").unwrap();
            Self(root)
        }

        fn node(&self) -> Option<ScsiNode> {
            ScsiNode::within(&self.0, &fs::metadata("/dev/null").unwrap())
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _gone_is_fine = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn nodes_are_known_by_their_subsystem() {
        for (class, device, want) in [
            ("scsi_generic", "scsi", Some(NodeKind::Generic)),
            ("bsg", "scsi", Some(NodeKind::Bsg)),
            ("bsg", "scsi_host", None),
            ("mem", "scsi", None),
        ] {
            let sys = Sys::new(&format!("{class}-{device}"), class, device);
            let node = sys.node();
            assert_eq!(
                node.as_ref().map(|node| node.kind),
                want,
                "{class} {device}"
            );
            if let Some(node) = node {
                assert_eq!(node.device_type(), Some(0));
                assert_eq!(node.block_name(), None);
            }
        }
    }

    #[test]
    fn other_files_are_no_scsi_devices() {
        for path in ["/dev/null", "/etc/passwd", "/tmp"] {
            assert_eq!(ScsiNode::of(&fs::metadata(path).unwrap()), None, "{path}");
        }
    }
}
