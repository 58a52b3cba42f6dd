//! Start of the ranks of `--client`: its time limit, and the hosts that have not met it.

use std::collections::BTreeSet;

use anyhow::Result;
use fathom_core::Nanos;

use crate::failure::with_hint;

/// Returns the time that all ranks have to start: 120 s, or as the user's environment says.
pub(crate) fn patience() -> Result<Nanos> {
    let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
    let text = named.map(|named| named.to_string_lossy().into_owned());
    patience_of(text.as_deref())
}

fn patience_of(text: Option<&str>) -> Result<Nanos> {
    let Some(text) = text else {
        return Ok(Nanos::from_secs(PATIENCE_SECONDS));
    };
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| (1..=PATIENCE_SECONDS_MAX).contains(seconds));
    seconds.map(Nanos::from_secs).ok_or_else(|| {
        let hint = format!("set it to seconds, 1 to {PATIENCE_SECONDS_MAX}, or unset it");
        with_hint(
            format!("--client: {VARIABLE}: {text:?} is not a number of seconds"),
            Some(hint),
        )
    })
}

/// Returns the error about hosts that have not started in time. `here` are the ranks that said that
/// they are there, of which rank 0 is the user's side, and each further one a host.
pub(crate) fn late(patience: Nanos, here: &BTreeSet<u32>, hosts: &[&str]) -> anyhow::Error {
    let seconds = patience.get() / Nanos::from_secs(1).get();
    let missing = (1..).zip(hosts).filter(|(rank, _)| !here.contains(rank));
    let missing: Vec<&str> = missing.map(|(_, host)| *host).collect();
    let (why, look) = match (missing.is_empty(), here.contains(&0)) {
        (true, _) => (
            "all ranks have started, but MPI has not connected them".to_owned(),
            "let the hosts reach each other by TCP, such as by `--mca btl_tcp_if_include` of Open \
             MPI",
        ),
        // Launchers start no rank before they have reached all hosts.
        (false, false) => (
            format!("the launcher has started no rank: {}", listed(&missing)),
            "check that `ssh HOST true` returns at once, without a question",
        ),
        (false, true) => (
            format!("no rank has started on {}", listed(&missing)),
            "check that `fathom-mpi --version` returns there",
        ),
    };
    let hint = format!("{look}; a slow start has longer with {VARIABLE}=SECONDS");
    with_hint(
        format!("--client: gave up after {seconds} s: {why}"),
        Some(hint),
    )
}

/// Returns the first names, and the number of the others.
fn listed(names: &[&str]) -> String {
    let (shown, more) = names.split_at(names.len().min(SHOWN_MAX));
    let shown = shown.join(", ");
    match more.len() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

const VARIABLE: &str = "FATHOM_CLIENT_PATIENCE";
/// A guess: a launcher needs some seconds for a thousand hosts.
const PATIENCE_SECONDS: u64 = 120;
const PATIENCE_SECONDS_MAX: u64 = 86_400;
const SHOWN_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patience_is_a_number_of_seconds() {
        for (text, want) in [(None, 120), (Some("1"), 1), (Some("86400"), 86_400)] {
            assert_eq!(patience_of(text).unwrap(), Nanos::from_secs(want));
        }
        for odd in [
            "0",
            "-1",
            "86401",
            "1s",
            " 1",
            "18446744073709551616",
            "x\n",
        ] {
            let refused = patience_of(Some(odd)).unwrap_err().to_string();
            assert!(refused.contains("1 to 86400"), "{refused}");
        }
    }

    #[track_caller]
    fn check(here: &[u32], want: &str) {
        let here = here.iter().copied().collect();
        let text = late(Nanos::from_secs(7), &here, &["a", "b", "c"]).to_string();
        let start = format!("--client: gave up after 7 s: {want}\nhint: ");
        assert!(text.starts_with(&start), "{text}");
    }

    #[test]
    fn hosts_that_are_late_are_named() {
        check(&[], "the launcher has started no rank: a, b, c");
        check(&[0, 2], "no rank has started on a, c");
        check(
            &[0, 1, 2, 3],
            "all ranks have started, but MPI has not connected them",
        );
        let many = vec!["h"; 18];
        assert!(listed(&many).ends_with("h, h and 2 more"));
    }
}
