//! `--client`: a command line for ranks on other hosts.

use crate::environment::Environment;
use crate::plan::Settings;
use crate::problem::Problem;
use crate::source::Spot;

/// Run on other hosts, as a command line asks for it.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Hosts in the order given, with what each has to run.
    pub groups: Vec<ClientGroup>,
    /// Settings, of which those of the reports count beside the user.
    pub settings: Settings,
}

/// Hosts that one `--client` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientGroup {
    /// Value of `--client`: a host, or a file with a host a line.
    pub hosts: String,
    /// Command line of the ranks there, without the switches that choose hosts.
    pub words: Vec<String>,
    /// Job files that the hosts read themselves (`--remote-config`).
    pub own_files: Vec<String>,
}

/// Switches and job files of a command line, sorted by `--client`.
pub(crate) struct ClientWords<'a> {
    args: &'a [String],
    /// Numbers of the arguments that choose hosts, from 0.
    choosing: Vec<usize>,
    groups: Vec<Group>,
    /// Job files before the first `--client`.
    files: Vec<usize>,
}

#[derive(Default)]
struct Group {
    hosts: String,
    files: Vec<usize>,
    own_files: Vec<String>,
}

impl<'a> ClientWords<'a> {
    pub(crate) const fn new(args: &'a [String]) -> Self {
        Self {
            args,
            choosing: Vec::new(),
            groups: Vec::new(),
            files: Vec::new(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Begins the group of this `--client`.
    pub(crate) fn begin(&mut self, name: &Spot, value: &Spot) {
        self.choose(name, value);
        self.groups.push(Group {
            hosts: value.text().to_owned(),
            ..Group::default()
        });
    }

    /// Adds a job file that the hosts read themselves.
    pub(crate) fn add_own_file(&mut self, name: &Spot, value: &Spot) -> Result<(), Problem> {
        self.choose(name, value);
        let Some(group) = self.groups.last_mut() else {
            let whole = 0..value.range.len();
            let problem = Problem::new("no-client", whole, "`--remote-config` without `--client`");
            return Err(problem.fix("write it after the `--client` whose hosts have the file"));
        };
        group.own_files.push(value.text().to_owned());
        Ok(())
    }

    /// Notes a job file.
    pub(crate) fn add_file(&mut self, spot: &Spot) {
        let files = match self.groups.last_mut() {
            Some(group) => &mut group.files,
            None => &mut self.files,
        };
        files.extend(index(spot));
    }

    fn choose(&mut self, name: &Spot, value: &Spot) {
        self.choosing
            .extend([name, value].into_iter().filter_map(index));
    }

    /// Returns the hosts with the words of each. Job files after a `--client` are for its hosts;
    /// those before the first one, and those after the last one if the others have none, are for
    /// all. `is_rank`: this process is a rank of a run.
    pub(crate) fn finish(&self, settings: &Settings, is_rank: bool) -> Result<Clients, Problem> {
        if is_rank {
            let why = "`--client` is an option of `fathom run`, which starts the ranks";
            return Err(Problem::new("one-host", 0..0, why).fix("start it without a launcher"));
        }
        if let Some((switch, why)) = of_one_host(settings) {
            let why = format!("`{switch}` with `--client`: {why}");
            return Err(Problem::new("one-host", 0..0, why).fix(format!("leave out `{switch}`")));
        }
        let without = self
            .groups
            .iter()
            .filter(|group| !group.has_files())
            .count();
        let last = self
            .groups
            .last()
            .filter(|_| without + 1 == self.groups.len());
        let for_all = last.filter(|last| last.has_files() && self.files.is_empty());
        if without > 0 && without < self.groups.len() && for_all.is_none() && self.files.is_empty()
        {
            let lacking = self.groups.iter().find(|group| !group.has_files());
            let hosts = lacking.map_or("", |group| &group.hosts);
            let why = format!("`--client={hosts}` has no job file, but others do");
            let problem = Problem::new("no-job-file", 0..0, why);
            return Err(problem.fix("write a job file after each `--client`, or one for all"));
        }
        let groups = self.groups.iter().map(|group| {
            let from = for_all.unwrap_or(group);
            let is_file = |at: &usize| self.groups.iter().any(|group| group.files.contains(at));
            let is_kept = |at: &usize| {
                !self.choosing.contains(at) && (!is_file(at) || from.files.contains(at))
            };
            let kept = (0..self.args.len()).filter(is_kept);
            ClientGroup {
                hosts: group.hosts.clone(),
                words: kept.map(|at| self.args[at].clone()).collect(),
                own_files: from.own_files.clone(),
            }
        });
        Ok(Clients {
            groups: groups.collect(),
            settings: settings.clone(),
        })
    }
}

impl Group {
    const fn has_files(&self) -> bool {
        !self.files.is_empty() || !self.own_files.is_empty()
    }
}

/// Returns the number of an argument, from 0.
fn index(spot: &Spot) -> Option<usize> {
    usize::try_from(spot.argument?.checked_sub(1)?).ok()
}

/// Returns the first switch that is of use on one host alone, or has another meaning there, with
/// the reason: for runs on ranks that a launcher starts.
#[must_use]
pub fn of_one_host(settings: &Settings) -> Option<(&'static str, &'static str)> {
    let one = "it would show one rank, not all";
    let launcher = "the launcher gives the rank";
    let agreed = "the ranks agree on their start themselves";
    let given = [
        ("--rank", settings.rank.is_some(), launcher),
        ("--start-at", settings.start_at.is_some(), agreed),
        (
            "--machine",
            settings.machine.is_some(),
            "modelled ranks need no launcher",
        ),
        ("--live", settings.live, one),
        ("--serve", settings.serve.is_some(), one),
        (
            "--history",
            settings.history,
            "the history has runs of this machine",
        ),
        ("--metrics-file", settings.metrics_file.is_some(), one),
        ("--status-interval", settings.status_interval.is_some(), one),
        (
            "--save-distribution",
            settings.save_distribution.is_some(),
            one,
        ),
        (
            "--trigger",
            settings.trigger.is_some(),
            "each rank would run it",
        ),
    ];
    let first = given.into_iter().find(|(_, is_given, _)| *is_given);
    first.map(|(switch, _, why)| (switch, why))
}

/// Processes that a launcher has started beside this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Variable with their number.
    pub variable: &'static str,
    /// Their number, this one included.
    pub count: u32,
}

impl Launched {
    /// Reads the variables of launchers; `None` if there is none, or it has started one process.
    #[must_use]
    pub fn of(environment: &dyn Environment) -> Option<Self> {
        let told = COUNTS.into_iter().filter_map(|variable| {
            let count = environment.variable(variable)?.trim().parse().ok()?;
            Some(Self { variable, count })
        });
        told.max_by_key(|launched| launched.count)
            .filter(|launched| launched.count > 1)
    }
}

/// Variables with the number of processes: of Open MPI, of PMI (MPICH, Intel MPI), and of a step of
/// Slurm; `SLURM_NTASKS` is set in a batch script too, which is one process.
const COUNTS: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

#[cfg(test)]
mod tests {
    use crate::rank_place::RankPlace;
    use crate::testing::World;
    use crate::{Dialect, parse};

    #[test]
    fn a_rank_starts_no_ranks() {
        let world = World::default().with_ranks(0, &[RankPlace::default()]);
        let words = ["--client=localhost", "m.fio"].map(str::to_owned);
        let refusal = parse(&words, Dialect::Fathom, &world).unwrap_err();
        let text = refusal.diagnostics.render("fathom-mpi", false);
        assert!(
            text.contains("`--client` is an option of `fathom run`"),
            "{text}"
        );
        assert!(!text.contains("--rank"), "{text}");
    }
}
