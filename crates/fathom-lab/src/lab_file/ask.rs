//! `ask`: values that the command line gives, and the devices that may be written.

use std::ops::Range;

use fathom_toml::Fields;

use super::reader::Reader;

/// Notes values that are missing, and values that nothing asks for.
pub(super) fn check(reader: &Reader<'_>, lab: &Fields<'_>) {
    let mut asked = Vec::new();
    if let Some(table) = lab.table("ask", true) {
        for entry in table.entries() {
            asked.push(entry.key);
            one(reader, entry.key, &entry.key_span, entry.value.scalar());
        }
    }
    for (name, _) in reader.arguments {
        if !asked.contains(&name.as_str()) {
            let why = format!("`{name}=` was given, and the lab file does not ask for it");
            let hint = match asked.is_empty() {
                true => format!("leave it out, or add `ask = {{ {name} = \"…\" }}` to `[lab]`"),
                false => format!("it asks for: {}", asked.join(", ")),
            };
            reader.refuse(&lab.span(), why, hint);
        }
    }
}

fn one(reader: &Reader<'_>, name: &str, span: &Range<usize>, sentence: Option<String>) {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let why = format!("`{}` is not a name for a value", name.escape_debug());
        return reader.refuse(span, why, "use letters, digits and `_`, as in `DEV`");
    }
    let Some(sentence) = sentence else {
        let why = format!("`ask.{name}` must be a text that says what to give");
        return reader.refuse(span, why, "write it as in `DEV = \"a drive, only read\"`");
    };
    if !reader.arguments.iter().any(|(given, _)| given == name) {
        reader.set_incomplete();
        let why = format!("`{name}` is missing: {sentence}");
        let hint = format!(
            "give it after the file, as `fathom lab {} {name}=VALUE`",
            reader.file
        );
        reader.refuse(span, why, hint);
    }
}

/// Reads `writes`: the block devices that may be written, and the files that a precondition may
/// write although the jobs only read them.
pub(super) fn writes(reader: &Reader<'_>, lab: &Fields<'_>, has_precondition: bool) -> Vec<String> {
    if !lab.has("writes") {
        return Vec::new();
    }
    let mut devices = Vec::new();
    for (device, span) in lab.texts("writes") {
        let Some(device) = reader.substituted(device, &span) else {
            continue;
        };
        if !has_precondition && !device.starts_with("/dev/") && !device.contains("${") {
            let why = format!("`{device}` is not a block device");
            reader.refuse(
                &span,
                why,
                "name devices here, as `/dev/nvme0n1`; files need no permission",
            );
        }
        devices.push(device);
    }
    devices
}
