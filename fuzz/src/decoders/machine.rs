//! Machine files: descriptions of modelled devices, in TOML.

use fathom_virtual::MachineModel;

use crate::target::Verdict;

/// Decodes a machine file and builds its first device.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Ok(text) = std::str::from_utf8(input) else {
        return Ok(Verdict::Refused("not UTF-8".to_owned()));
    };
    match MachineModel::parse("m.toml", text) {
        Ok(machine) => {
            let _ = machine.first();
            Ok(Verdict::Accepted)
        }
        Err(error) if error.problems.is_empty() => Err("refused without a problem".to_owned()),
        Err(error) => Ok(Verdict::Refused(
            error.diagnostics().render("fathom", false),
        )),
    }
}

/// Keys and table heads of the examples.
pub(crate) fn words() -> Vec<String> {
    words_of(&EXAMPLES)
}

/// Returns the keys and table heads of TOML files.
pub(crate) fn words_of(files: &[&str]) -> Vec<String> {
    let mut words = std::collections::BTreeSet::new();
    for line in files.iter().flat_map(|text| text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.starts_with('[') {
            words.insert(format!("{line}\n"));
        } else if let Some((key, _)) = line.split_once('=') {
            words.insert(format!("{} = ", key.trim_end()));
        }
    }
    words.into_iter().collect()
}

const EXAMPLES: [&str; 8] = [
    include_str!("../../../examples/machines/array.toml"),
    include_str!("../../../examples/machines/constant.toml"),
    include_str!("../../../examples/machines/hdd.toml"),
    include_str!("../../../examples/machines/layers.toml"),
    include_str!("../../../examples/machines/noisy.toml"),
    include_str!("../../../examples/machines/one-server.toml"),
    include_str!("../../../examples/machines/ssd.toml"),
    include_str!("../../../examples/machines/usb.toml"),
];
