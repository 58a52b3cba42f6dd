//! Devices of a machine: what QEMU emulates of them, and what the guest has to do.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::spec::{Settings, Spec};

/// Device of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// Device of null_blk, with attributes of its folder in configfs.
    NullBlk(Settings),
    /// Namespace of the controller nvme0, with properties of QEMU's `nvme-ns`.
    Nvme(Settings),
    /// SCSI disk of scsi_debug, with parameters of the module.
    ScsiDebug(Settings),
    /// Target of the device mapper above a device of null_blk.
    Mapper {
        /// Name of the target, and of the device in /dev/mapper.
        target: &'static str,
        /// Its times and features, for the guest's script.
        settings: Settings,
    },
}

impl Device {
    /// Reads `delay` or `flakey`, followed by settings.
    pub(crate) fn mapper(text: &str) -> Result<Self> {
        let (name, settings) = text.split_once(',').unwrap_or((text, ""));
        let Some(target) = ["delay", "flakey"].into_iter().find(|own| *own == name) else {
            bail!("--dm takes delay or flakey, not `{name}`");
        };
        let settings = Settings::parse(settings)?;
        Ok(Self::Mapper { target, settings })
    }

    /// Returns the modules that the guest loads for it.
    fn modules(&self) -> &'static [&'static str] {
        match self {
            Self::NullBlk(_) => &["null_blk"],
            Self::Nvme(_) => &["nvme"],
            Self::ScsiDebug(_) => &["sd_mod", "sg", "scsi_debug"],
            Self::Mapper {
                target: "delay", ..
            } => &["null_blk", "dm_delay"],
            Self::Mapper { .. } => &["null_blk", "dm_flakey"],
        }
    }

    /// Returns the line of the guest's script that makes it, or waits for it.
    fn guest_line(&self) -> String {
        match self {
            Self::NullBlk(settings) => format!("make_null_blk{}", settings.joined(" ", "1")),
            Self::Nvme(_) => "await_nvme".to_owned(),
            Self::ScsiDebug(_) => "await_scsi_debug".to_owned(),
            Self::Mapper { target, settings } => {
                format!("make_{target}{}", settings.joined(" ", "1"))
            }
        }
    }
}

impl Spec {
    /// Returns the modules to load with their parameters, in this order after those they need.
    pub(crate) fn all_modules(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, parameters: String| {
            if !all.iter().any(|(own, _)| own == name) {
                all.push((name.to_owned(), parameters));
            }
        };
        if self.network {
            add("virtio_pci", String::new());
            add("virtio_net", String::new());
        }
        for device in &self.devices {
            for name in device.modules() {
                let parameters = match (device, *name) {
                    // Devices are made one by one.
                    (_, "null_blk") => "nr_devices=0".to_owned(),
                    (_, "nvme") => self.nvme_parameters.join(" "),
                    (Device::ScsiDebug(settings), "scsi_debug") => settings.joined(" ", "1"),
                    _ => String::new(),
                };
                add(name, parameters);
            }
        }
        for line in &self.modules {
            let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
            add(name, parameters.to_owned());
        }
        all
    }

    /// Returns the guest's script that makes the devices.
    pub(crate) fn guest_script(&self) -> String {
        let lines = self.devices.iter().map(|device| device.guest_line() + "\n");
        lines.collect()
    }

    /// Creates the files behind the emulated devices in `folder`, and returns QEMU's arguments.
    pub(crate) fn emulated(&self, folder: &Path) -> Result<Vec<String>> {
        let namespaces = self.devices.iter().filter_map(|device| match device {
            Device::Nvme(settings) => Some(settings.clone()),
            _ => None,
        });
        let namespaces: Vec<Settings> = namespaces.collect();
        let mut args = controller(&namespaces);
        for (number, settings) in (1..).zip(namespaces) {
            args.extend(namespace(number, settings, folder)?);
        }
        Ok(args)
    }
}

/// Returns the arguments of the controller of all namespaces, if there are any. One controller:
/// those of several would be numbered in the order in which the guest happens to find them.
fn controller(namespaces: &[Settings]) -> Vec<String> {
    let handles = namespaces
        .iter()
        .filter_map(|own| own.clone().remove("fdp"));
    let device = |words: String| ["-device".to_owned(), words];
    match handles.max() {
        _ if namespaces.is_empty() => Vec::new(),
        None => device(NVME_CONTROLLER.to_owned()).into(),
        Some(handles) => {
            let subsystem = device(format!(
                "nvme-subsys,id=subsystem,fdp=on,fdp.nruh={handles}"
            ));
            [
                subsystem,
                device(format!("{NVME_CONTROLLER},subsys=subsystem")),
            ]
            .concat()
        }
    }
}

/// Creates the file behind a namespace, and returns the arguments of both.
fn namespace(number: u32, mut settings: Settings, folder: &Path) -> Result<[String; 4]> {
    let handles = settings.remove("fdp").map(|handles| handles.parse::<u32>());
    let handles = match handles {
        None => String::new(),
        Some(Ok(handles @ 1..)) => format!(",fdp.ruhs=0-{}", handles - 1),
        Some(_) => bail!("`fdp` of a namespace is a number of handles: fdp=4"),
    };
    let bytes = bytes(settings.remove("size").as_deref().unwrap_or(NAMESPACE_SIZE))?;
    let path = folder.join(format!("namespace-{number}"));
    let file = File::create_new(&path).with_context(|| path.display().to_string())?;
    file.set_len(bytes)?;
    // A comma ends a value unless it is doubled.
    let path = path.display().to_string().replace(',', ",,");
    let own = settings.joined(",", "on");
    Ok([
        "-drive".to_owned(),
        format!("file={path},format=raw,if=none,cache=unsafe,discard=unmap,id=drive{number}"),
        "-device".to_owned(),
        format!("nvme-ns,bus=nvme,nsid={number},drive=drive{number}{handles}{own}"),
    ])
}

/// Reads a size such as `64M`.
fn bytes(text: &str) -> Result<u64> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = digits
        .parse()
        .ok()
        .filter(|&number| number > 0)
        .with_context(|| format!("`size={text}` of a namespace: write it like 64M"))?;
    number
        .checked_mul(1 << shift)
        .with_context(|| format!("`size={text}`: too large"))
}

/// Commands may transfer 512 KiB (`mdts` 7).
const NVME_CONTROLLER: &str = "nvme,id=nvme,serial=fathom-vm,mdts=7";
const NAMESPACE_SIZE: &str = "64M";

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(line: &str) -> Spec {
        let mut spec = Spec::default();
        spec.take_line(line).expect(line);
        spec
    }

    #[test]
    fn each_device_has_its_modules_and_its_line() {
        let spec = spec(
            "--nvme ms=8,pi=1 --null-blk zoned,zone_size=4 --scsi-debug dev_size_mb=16 \
             --dm flakey,up=1,down=2 --nvme-module poll_queues=2",
        );
        let line = |(name, parameters): &(String, String)| format!("{name} {parameters}");
        let modules: Vec<String> = spec.all_modules().iter().map(line).collect();
        let want = [
            "nvme poll_queues=2",
            "null_blk nr_devices=0",
            "sd_mod ",
            "sg ",
            "scsi_debug  dev_size_mb=16",
            "dm_flakey ",
        ];
        assert_eq!(modules, want);
        let want = "await_nvme\nmake_null_blk zoned=1 zone_size=4\nawait_scsi_debug\n\
                    make_flakey up=1 down=2\n";
        assert_eq!(spec.guest_script(), want);
    }

    #[test]
    fn namespaces_have_one_controller_and_a_file_each() {
        let folder = std::env::temp_dir().join(format!("fathom-vm-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let spec = spec("--nvme --null-blk --nvme zoned,zoned.zone_size=4M,size=32M");
        let args = spec.emulated(&folder);
        let sizes = [1, 2].map(|number| {
            let path = folder.join(format!("namespace-{number}"));
            std::fs::metadata(path).map_or(0, |file| file.len())
        });
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(sizes, [64 << 20, 32 << 20]);
        let devices: Vec<String> = args
            .expect("arguments")
            .chunks(2)
            .map(|c| c[1].clone())
            .collect();
        assert_eq!(devices.len(), 5);
        assert_eq!(devices[0], NVME_CONTROLLER);
        assert_eq!(devices[2], "nvme-ns,bus=nvme,nsid=1,drive=drive1");
        let want = "nvme-ns,bus=nvme,nsid=2,drive=drive2,zoned=on,zoned.zone_size=4M";
        assert_eq!(devices[4], want);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("64M").expect("a size"), 64 << 20);
        assert_eq!(bytes("4096").expect("a size"), 4096);
        for text in ["", "M", "0", "-1", "1T", "99999999999G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
