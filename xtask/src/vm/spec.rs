//! Description of a machine: its devices, modules and programs, as arguments give them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::devices::Device;

/// Machine to boot. Words on a command line and in the first lines of a script describe it alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// In the order in which the guest makes them.
    pub(crate) devices: Vec<Device>,
    /// A network card; ports of the guest are reached through the machine around it.
    pub(crate) network: bool,
    /// Kernel modules to load besides those of the devices, each with its parameters.
    pub(crate) modules: Vec<String>,
    /// Parameters of the module `nvme`.
    pub(crate) nvme_parameters: Vec<String>,
    /// Installed programs of this machine to take along.
    pub(crate) programs: Vec<PathBuf>,
    /// Integration tests of this workspace to take along, by name.
    pub(crate) tests: Vec<String>,
    pub(crate) memory_mib: u32,
    /// Program that emulates the machine.
    pub(crate) qemu: PathBuf,
    /// Time from power on until the machine must be off.
    pub(crate) limit: Duration,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            devices: Vec::new(),
            network: false,
            modules: Vec::new(),
            nvme_parameters: Vec::new(),
            programs: Vec::new(),
            tests: Vec::new(),
            memory_mib: 1024,
            qemu: "qemu-system-x86_64".into(),
            limit: Duration::from_secs(180),
        }
    }
}

impl Spec {
    /// Reads one argument, and its value from `rest`. Returns false if it does not describe a
    /// machine; nothing is taken from `rest` then.
    pub(crate) fn take(&mut self, arg: &str, rest: &mut Words<'_>) -> Result<bool> {
        match arg {
            "--network" => self.network = true,
            "--null-blk" => self.devices.push(Device::NullBlk(rest.settings()?)),
            "--nvme" => self.devices.push(Device::Nvme(rest.settings()?)),
            "--nvme-module" => self.nvme_parameters.push(rest.value(arg)?.to_owned()),
            "--scsi-debug" => self.devices.push(Device::ScsiDebug(rest.settings()?)),
            "--dm" => self.devices.push(Device::mapper(rest.value(arg)?)?),
            "--module" => self.modules.push(rest.value(arg)?.to_owned()),
            "--program" => self.programs.push(rest.value(arg)?.into()),
            "--test" => self.tests.push(rest.value(arg)?.to_owned()),
            "--qemu" => self.qemu = rest.value(arg)?.into(),
            "--memory" => self.memory_mib = number(arg, rest.value(arg)?)?,
            "--limit" => self.limit = Duration::from_secs(number(arg, rest.value(arg)?)?.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads a line of arguments.
    pub(crate) fn take_line(&mut self, line: &str) -> Result<()> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut words = Words::new(&words);
        while let Some(word) = words.next() {
            if !self.take(word, &mut words)? {
                bail!("`{word}` does not describe a machine");
            }
        }
        Ok(())
    }
}

fn number(arg: &str, text: &str) -> Result<u32> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.with_context(|| format!("{arg} needs a whole number above 0, not `{text}`"))
}

/// Words of a command line.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a>(std::slice::Iter<'a, String>);

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [String]) -> Self {
        Self(words.iter())
    }

    /// Returns the value of an argument that needs one.
    pub(crate) fn value(&mut self, arg: &str) -> Result<&'a str> {
        self.next().with_context(|| format!("{arg} needs a value"))
    }

    /// Returns the settings of a device, which may be absent.
    fn settings(&mut self) -> Result<Settings> {
        match self.0.as_slice().first() {
            Some(word) if !word.starts_with('-') => Settings::parse(self.next().unwrap_or("")),
            _ => Ok(Settings::default()),
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0.next().map(String::as_str)
    }
}

/// Settings of a device: `zoned,zone_size=4`. One without a value is a switch, turned on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings(Vec<(String, Option<String>)>);

impl Settings {
    /// Reads settings.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut settings = Vec::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (word, None),
            };
            // They become words of a shell and of QEMU.
            let is_plain = |part: &str| {
                let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
                !part.is_empty() && part.chars().all(allowed)
            };
            if !is_plain(key) || !value.is_none_or(is_plain) {
                bail!(
                    "`{word}` is not a setting of a device: write KEY=VALUE, or KEY to turn it \
                       on"
                );
            }
            settings.push((key.to_owned(), value.map(str::to_owned)));
        }
        Ok(Self(settings))
    }

    /// Removes a setting and returns its value, if it has one.
    pub(crate) fn remove(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(own, _)| own == key)?;
        self.0.remove(at).1
    }

    /// Returns the settings, each after `before`; switches have the value `on`.
    pub(crate) fn joined(&self, before: &str, on: &str) -> String {
        let word = |(key, value): &(String, Option<String>)| {
            format!("{before}{key}={}", value.as_deref().unwrap_or(on))
        };
        self.0.iter().map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_describes_a_machine() {
        let mut spec = Spec::default();
        let line = "--nvme zoned,size=96M --nvme --null-blk zoned=1,zone_size=4 --dm delay,ms=50 \
                    --module xfs --limit 60";
        spec.take_line(line).expect("a machine");
        assert_eq!(spec.devices.len(), 4);
        assert_eq!(spec.devices[1], Device::Nvme(Settings::default()));
        assert_eq!(spec.modules, ["xfs"]);
        assert_eq!(spec.limit, Duration::from_secs(60));
    }

    #[track_caller]
    fn check_refused(line: &str, want: &str) {
        let error = Spec::default().take_line(line).expect_err(line).to_string();
        assert!(error.contains(want), "{line}: {error}");
    }

    #[test]
    fn other_words_are_refused_with_a_reason() {
        check_refused("--floppy", "`--floppy` does not describe a machine");
        check_refused("--module", "needs a value");
        check_refused("--limit soon", "whole number above 0");
        check_refused("--nvme ms=", "`ms=` is not a setting");
        check_refused("--null-blk a=$(reboot)", "is not a setting");
        check_refused("--dm snapshot", "delay or flakey");
    }

    #[test]
    fn settings_are_switches_or_pairs() {
        let mut settings = Settings::parse("zoned,ms=8,pi=1").expect("settings");
        assert_eq!(settings.remove("ms").as_deref(), Some("8"));
        assert_eq!(settings.joined(" ", "1"), " zoned=1 pi=1");
        assert_eq!(settings.joined(",", "on"), ",zoned=on,pi=1");
        assert_eq!(settings.remove("ms"), None);
    }
}
