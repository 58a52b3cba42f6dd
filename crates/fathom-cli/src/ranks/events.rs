//! Events of a run on many hosts, as rank 0 prints them.

use fathom_hosts::{Event, Rank, Refusal, StopReason};
use fathom_job::Dialect;

use crate::output::{self, StandardStream};

/// Returns the receiver of events that prints them with the names of the hosts, by rank. `seen`:
/// rank whose reasons against a plan have been printed already.
pub(crate) fn printer(
    dialect: Dialect,
    names: Vec<String>,
    seen: Option<Rank>,
) -> Box<dyn FnMut(&Event)> {
    Box::new(move |event| {
        if let Some(text) = text(dialect, &names, seen, event) {
            output::print(StandardStream::Error, &text);
        }
    })
}

fn text(dialect: Dialect, names: &[String], seen: Option<Rank>, event: &Event) -> Option<String> {
    let program = dialect.program();
    let who = |rank: Rank| match names
        .get(rank.get() as usize)
        .filter(|name| !name.is_empty())
    {
        Some(name) => format!("rank {rank} on {name}"),
        None => format!("rank {rank}"),
    };
    Some(match event {
        Event::Refused { refusals, left_out } => {
            let news = refusals
                .iter()
                .filter(|refusal| Some(refusal.ranks[0]) != seen);
            let mut text: String = news
                .map(|refusal| format!("{program}: {}\n", refused(refusal, names)))
                .collect();
            if *left_out > 0 {
                text += &format!("{program}: {left_out} more reasons\n");
            }
            text
        }
        Event::RankFailed { rank, reason } => {
            format!("{program}: {} failed: {reason}\n", who(*rank))
        }
        Event::RankLost { rank, silent } => format!(
            "{program}: {} is lost: silent for {} s; the others finish what they are running\n",
            who(*rank),
            silent.as_millis() / 1000
        ),
        Event::RankReturned(rank) => {
            format!(
                "{program}: {} is back; nothing more starts there\n",
                who(*rank)
            )
        }
        Event::Stopping { reason, rank } => {
            let why = match reason {
                StopReason::Requested => "was asked to stop",
                StopReason::ExitAll => "has ended a job with `exitall`",
                StopReason::ExitAllOnError => "has a failed job, and `exitall_on_error` is set",
                // Told by their own events.
                _ => return None,
            };
            format!("{program}: stopping on all ranks: {} {why}\n", who(*rank))
        }
        Event::BadMessage { rank, error } => format!("{program}: {}: {error}\n", who(*rank)),
        Event::LinkFailed(why) => format!("{program}: {why}\n"),
        _ => return None,
    })
}

/// Formats a reason against the plan with the hosts that have it.
fn refused(refusal: &Refusal, names: &[String]) -> String {
    let hosts = refusal.ranks.iter().map(|rank| {
        let name = names
            .get(rank.get() as usize)
            .filter(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| format!("rank {rank}"))
    });
    let mut hosts: Vec<String> = hosts.collect();
    hosts.dedup();
    let more = hosts.len().saturating_sub(NAMES_MAX);
    hosts.truncate(NAMES_MAX);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}: {}", hosts.join(", "), refusal.reason)
}

/// Most hosts named with a reason.
const NAMES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use fathom_core::Nanos;
    use fathom_hosts::Text;

    use super::*;

    #[track_caller]
    fn check(event: &Event, seen: Option<Rank>, want: Option<&str>) {
        let names = ["n1", "n2", "", "n4", "n5", "n6"].map(str::to_owned);
        let got = text(Dialect::Fathom, &names, seen, event);
        assert_eq!(got.as_deref(), want);
    }

    #[test]
    fn ranks_are_named_with_their_hosts() {
        let rank = Rank::new(1);
        let silent = Nanos::from_millis(11_200);
        let lost = "fathom: rank 1 on n2 is lost: silent for 11 s; the others finish what they are \
                    running\n";
        check(&Event::RankLost { rank, silent }, None, Some(lost));
        let returned = Event::RankReturned(Rank::new(2));
        let back = "fathom: rank 2 is back; nothing more starts there\n";
        check(&returned, None, Some(back));
        let asked = Event::Stopping {
            reason: StopReason::Requested,
            rank,
        };
        let stopping = "fathom: stopping on all ranks: rank 1 on n2 was asked to stop\n";
        check(&asked, None, Some(stopping));
        check(&Event::AllThrough, None, None);
    }

    #[test]
    fn reasons_are_told_once_with_all_their_hosts() {
        let refusal = |reason: &str, ranks: &[u32]| Refusal {
            reason: Text::new(reason),
            ranks: ranks.iter().copied().map(Rank::new).collect(),
        };
        let refused = Event::Refused {
            refusals: vec![
                refusal("no space\nhint: make room", &[0, 1, 2, 3, 4, 5]),
                refusal("no device", &[3]),
            ],
            left_out: 2,
        };
        let of_n4 = "fathom: n4: no device\nfathom: 2 more reasons\n";
        let of_all = "fathom: n1, n2, rank 2, n4 and 2 more: no space\nhint: make room\n";
        check(&refused, None, Some(&format!("{of_all}{of_n4}")));
        check(&refused, Some(Rank::new(0)), Some(of_n4));
    }
}
