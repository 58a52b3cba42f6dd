//! `fathom table io-pacing`: targets and initiators of its own, beside the published figures.

use crate::common::Folder;

/// Rows with and without a limit of buffers, with slow devices and several initiators.
#[test]
fn rows_are_measured_beside_the_published_ones() {
    let asked = "table io-pacing --devices memory --depth 85 --slow 16 --pacing none,buffers \
                 --buffers 48 --initiators 2 --repeat 1 --seconds 1 --json";
    let folder = Folder::new();
    let run = folder.fathom(asked).expect(0);
    let said = ["2 runs of 1 s, at least ", "1 of 2: memory, none, depth 85"];
    for (line, said) in run.err.lines().zip(said) {
        assert!(line.starts_with(&format!("io-pacing: {said}")), "{line}");
    }
    let table = run.json();
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{table:#}");
    for (row, pacing) in rows.iter().zip(["none", "buffers 48"]) {
        assert_eq!(row["pacing"], pacing);
        let number = |name: &str| {
            row[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {row:#}"))
        };
        assert!(number("kiops") > 0.0);
        let initiators = number("initiator_1_gbps") + number("initiator_2_gbps");
        // Each figure is rounded to a tenth.
        assert!((number("bw_gbps") - initiators).abs() < 0.2, "{row:#}");
        assert!(number("fast_gbps") <= number("bw_gbps") + 0.1, "{row:#}");
        assert!(number("lat_us") > 0.0);
    }
    assert_eq!(rows[0]["published_bw_gbps"], serde_json::Value::Null);
    assert_eq!(rows[1]["published_bw_gbps"], 135.8);
}

#[track_caller]
fn check_refused(arguments: &str, why: &str) {
    let run = Folder::new()
        .fathom(&format!("table {arguments}"))
        .expect(2);
    assert!(run.err.contains(why), "{}", run.err);
}

#[test]
fn what_does_not_apply_is_refused() {
    check_refused("io-pacing --test fast", "one of none, buffers");
    check_refused("io-pacing --test none --depth 1", "--depth does not apply");
    check_refused("io-pacing --slow-depth 3", "--slow");
    check_refused("io-pacing --period 0", "0.1 to 1000000");
    check_refused("io-pacing /dev/null", "takes no target");
    check_refused(
        "hdd-tags --buffers 3",
        "--buffers applies to io-pacing only",
    );
}
