//! Coverage of the cases: every option of tiers A and B, every engine and every switch has one.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::case::{Case, Wanted};
use super::trial::{self, Programs};
use crate::process;

/// Prints what no case tries, and returns true if that is nothing.
pub(crate) fn check(programs: &Programs, cases: &[Case], taken: &Options) -> Result<bool> {
    let root = process::root()?;
    let known = root.join("crates/fathom-job/src/table/known.tsv");
    let known = std::fs::read_to_string(&known)
        .with_context(|| format!("cannot read {}", known.display()))?;
    let options: Vec<Known<'_>> = known.lines().filter_map(known_option).collect();
    let engines = trial::run(&programs.ours, &programs.folder, &["--enghelp"])?.stdout;
    let page = std::fs::read_to_string(root.join("docs/COMPATIBILITY.md"))?;
    let run = cases.iter().filter(|case| runs(case));
    let tried: BTreeSet<Setting> = run.flat_map(settings).collect();
    // A switch may refuse its arguments, so a case that expects a refusal counts.
    let given: BTreeSet<Setting> = cases.iter().flat_map(settings).collect();
    let has =
        |settings: &BTreeSet<Setting>, name: &str| settings.iter().any(|(key, _)| key == name);

    let wanted = options
        .iter()
        .filter(|option| matches!(option.tier, "A" | "B"));
    let (ours, later): (Vec<_>, Vec<_>) =
        wanted.partition(|option| taken.contains(option.names[0]));
    let tries = |option: &&&Known<'_>| option.names.iter().any(|name| has(&tried, name));
    let untried = ours
        .iter()
        .filter(|option| !tries(option))
        .map(|option| option.names[0]);
    let mut missing = report("options of tiers A and B", ours.len(), untried);
    if !later.is_empty() {
        let names: Vec<_> = later.iter().map(|option| option.names[0]).collect();
        println!("compat: not implemented yet: {}", names.join(" "));
    }
    let engines = engines.lines().skip(1).map(str::trim);
    let engines: Vec<&str> = engines.filter(|name| !name.is_empty()).collect();
    let is_tried = |name: &&str| tried.contains(&("ioengine".to_owned(), (*name).to_owned()));
    let untried = engines.iter().copied().filter(|name| !is_tried(name));
    missing += report("engines", engines.len(), untried);
    let switches: Vec<&str> = page.lines().filter_map(switch).collect();
    let untried = switches.iter().copied().filter(|name| !has(&given, name));
    missing += report("switches", switches.len(), untried);
    Ok(missing == 0)
}

/// Names of options.
pub(crate) type Options = BTreeSet<String>;

/// Returns the options that the program takes.
pub(crate) fn taken(programs: &Programs) -> Result<Options> {
    let help = trial::run(&programs.ours, &programs.folder, &["--cmdhelp=all"])?.stdout;
    let names = help
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    // Long names have no blank before the colon.
    let names = names.map(|name| name.trim_end_matches(':').to_owned());
    Ok(names.collect())
}

/// Key and value.
type Setting = (String, String);

/// Prints one line, and returns the number of items without a case or an excuse.
fn report<'a>(what: &str, all: usize, untried: impl Iterator<Item = &'a str>) -> usize {
    let (excused, missing): (Vec<&str>, Vec<&str>) =
        untried.partition(|name| UNTRIED.iter().any(|(excused, _)| excused == name));
    let tried = all - excused.len() - missing.len();
    println!("compat: {tried} of {all} {what} have a case");
    for name in excused {
        let reason = UNTRIED.iter().find(|(excused, _)| *excused == name);
        println!(
            "compat: not tried: {name}: {}",
            reason.map_or("", |(_, reason)| reason)
        );
    }
    if !missing.is_empty() {
        println!("compat: no case tries: {}", missing.join(" "));
    }
    missing.len()
}

/// Returns whether Fathom runs the job of a case, rather than refusing it.
fn runs(case: &Case) -> bool {
    !matches!(case.wanted, Wanted::Stricter | Wanted::Refused)
}

/// Returns the keys and values that a case sets, on its command line or in job files.
fn settings(case: &Case) -> Vec<Setting> {
    let pair = |text: &str| {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        (key.trim().to_owned(), value.trim().to_owned())
    };
    let words = case.words.iter().filter_map(|word| word.strip_prefix('-'));
    let words = words.map(|word| pair(word.trim_start_matches('-')));
    let lines = case.files.iter().flat_map(|(_, text)| text.lines());
    words.chain(lines.map(|line| pair(line.trim()))).collect()
}

/// Option of fio's table.
struct Known<'a> {
    /// Name, then aliases.
    names: Vec<&'a str>,
    tier: &'a str,
}

fn known_option(line: &str) -> Option<Known<'_>> {
    let mut fields = line.split('\t');
    let name = fields.next().filter(|name| !name.starts_with('#'))?;
    let aliases = fields.next()?.split(',').filter(|alias| !alias.is_empty());
    let names = std::iter::once(name).chain(aliases).collect();
    Some(Known {
        names,
        tier: fields.nth(1)?,
    })
}

/// Parses a switch that the compatibility page lists as supported.
fn switch(line: &str) -> Option<&str> {
    let name = line.strip_prefix("| `--")?.split('`').next()?;
    let verdict = line.rsplit('|').nth(1)?.trim();
    (verdict.starts_with("same") || verdict.starts_with("stricter")).then_some(name)
}

/// Options and engines that no case can compare with fio, with the reason.
const UNTRIED: &[(&str, &str)] = &[
    (
        "ioscheduler",
        "needs a device of its own, whose scheduler it changes",
    ),
    (
        "allow_mounted_write",
        "needs a mounted device that may be written",
    ),
    ("hipri", "needs a device with queues that are polled"),
    (
        "nvme_tcp",
        "fio has it as a plugin of SPDK's; tested beside our target and Linux's",
    ),
    (
        "nbd",
        "needs a server; tested beside nbdkit, qemu-nbd and one of our own",
    ),
    ("uri", "as nbd"),
    (
        "http",
        "needs a server, and a build of its own; tested beside Apache and a server of our own",
    ),
    ("https", "as http"),
    ("http_host", "as http"),
    ("http_user", "as http"),
    ("http_pass", "as http"),
    ("http_mode", "as http"),
    ("http_object_mode", "as http"),
    ("http_s3_key", "as http"),
    ("http_s3_keyid", "as http"),
    ("http_s3_security_token", "as http"),
    ("http_s3_region", "as http"),
    ("http_s3_sse_customer_key", "as http"),
    ("http_s3_sse_customer_algorithm", "as http"),
    ("http_s3_storage_class", "as http"),
    ("http_swift_auth_token", "as http"),
    ("http_verbose", "as http"),
    ("http_retries", "not in fio; tested by itself"),
    ("http_check_etag", "not in fio; tested by itself"),
    (
        "nfs",
        "Debian's fio has it not; tested beside nfs-ganesha by itself",
    ),
    ("nfs_url", "as nfs"),
    (
        "libiscsi",
        "Debian's fio has it not; tested beside tgt by itself",
    ),
    ("initiator", "as libiscsi"),
    ("connections", "not in fio; tested by itself"),
    ("replies", "not in fio; tested by itself"),
    ("connect_timeout", "not in fio; tested by itself"),
    ("reply_timeout", "not in fio; tested by itself"),
    (
        "io_uring_cmd",
        "needs an NVMe namespace; tested by `cargo xtask qemu`",
    ),
    (
        "sg",
        "needs a SCSI disk; compared with fio by `cargo xtask qemu`",
    ),
    ("dircreate", "not in fio 3.33; tested by itself"),
    ("dirstat", "not in fio 3.33; tested by itself"),
    ("dirdelete", "not in fio 3.33; tested by itself"),
    ("page_fault", "not in fio 3.33; tested by itself"),
    ("help", "each prints its own text"),
    ("crctest", "seconds of a processor's time; tested by itself"),
    (
        "memcpytest",
        "seconds of a processor's time; tested by itself",
    ),
    ("cpuclock-test", "its verdict is the machine's"),
    ("record", "not in fio; refused under its name"),
    ("record-every", "not in fio; refused under its name"),
    ("metrics-file", "not in fio; refused under its name"),
    ("history", "not in fio; refused under its name"),
    ("tag", "not in fio; refused under its name"),
    ("live", "not in fio; refused under its name"),
    ("serve", "not in fio; refused under its name"),
    ("serve-any-host", "not in fio; refused under its name"),
    ("rank", "not in fio; refused under its name"),
    ("start-at", "not in fio; refused under its name"),
    ("stop-together", "not in fio; refused under its name"),
];

#[cfg(test)]
mod tests {
    use super::super::case::parse;
    use super::*;

    #[test]
    fn what_a_case_sets_is_found_in_words_and_files() {
        let case = &parse(
            "x",
            "case a\n  run --rw=read -bs=4k\n  file t.fio\n    [t]\n    thread\n",
        )
        .unwrap()[0];
        let keys: Vec<_> = settings(case).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["rw", "bs", "[t]", "thread"]);
    }

    #[test]
    fn tables_are_read() {
        let option = known_option("rw\treadwrite\t\tA").unwrap();
        assert_eq!((option.names, option.tier), (vec!["rw", "readwrite"], "A"));
        assert!(known_option("# words").is_none());
        assert_eq!(switch("| `--eta`, `-e` | Show | same |"), Some("eta"));
        assert_eq!(
            switch("| `--debug`, `-d` | Trace | refused for now |"),
            None
        );
    }

    #[test]
    fn one_that_is_missing_is_counted_and_one_that_is_excused_is_not() {
        assert_eq!(report("things", 3, ["hipri", "other"].into_iter()), 1);
    }
}
