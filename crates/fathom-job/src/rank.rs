//! `--rank` and `--start-at`: the place of a run among those on other hosts.

use crate::environment::Environment;
use crate::problem::Problem;

/// Place of a run among the ranks that run the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// From 0.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
}

impl Default for Rank {
    /// Returns the rank of a run alone.
    fn default() -> Self {
        Self { rank: 0, ranks: 1 }
    }
}

impl Rank {
    /// Returns the name of its record in the folder of all.
    #[must_use]
    pub fn record_name(self) -> String {
        format!("rank-{:04}.json", self.rank)
    }
}

/// Agreed start of all ranks, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTime {
    /// Nanoseconds since midnight: of the day on which that is the closest.
    TimeOfDay(u64),
    /// Nanoseconds since 1970-01-01.
    Moment(u64),
}

impl StartTime {
    /// Returns the moment, ns since 1970, as seen at another.
    ///
    /// # Errors
    /// It is past, or a day ahead; in words.
    pub fn resolve(self, now_ns: u64) -> Result<u64, String> {
        let moment = match self {
            Self::Moment(moment) => moment,
            Self::TimeOfDay(of_day) => {
                let today = now_ns / DAY_NS * DAY_NS + of_day;
                if today.saturating_add(DAY_NS / 2) <= now_ns {
                    today + DAY_NS
                } else if today > now_ns.saturating_add(DAY_NS / 2) {
                    today.saturating_sub(DAY_NS)
                } else {
                    today
                }
            }
        };
        if moment <= now_ns {
            let ago_s = (now_ns - moment) / 1_000_000_000;
            return Err(format!("that was {ago_s} s ago"));
        }
        if moment - now_ns >= DAY_NS {
            return Err("that is a day ahead, or more".to_owned());
        }
        Ok(moment)
    }
}

/// Reads `N/M`, `auto` or `auto/M`.
pub(crate) fn rank(text: &str, environment: &dyn Environment) -> Result<Rank, Problem> {
    let whole = 0..text.len();
    let (own, ranks) = match text.split_once('/') {
        Some((own, ranks)) => (own, Some(number(ranks).ok_or_else(|| bad_rank(text))?)),
        None => (text, None),
    };
    let rank = match (own, ranks) {
        ("auto", ranks) => from_launcher(text, ranks, environment)?,
        (own, Some(ranks)) => Rank {
            rank: number(own).ok_or_else(|| bad_rank(text))?,
            ranks,
        },
        (_, None) => return Err(bad_rank(text)),
    };
    if rank.rank >= rank.ranks || rank.ranks > RANKS_MAX {
        let Rank { rank, ranks } = rank;
        let why = match rank < ranks {
            true => format!("{ranks} ranks are more than {RANKS_MAX}"),
            false => format!("there is no rank {rank} of {ranks}: ranks are numbered from 0"),
        };
        return Err(Problem::new("bad-rank", whole, why));
    }
    Ok(rank)
}

fn bad_rank(text: &str) -> Problem {
    let why = format!("`{text}` is not a rank");
    let problem = Problem::new("bad-rank", 0..text.len(), why);
    problem.fix("write the rank, from 0, and the number of ranks: `3/16`; or `auto`, `auto/16`")
}

/// Reads the variables of the launcher. The innermost is asked first: within a batch job `mpirun`
/// leaves the variables of the batch system as they are.
fn from_launcher(
    text: &str,
    ranks: Option<u32>,
    environment: &dyn Environment,
) -> Result<Rank, Problem> {
    let variable = |name: &str| environment.variable(name);
    let wrong = |why: String| Problem::new("bad-rank", 0..text.len(), why);
    for (of_rank, of_ranks) in LAUNCHERS {
        let Some(own) = variable(of_rank) else {
            continue;
        };
        let why = || wrong(format!("`{of_rank}` is `{own}`, which is not a number"));
        let rank = number(&own).ok_or_else(why)?;
        let told = of_ranks.and_then(|name| Some((name, variable(name)?)));
        let told = told.map(|(name, told)| {
            let why = || wrong(format!("`{name}` is `{told}`, which is not a number"));
            number(&told).ok_or_else(why)
        });
        return match (ranks, told.transpose()?) {
            (Some(ranks), Some(told)) if ranks != told => Err(wrong(format!(
                "the launcher has started {told} ranks, not {ranks}"
            ))),
            (Some(ranks), _) | (None, Some(ranks)) => Ok(Rank { rank, ranks }),
            (None, None) => {
                let why = format!(
                    "`{of_rank}` gives the rank, but nothing gives the number of \
                                   ranks"
                );
                Err(wrong(why).fix("add it: `--rank=auto/16`"))
            }
        };
    }
    let names: Vec<&str> = LAUNCHERS.iter().map(|(name, _)| *name).collect();
    let why = format!("the launcher has set none of {}", names.join(", "));
    Err(wrong(why).fix("write the rank and the number of ranks: `--rank=3/16`"))
}

/// Returns the number of this rank among those of its host, as the launcher reports it; else 0.
pub(crate) fn on_host(environment: &dyn Environment) -> u32 {
    let started = LAUNCHERS_LOCAL
        .iter()
        .find(|(of_rank, _)| environment.variable(of_rank).is_some());
    let told = started.and_then(|(_, name)| environment.variable(name));
    told.and_then(|text| number(&text)).unwrap_or(0)
}

/// Returns the number of ranks on this host, where the launcher reports it; with Slurm only if all
/// hosts have the same.
pub(crate) fn per_host(environment: &dyn Environment) -> Option<u32> {
    let variable = |name: &str| environment.variable(name);
    let (_, name) = LAUNCHERS_PER_HOST
        .iter()
        .find(|(of_rank, _)| variable(of_rank).is_some())?;
    let text = variable(name)?;
    // Slurm's `4(x2)`: four on each of two hosts.
    let count = match text.split_once("(x") {
        Some((count, hosts)) => {
            number(hosts.strip_suffix(')')?)?;
            count
        }
        None => &text,
    };
    number(count)
}

/// Reads `HH:MM[:SS[.FRACTION]]Z`, after `YYYY-MM-DDT` for a full time.
pub(crate) fn start_at(text: &str) -> Result<StartTime, Problem> {
    let bad = || {
        let why = format!("`{text}` is not a time in UTC");
        let problem = Problem::new("bad-start-time", 0..text.len(), why);
        problem.fix("write `17:30:00Z`, or `2026-11-24T17:30:00Z`; Z stands for UTC")
    };
    let of_day = |text: &str| time_of_day_ns(text.strip_suffix('Z')?);
    match text.split_once('T') {
        None => of_day(text).map(StartTime::TimeOfDay).ok_or_else(bad),
        Some((date, time)) => {
            let moment = || day_ns(date)?.checked_add(of_day(time)?);
            moment().map(StartTime::Moment).ok_or_else(bad)
        }
    }
}

fn time_of_day_ns(text: &str) -> Option<u64> {
    let (text, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut fields = text.split(':');
    let (hour, minute) = (fields.next()?, fields.next()?);
    let second = fields.next();
    if fields.next().is_some() || (second.is_none() && !fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    let two = |field: &str, limit: u32| {
        let value = number(field).filter(|value| field.len() == 2 && *value < limit)?;
        Some(u64::from(value))
    };
    let seconds = two(hour, 24)? * 3600 + two(minute, 60)? * 60 + two(second.unwrap_or("00"), 60)?;
    let nanos = match fraction {
        "" => 0,
        digits => u64::from(number(&format!("{digits:0<9}"))?),
    };
    Some(seconds * 1_000_000_000 + nanos)
}

/// Returns the start of a day, ns since 1970; `None` if there is no such day until 2554.
fn day_ns(date: &str) -> Option<u64> {
    let mut fields = date.split('-');
    let (year, month, day) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let year = number(year).filter(|year| (1970..2554).contains(year))?;
    let month = number(month).filter(|month| (1..=12).contains(month))?;
    let is_leap = |year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let length = |month: u32| match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let day = number(day).filter(|day| (1..=length(month)).contains(day))?;
    let years: u32 = (1970..year)
        .map(|year| 365 + u32::from(is_leap(year)))
        .sum();
    let months: u32 = (1..month).map(length).sum();
    u64::from(years + months + day - 1).checked_mul(DAY_NS)
}

/// Reads digits alone: `+1` is not a rank.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// Variables of rank and number of ranks: Open MPI, PMI (MPICH, Intel, Slurm), Slurm, and
/// Kubernetes' Indexed Job, which does not tell the number.
const LAUNCHERS: [(&str, Option<&str>); 4] = [
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMI_RANK", Some("PMI_SIZE")),
    ("SLURM_PROCID", Some("SLURM_NTASKS")),
    ("JOB_COMPLETION_INDEX", None),
];

/// Variables of rank and of rank on the host. PMI's own does not tell: MPICH and Intel MPI do.
const LAUNCHERS_LOCAL: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "MPI_LOCALRANKID"),
    ("SLURM_PROCID", "SLURM_LOCALID"),
];

/// Variables of rank and of the number of ranks on the host.
const LAUNCHERS_PER_HOST: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_TASKS_PER_NODE"),
];

/// As many as `fathom-hosts` conducts: beyond, a list is more likely wrong than the cluster large.
const RANKS_MAX: u32 = 65_536;

const DAY_NS: u64 = 86_400 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[track_caller]
    fn check_rank(text: &str, variables: &[(&str, &str)], want: Result<(u32, u32), &str>) {
        let mut world = World::default();
        for (name, value) in variables {
            world = world.with_variable(name, value);
        }
        let got = rank(text, &world).map(|rank| (rank.rank, rank.ranks));
        let got = got.map_err(|problem| problem.why);
        assert_eq!(got, want.map_err(str::to_owned));
    }

    #[test]
    fn ranks_are_given_or_told_by_the_launcher() {
        check_rank("3/16", &[], Ok((3, 16)));
        check_rank("0/1", &[], Ok((0, 1)));
        let slurm = [("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")];
        check_rank("auto", &slurm, Ok((2, 4)));
        let both = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "1"),
            ("OMPI_COMM_WORLD_RANK", "5"),
            ("OMPI_COMM_WORLD_SIZE", "8"),
        ];
        check_rank("auto", &both, Ok((5, 8)));
        check_rank("auto", &[("PMI_RANK", "1"), ("PMI_SIZE", "2")], Ok((1, 2)));
        check_rank("auto/9", &[("JOB_COMPLETION_INDEX", "8")], Ok((8, 9)));
    }

    #[test]
    fn what_is_no_rank_is_refused() {
        for text in ["3", "/", "3/", "/3", "-1/3", "+1/3", "a/3", "1/2/3"] {
            check_rank(text, &[], Err(&format!("`{text}` is not a rank")));
        }
        check_rank(
            "16/16",
            &[],
            Err("there is no rank 16 of 16: ranks are numbered from 0"),
        );
        check_rank(
            "0/0",
            &[],
            Err("there is no rank 0 of 0: ranks are numbered from 0"),
        );
        check_rank("0/65537", &[], Err("65537 ranks are more than 65536"));
        check_rank(
            "auto",
            &[],
            Err(
                "the launcher has set none of OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, \
                 JOB_COMPLETION_INDEX",
            ),
        );
        let index = [("JOB_COMPLETION_INDEX", "8")];
        let untold = "`JOB_COMPLETION_INDEX` gives the rank, but nothing gives the number of ranks";
        check_rank("auto", &index, Err(untold));
        check_rank(
            "auto/8",
            &index,
            Err("there is no rank 8 of 8: ranks are numbered from 0"),
        );
        let slurm = [("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4")];
        check_rank(
            "auto/5",
            &slurm,
            Err("the launcher has started 4 ranks, not 5"),
        );
        let odd = [("PMI_RANK", "x"), ("PMI_SIZE", "2")];
        check_rank(
            "auto",
            &odd,
            Err("`PMI_RANK` is `x`, which is not a number"),
        );
    }

    #[test]
    fn times_are_of_a_day_or_full() {
        let of_day = |text| start_at(text).ok();
        let second = 1_000_000_000;
        assert_eq!(
            of_day("17:30:00Z"),
            Some(StartTime::TimeOfDay(63_000 * second))
        );
        assert_eq!(of_day("00:01Z"), Some(StartTime::TimeOfDay(60 * second)));
        assert_eq!(
            of_day("00:00:01.25Z"),
            Some(StartTime::TimeOfDay(1_250_000_000))
        );
        let moment = StartTime::Moment(1_795_541_400 * second);
        assert_eq!(of_day("2026-11-24T17:30:00Z"), Some(moment));
        let leap = StartTime::Moment(951_782_400 * second);
        assert_eq!(of_day("2000-02-29T00:00Z"), Some(leap));
        for text in [
            "",
            "Z",
            "17:30",
            "17:30:00",
            "24:00Z",
            "17:60Z",
            "7:30Z",
            "17:30:00:00Z",
            "17:30.5Z",
            "2026-02-29T00:00Z",
            "2026-13-01T00:00Z",
            "26-01-01T00:00Z",
            "1969-12-31T00:00Z",
            "17:30:00.1234567890Z",
        ] {
            assert_eq!(of_day(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_closest_one() {
        let noon = 20_000 * DAY_NS + DAY_NS / 2;
        let hour = DAY_NS / 24;
        let of_day = |hours: u64| StartTime::TimeOfDay(hours * hour);
        assert_eq!(of_day(13).resolve(noon), Ok(noon + hour));
        assert_eq!(of_day(1).resolve(noon + 11 * hour), Ok(noon + 13 * hour));
        let past = Err("that was 3600 s ago".to_owned());
        assert_eq!(of_day(11).resolve(noon), past);
        assert_eq!(of_day(23).resolve(noon - 12 * hour), past);
        let ahead = Err("that is a day ahead, or more".to_owned());
        assert_eq!(StartTime::Moment(noon + DAY_NS).resolve(noon), ahead);
        assert_eq!(
            StartTime::Moment(noon + DAY_NS - 1).resolve(noon),
            Ok(noon + DAY_NS - 1)
        );
    }
}
