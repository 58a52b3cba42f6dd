//! Logs of the ranks of `--client`, copied to the directory in which the user started them.
//!
//! Each gets the name here that it has there, which ends with the host's. The logs there stay: they
//! are the only copy until this one is whole, and may be the same files.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fathom_host::output_file::{OutputFile, Stop};
use fathom_hosts::{BulkLink as _, FileFetch, Gather, Item, Rank};
use fathom_record::Warning;

use crate::ranks::crew::Crew;
use crate::ranks::exchange::{self, Offer};
use crate::ranks::offered_logs::{RankLog, identity};
use crate::ranks::task::{RankHost, places};

/// Fetches the logs of all ranks but the lost ones, one after another. Returns a warning for each
/// log that is left behind.
pub(crate) fn bring_home(crew: &Crew, hosts: &[RankHost], lost: &[Rank]) -> Result<Vec<Warning>> {
    let suffixes = places(hosts).into_iter().map(|place| place.log_suffix());
    // Rank 0 is here, and measures nothing.
    let ranks = (1..).map(Rank::new).zip(hosts.iter().zip(suffixes));
    let ranks: Vec<_> = ranks.filter(|(rank, _)| !lost.contains(rank)).collect();
    let mut warnings = Vec::new();
    for (rank, (host, suffix)) in ranks {
        let logs = match list(crew, rank) {
            Ok(logs) => logs,
            Err(why) => {
                warnings.push(left_behind("its logs stay", &host.name, &why));
                continue;
            }
        };
        for (place, log) in (0..).zip(logs) {
            if let Err(why) = bring(crew, (rank, place), &log, &suffix) {
                let what = format!("{} stays", log.path);
                warnings.push(left_behind(&what, &host.name, &why));
            }
        }
    }
    Ok(warnings)
}

/// Returns the list of a rank's logs.
fn list(crew: &Crew, rank: Rank) -> Result<Vec<RankLog>> {
    let mut ranks = crew.ranks.borrow_mut();
    let mut gather = Gather::new(crew.clock.now(), Item::Files, [rank]);
    let mut text = Vec::new();
    while !gather.is_done() {
        let now = crew.clock.now();
        let any = exchange::step(&mut gather, ranks.link_mut(), now, &mut |_, fetched| {
            text = fetched?;
            Ok(())
        })?;
        ranks.poll(true);
        exchange::rest(any);
    }
    match text.is_empty() {
        true => Ok(Vec::new()),
        false => serde_json::from_slice(&text).context("a list that cannot be read"),
    }
}

/// Fetches one log of a rank, unless it is here already.
fn bring(crew: &Crew, (rank, place): (Rank, u32), log: &RankLog, suffix: &str) -> Result<()> {
    let path = home(&log.path, suffix)?;
    match fs::metadata(path) {
        Ok(found) if identity(&found) == log.identity => return Ok(()),
        Ok(found) if !found.is_file() => bail!("here it is not a regular file"),
        Ok(_) | Err(_) => {}
    }
    let mut file = OutputFile::create(path, &Stop::never())?;
    let mut ranks = crew.ranks.borrow_mut();
    let mut fetch = FileFetch::new(crew.clock.now(), rank, place);
    ranks.link_mut().send_bulk(rank, &fetch.want())?;
    while !fetch.is_done() {
        let now = crew.clock.now();
        let mut pieces = Vec::new();
        let nothing = Offer::default();
        let any = nothing.serve(ranks.link_mut(), &mut |from, piece| {
            pieces.push((from, piece.clone()));
        })?;
        for (from, piece) in pieces {
            let Some(bytes) = fetch.handle_piece(now, from, &piece)? else {
                continue;
            };
            io::Write::write_all(&mut file, bytes)?;
            if !fetch.is_done() {
                ranks.link_mut().send_bulk(rank, &fetch.want())?;
            }
        }
        fetch.handle_timeout(now)?;
        // The others hear that this rank lives.
        ranks.poll(true);
        exchange::rest(any);
    }
    file.finish()?;
    Ok(())
}

/// Returns the path here of a log of a rank: the same as there. A host may name no other file than
/// one that ends with its own name.
fn home<'a>(path: &'a str, suffix: &str) -> Result<&'a Path> {
    match !suffix.is_empty() && path.ends_with(suffix) {
        true => Ok(Path::new(path)),
        false => bail!("this is not the name of a log of that host"),
    }
}

fn left_behind(what: &str, host: &str, why: &anyhow::Error) -> Warning {
    Warning {
        code: "log_left_behind".to_owned(),
        message: format!("{what} on {host}: {why:#}"),
        hint: "copy it from there, with `scp` for example".to_owned(),
        ..Warning::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, want: bool) {
        let got = home(path, ".n1");
        assert_eq!(got.is_ok(), want, "{path}");
        assert!(got.is_err() || got.unwrap() == Path::new(path));
    }

    #[test]
    fn a_host_names_its_own_logs_alone() {
        check("a_bw.1.log.n1", true);
        check("../logs/a_bw.1.log.n1", true);
        check("/var/tmp/a_bw.1.log.n1", true);
        check("a_bw.1.log.n2", false);
        check(".bashrc", false);
        assert!(home("a_bw.1.log", "").is_err());
    }
}
