//! Machine files with mistakes: the examples with a value, a line or a letter changed. Each is
//! refused with a place, or gives a machine on which a job ends.

use crate::common::try_on;
use fathom_core::Xoshiro256;
use fathom_virtual::MachineModel;

const EXAMPLES: [(&str, &str); 10] = [
    (
        "constant",
        include_str!("../../../../examples/machines/constant.toml"),
    ),
    (
        "hdd",
        include_str!("../../../../examples/machines/hdd.toml"),
    ),
    (
        "usb",
        include_str!("../../../../examples/machines/usb.toml"),
    ),
    (
        "ssd",
        include_str!("../../../../examples/machines/ssd.toml"),
    ),
    (
        "array",
        include_str!("../../../../examples/machines/array.toml"),
    ),
    (
        "layers",
        include_str!("../../../../examples/machines/layers.toml"),
    ),
    (
        "noisy",
        include_str!("../../../../examples/machines/noisy.toml"),
    ),
    (
        "one-server",
        include_str!("../../../../examples/machines/one-server.toml"),
    ),
    (
        "zoned",
        include_str!("../../../../examples/machines/zoned.toml"),
    ),
    ("distribution", DISTRIBUTION),
];

const DISTRIBUTION: &str = "[[device]]\nnames = [\"*\"]\nmodel = \"distribution\"\n\
                            capacity_gib = 1\n[device.distribution.read]\n\
                            latency_ns = [1000, 2000]\ncount = [5, 1]\n\
                            [device.distribution.write]\nlatency_ns = [1000]\ncount = [5]\n\
                            [[device.stall]]\nat_ms = 1\nfor_ms = 1\n\
                            [device.faults]\nlost_ppm = 9\n";

const VALUES: [&str; 15] = [
    "0",
    "1",
    "2",
    "-1",
    "0.001",
    "65536",
    "1_000_000",
    "1e9",
    "18446744073709551615",
    "99999999999999999999999",
    "nan",
    "true",
    "\"none\"",
    "[]",
    "[18446744073709551615, 1]",
];

/// Returns the text with one change.
fn changed(text: &str, random: &mut Xoshiro256) -> String {
    let mut pick = |count: usize| usize::try_from(random.below(count as u64)).expect("small");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = pick(lines.len());
    match pick(8) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(line, lines[pick(lines.len())].clone()),
        2 => {
            let letters: Vec<char> = lines[line].chars().collect();
            let cut = pick(letters.len() + 1);
            lines[line] = letters.into_iter().take(cut).collect();
        }
        _ => {
            let keys: Vec<usize> = (0..lines.len())
                .filter(|&at| lines[at].contains('='))
                .collect();
            let line = keys[pick(keys.len())];
            let (key, _) = lines[line].split_once('=').expect("a key");
            lines[line] = format!("{key}= {}", VALUES[pick(VALUES.len())]);
        }
    }
    lines.join("\n")
}

#[test]
fn whatever_is_changed_there_is_a_place_or_a_machine() {
    let job = "--machine=m --seeks --name=j --filename=/dev/d --direct=1 --ioengine=libaio \
               --iodepth=3 --rw=randrw --bs=16k --number_ios=20 --norandommap --size=1m \
               --ignore_error=ETIMEDOUT";
    let (mut refused, mut ran) = (0, 0);
    for seed in 0..2000 {
        let mut random = Xoshiro256::new(seed);
        let (name, text) = EXAMPLES[usize::try_from(seed).expect("small") % EXAMPLES.len()];
        let mut text = text.to_owned();
        for _ in 0..=u32::from(random.below(4) == 0) {
            text = changed(&text, &mut random);
        }
        match MachineModel::parse("m.toml", &text) {
            Err(error) => {
                refused += 1;
                for problem in &error.problems {
                    let (line, column) = (problem.origin.line, problem.origin.column);
                    assert!(line > 0 && column > 0, "{name} {seed}: {error}\n{text}");
                    assert!(problem.hint.is_some(), "{name} {seed}: {error}\n{text}");
                }
            }
            // Names that nobody uses, and too small a device, are refused here.
            Ok(machine) => {
                ran += u32::from(try_on(&machine, job, &mut |_| {}, &|| 0).is_ok());
            }
        }
    }
    assert!(refused > 200 && ran > 70, "{refused} {ran}");
}

#[test]
fn a_list_of_tables_has_nothing_else() {
    let text = "device = [{ names = [\"*\"], model = \"constant\", capacity_gib = 1, \
                constant = { latency_us = 1 } }, 5]\n";
    let error = MachineModel::parse("m.toml", text).expect_err("5 is no device");
    assert!(
        error.to_string().contains("`device` must be tables"),
        "{error}"
    );
}
