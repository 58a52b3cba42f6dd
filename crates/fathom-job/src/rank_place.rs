//! Places of the ranks of a run: this one's, and that in which a section with `rank_shift` works.

use std::collections::HashSet;

use crate::environment::Environment;
use crate::placement::RankShift;
use crate::problem::Problem;
use crate::rank::{self, Rank};

/// Place of one rank in a run, from which its names, offsets and seeds derive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankPlace {
    /// Rank, and number of ranks.
    pub rank: Rank,
    /// Number among the ranks of its host, from 0.
    pub on_host: u32,
    /// Name of its host.
    pub host: String,
    /// Name by which a user of `--client` has called it: `$clientuid`, and the beginning of
    /// generated file names; `None` otherwise.
    pub client: Option<String>,
    /// Port that was given with that name, for the report.
    pub port: Option<u16>,
}

impl RankPlace {
    /// Returns the end of the names of this rank's logs, as fio's clients add it: `.HOST`, for the
    /// second rank of a host `.HOST.1`; empty in a run alone, but for that of a single client.
    #[must_use]
    pub fn log_suffix(&self) -> String {
        let host = self.client.as_deref().unwrap_or(&self.host);
        // A name with a slash would be a path.
        let host = host.replace('/', "_");
        match (self.rank.ranks, self.on_host) {
            (0 | 1, _) if self.client.is_none() => String::new(),
            (_, 0) => format!(".{host}"),
            (_, number) => format!(".{host}.{number}"),
        }
    }
}

/// Ranks of a run, as their launcher knows them.
#[derive(Clone, Copy, Debug)]
pub struct KnownRanks<'a> {
    /// Rank of this process.
    pub own: u32,
    /// Places of all, in order of rank.
    pub all: &'a [RankPlace],
}

impl<'a> KnownRanks<'a> {
    /// Returns the place of a rank; `None` if there is no such rank.
    pub(crate) fn place(self, rank: u32) -> Option<&'a RankPlace> {
        self.all.get(usize::try_from(rank).ok()?)
    }

    /// Returns the shortest distance at which every rank works in place of one on another host.
    fn distance_of_hosts(self) -> Option<u32> {
        let ranks = self.all.len();
        let is_elsewhere =
            |at: usize, by: usize| self.all[at].host != self.all[(at + by) % ranks].host;
        let mut distances = 1..ranks;
        let found = distances.find(|&by| (0..ranks).all(|at| is_elsewhere(at, by)))?;
        u32::try_from(found).ok()
    }

    fn hosts(self) -> usize {
        let hosts: HashSet<&str> = self.all.iter().map(|place| place.host.as_str()).collect();
        hosts.len()
    }
}

/// Returns the place of this process: as the launcher knows it, else as `--rank` says. A run alone
/// is rank 0 of 1. An invalid rank counts as none here, and is refused where it stands.
pub(crate) fn own(args: &[String], environment: &dyn Environment) -> RankPlace {
    let known = environment.ranks();
    if let Some(place) = known.and_then(|known| known.place(known.own)) {
        return place.clone();
    }
    let mut given = None;
    for (at, arg) in args.iter().enumerate() {
        if let Some(("--rank", value)) = arg.split_once('=') {
            given = Some(value);
        } else if arg == "--rank" {
            given = args.get(at + 1).map(String::as_str);
        }
    }
    let rank = given.and_then(|text| rank::rank(text, environment).ok());
    let on_host = match given {
        Some(text) if text.starts_with("auto") => rank::on_host(environment),
        _ => 0,
    };
    RankPlace {
        rank: rank.unwrap_or_default(),
        on_host,
        host: environment.host_name(),
        client: None,
        port: None,
    }
}

/// Returns the rank in whose place a section of this rank works.
///
/// # Errors
/// There is no other rank, or it is not known where the ranks are.
pub(crate) fn target(
    shift: RankShift,
    own: &RankPlace,
    environment: &dyn Environment,
) -> Result<u32, Problem> {
    let Rank { rank, ranks } = own.rank;
    if shift == RankShift::None {
        return Ok(rank);
    }
    let refused = |why: String, fix: &str| Err(Problem::new("bad-shift", 0..0, why).fix(fix));
    if ranks < 2 {
        let why = format!("`rank_shift={shift}` needs other ranks, and this run has one");
        return refused(why, "start several, with `--rank=N/M` each; or remove it");
    }
    let by = match shift {
        RankShift::None => 0,
        RankShift::By(by) => i64::from(by),
        RankShift::Node => i64::from(distance_of_hosts(own, environment)?),
    };
    let target = (i64::from(rank) + by).rem_euclid(i64::from(ranks));
    let target = u32::try_from(target).unwrap_or(rank);
    if target == rank {
        let why = format!("`rank_shift={shift}` leads each of {ranks} ranks back to itself");
        return refused(
            why,
            "choose a number that is not a multiple of the number of ranks",
        );
    }
    Ok(target)
}

/// Returns the distance of `rank_shift=node`.
fn distance_of_hosts(own: &RankPlace, environment: &dyn Environment) -> Result<u32, Problem> {
    let refused = |why: &str| {
        let problem = Problem::new("bad-shift", 0..0, format!("`rank_shift=node`: {why}"));
        Err(problem.fix("write the number of ranks per host: `rank_shift=4`"))
    };
    let one_host = "all ranks are on one host";
    if let Some(known) = environment.ranks() {
        return match known.distance_of_hosts() {
            Some(distance) => Ok(distance),
            None if known.hosts() < 2 => refused(one_host),
            None => refused("one host has more than half of the ranks"),
        };
    }
    let Some(per_host) = rank::per_host(environment).filter(|per_host| *per_host > 0) else {
        return refused("no launcher reports which ranks share a host");
    };
    if per_host >= own.rank.ranks {
        return refused(one_host);
    }
    if own.rank.rank % per_host != own.on_host || !own.rank.ranks.is_multiple_of(per_host) {
        return refused("the ranks are not placed host by host, the same number on each");
    }
    Ok(per_host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    fn place(rank: u32, ranks: u32, host: &str, on_host: u32) -> RankPlace {
        RankPlace {
            rank: Rank { rank, ranks },
            on_host,
            host: host.to_owned(),
            client: None,
            port: None,
        }
    }

    /// Returns the places of ranks on hosts with names of one letter.
    fn places(hosts: &str) -> Vec<RankPlace> {
        let ranks = u32::try_from(hosts.len()).unwrap();
        let each = (0..).zip(hosts.chars());
        each.map(|(rank, host)| place(rank, ranks, &host.to_string(), 0))
            .collect()
    }

    #[track_caller]
    fn check(shift: RankShift, own: &RankPlace, world: &World, want: Result<u32, &str>) {
        let got = target(shift, own, world).map_err(|problem| problem.why);
        assert_eq!(got, want.map_err(str::to_owned));
    }

    #[test]
    fn a_shift_goes_around() {
        let world = World::default();
        check(RankShift::None, &RankPlace::default(), &world, Ok(0));
        check(RankShift::By(1), &place(3, 4, "a", 0), &world, Ok(0));
        check(RankShift::By(-1), &place(0, 4, "a", 0), &world, Ok(3));
        check(RankShift::By(5), &place(0, 4, "a", 0), &world, Ok(1));
        check(
            RankShift::By(8),
            &place(0, 4, "a", 0),
            &world,
            Err("`rank_shift=8` leads each of 4 ranks back to itself"),
        );
        check(
            RankShift::By(1),
            &place(0, 1, "a", 0),
            &world,
            Err("`rank_shift=1` needs other ranks, and this run has one"),
        );
    }

    #[test]
    fn known_hosts_tell_the_distance_of_another() {
        #[track_caller]
        fn check_node(hosts: &str, want: Result<u32, &str>) {
            let all = places(hosts);
            let world = World::default().with_ranks(0, &all);
            check(RankShift::Node, &all[0], &world, want);
        }
        check_node("abc", Ok(1));
        check_node("aabbcc", Ok(2));
        check_node("abab", Ok(1));
        check_node(
            "aaabb",
            Err("`rank_shift=node`: one host has more than half of the ranks"),
        );
        check_node("aaa", Err("`rank_shift=node`: all ranks are on one host"));
    }

    #[test]
    fn launchers_tell_the_ranks_of_a_host() {
        #[track_caller]
        fn check_node(variables: &[(&str, &str)], own: &RankPlace, want: Result<u32, &str>) {
            let mut world = World::default();
            for (name, value) in variables {
                world = world.with_variable(name, value);
            }
            check(RankShift::Node, own, &world, want);
        }
        let open = [
            ("OMPI_COMM_WORLD_RANK", "5"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
        ];
        check_node(&open, &place(5, 8, "a", 1), Ok(1));
        check_node(
            &open,
            &place(5, 8, "a", 2),
            Err(
                "`rank_shift=node`: the ranks are not placed host by host, the same number on each",
            ),
        );
        check_node(
            &open,
            &place(3, 4, "a", 3),
            Err("`rank_shift=node`: all ranks are on one host"),
        );
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_TASKS_PER_NODE", "2(x3)")];
        check_node(&slurm, &place(0, 6, "a", 0), Ok(2));
        let uneven = [("SLURM_PROCID", "0"), ("SLURM_TASKS_PER_NODE", "2(x3),1")];
        let unknown = "`rank_shift=node`: no launcher reports which ranks share a host";
        check_node(&uneven, &place(0, 7, "a", 0), Err(unknown));
        check_node(&[], &place(0, 2, "a", 0), Err(unknown));
    }

    #[test]
    fn logs_of_ranks_end_like_those_of_fios_clients() {
        let suffix = |place: RankPlace| place.log_suffix();
        assert_eq!(suffix(RankPlace::default()), "");
        assert_eq!(suffix(place(1, 2, "node7", 0)), ".node7");
        assert_eq!(suffix(place(1, 2, "node7", 1)), ".node7.1");
        let called = RankPlace {
            client: Some("10.0.0.7".to_owned()),
            ..place(0, 2, "node7", 0)
        };
        assert_eq!(suffix(called), ".10.0.0.7");
    }
}
