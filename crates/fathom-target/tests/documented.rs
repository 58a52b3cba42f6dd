//! docs/TARGET.md lists every device and policy with its keys.

use fathom_target::{DEVICES, POLICIES};

const DOCUMENT: &str = include_str!("../../../docs/TARGET.md");

#[track_caller]
fn check(name: &str, keys: &[&str], help: &str) {
    let quoted = |key: &&str| match key.contains(' ') {
        true => (*key).to_owned(),
        false => format!("`{key}`"),
    };
    let keys = match keys {
        [] => "none".to_owned(),
        keys => keys.iter().map(quoted).collect::<Vec<_>>().join(", "),
    };
    let row = format!("| `{name}` | {keys} | {help} |\n");
    assert!(
        DOCUMENT.contains(&row),
        "docs/TARGET.md lacks this row:\n{row}"
    );
}

#[test]
fn every_device_and_policy_has_its_row() {
    for device in DEVICES {
        check(device.name, device.keys, device.help);
    }
    for policy in POLICIES {
        check(policy.name, policy.keys, policy.help);
    }
}
