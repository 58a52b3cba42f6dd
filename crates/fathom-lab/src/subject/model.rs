//! Facts of a modelled machine: the keys of its file, each with its table.

use std::collections::BTreeMap;

/// Adds the keys of a machine file below `path`, as in `model.device.ssd.channels`. Tables after
/// the first of a name have a number, as in variants of a lab: `model.device.1.ssd.channels`.
///
/// The text was read as TOML when it ran; here its lines are taken apart, and a value over several
/// lines is joined, so that a file of a later version can be compared, too.
pub(super) fn add(path: &str, text: &str, facts: &mut BTreeMap<String, String>) {
    let mut tables: BTreeMap<&str, usize> = BTreeMap::new();
    let mut table = path.to_owned();
    // Key of a list or table that goes on in the next lines.
    let mut open: Option<String> = None;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(value) = open.as_ref().and_then(|key| facts.get_mut(key)) {
            value.push(' ');
            value.push_str(line);
            open = open.filter(|_| is_open(value));
        } else if let Some((name, _)) = line.strip_prefix("[[").and_then(|at| at.split_once("]]")) {
            let number = tables.entry(name.trim()).and_modify(|number| *number += 1);
            number.or_default();
            table = numbered(path, name.trim(), &tables);
        } else if let Some(name) = header(line) {
            table = numbered(path, name, &tables);
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (format!("{table}.{}", key.trim()), value.trim());
            open = is_open(value).then(|| key.clone());
            facts.insert(key, value.to_owned());
        }
    }
}

/// Returns the name in a line such as `[device.ssd]`.
fn header(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix('[')?.split_once(']')?;
    let is_name =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// Returns the path of a table, with the number of the last list element that it belongs to.
fn numbered(path: &str, name: &str, tables: &BTreeMap<&str, usize>) -> String {
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    let number = tables.get(first).copied().unwrap_or_default();
    let mut all = format!("{path}.{first}");
    if number > 0 {
        all.push_str(&format!(".{number}"));
    }
    if !rest.is_empty() {
        all.push_str(&format!(".{rest}"));
    }
    all
}

/// Returns whether a value is a list or table that goes on in the next line.
fn is_open(value: &str) -> bool {
    let count = |letters: [char; 2]| value.matches(letters).count();
    count(['[', '{']) > count([']', '}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_with_their_tables() {
        let text = r#"# A drive.
[[device]]
names = [
    "/dev/sda",   # the first
]
[device.ssd]
channels = 4

[[device]]
names = ["/dev/sdb"]
[device.queue]
policy = "fair"
"#;
        let mut facts = BTreeMap::new();
        add("model", text, &mut facts);
        let told: Vec<String> = facts
            .iter()
            .map(|(key, value)| format!("{key} {value}"))
            .collect();
        let want = [
            r#"model.device.1.names ["/dev/sdb"]"#,
            r#"model.device.1.queue.policy "fair""#,
            r#"model.device.names [ "/dev/sda",   # the first ]"#,
            "model.device.ssd.channels 4",
        ];
        assert_eq!(told, want);
    }
}
