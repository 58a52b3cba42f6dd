//! Reports compared with fio's own, line by line: words, blanks, order and kinds of number. The
//! captured outputs are of fio 3.33; this program prints the form of 3.42, which differs in what
//! `as_3_42` and `NEW_KEYS` list (seen in published outputs of fio 3.42).

use crate::captured::Captured;

#[test]
fn null_engine_both_directions() {
    check(include_str!("../data/fio-3.33-null-randrw.txt"));
}

#[test]
fn groups_with_syncs_and_lat_percentiles() {
    check(include_str!("../data/fio-3.33-group.txt"));
}

#[test]
fn libaio_with_all_percentiles() {
    check(include_str!("../data/fio-3.33-libaio.txt"));
}

#[test]
fn a_single_trim() {
    check(include_str!("../data/fio-3.33-one-trim.txt"));
}

#[test]
fn no_latencies_tolerated_errors_and_bits() {
    check(include_str!("../data/fio-3.33-reduced.txt"));
}

#[test]
fn a_failed_job() {
    check(include_str!("../data/fio-3.33-failed.txt"));
}

#[test]
fn a_rate_with_samples() {
    check(include_str!("../data/fio-3.33-rate.txt"));
}

#[test]
fn two_groups_in_thousands() {
    check(include_str!("../data/fio-3.33-two-groups.txt"));
}

#[track_caller]
fn check(output: &str) {
    let captured = Captured::read(output);
    let want: Vec<String> = captured.text.lines().map(as_3_42).collect();
    let text = crate::text(&captured.record);
    compare(&text.lines().collect::<Vec<_>>(), &want);
    let json = crate::json(&captured.record, true);
    let want: Vec<String> = captured
        .json
        .lines()
        .map(|line| uncomma(line).to_owned())
        .collect();
    compare(&without_new_keys(&json), &want);
    let plain = crate::json(&captured.record, false);
    assert_eq!(without_bins(&json), without_bins(&plain));
    assert!(!plain.contains("bins"));
}

/// Converts a line of fio 3.33's text to the form of 3.42.
fn as_3_42(line: &str) -> String {
    let line = line.replace("; 0 zone resets", "");
    let line = line.replace("target=0, window=0,", "target=0.00ns, window=0.00ns,");
    let line = line.replace("sync_file_range:", "sync_file_range/syncfs:");
    line.replace(", merge=", ", sectors=0/0, merge=")
}

/// Keys that 3.33 does not have: 3.42's, and ours.
const NEW_KEYS: [&str; 5] = [
    "job_start",
    "latency_target_ns",
    "latency_window_us",
    "read_sectors",
    "write_sectors",
];

/// Returns the lines of a document without new keys, Fathom's, and the commas that depend on them.
fn without_new_keys(document: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut ours_until = None;
    for line in document.lines() {
        let indent = line.len() - line.trim_start().len();
        match ours_until {
            Some(end) if indent > end => {}
            Some(_) => ours_until = None,
            None if line.trim() == r#""fathom" : {"# => ours_until = Some(indent),
            None if NEW_KEYS
                .iter()
                .any(|key| line.contains(&format!("\"{key}\" :"))) => {}
            None => lines.push(uncomma(line)),
        }
    }
    lines
}

fn without_bins(document: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in document.lines() {
        inside |= line.contains("\"bins\" :");
        if !inside {
            lines.push(uncomma(line));
        }
        inside &= !line.trim_start().starts_with('}');
    }
    lines
}

fn uncomma(line: &str) -> &str {
    line.strip_suffix(',').unwrap_or(line)
}

#[track_caller]
fn compare(got: &[&str], want: &[String]) {
    let mut section = "";
    for (index, (got, want)) in got.iter().zip(want).enumerate() {
        if want.contains(": {") || want.contains("lat (") {
            section = want;
        }
        // How ops spread over spans of latency is known to a histogram's bucket only.
        let slack = if section.contains("latency_") || section.contains("lat (") {
            1.5
        } else {
            0.0
        };
        assert!(
            same(got, want, slack),
            "line {index}\n got {got}\nwant {want}"
        );
    }
    assert_eq!(got.len(), want.len());
}

/// Returns whether two lines are equal but for `slack` in their fractions, and for what six
/// decimals of a mean or deviation cannot tell.
fn same(got: &str, want: &str, slack: f64) -> bool {
    if got.contains("fio version") {
        return got == format!("  \"fio version\" : \"{}\"", fathom_report::FIO_VERSION);
    }
    let (got, want) = (pieces(got), pieces(want));
    got.len() == want.len()
        && got.iter().zip(&want).all(|(got, want)| {
            let decimals = |piece: &str| piece.split_once('.').map(|(_, fraction)| fraction.len());
            got == want
                || match (got.parse::<f64>(), want.parse::<f64>()) {
                    (Ok(a), Ok(b)) if decimals(got) == decimals(want) && got.contains('.') => {
                        (a - b).abs() <= slack.max(b * 1e-8)
                    }
                    _ => false,
                }
        })
}

/// Splits a line into numbers and the text between them.
fn pieces(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut numeric = None;
    for character in line.chars() {
        let kind = character.is_ascii_digit() || character == '.';
        match pieces.last_mut() {
            Some(piece) if numeric == Some(kind) => piece.push(character),
            _ => pieces.push(character.to_string()),
        }
        numeric = Some(kind);
    }
    pieces
}
