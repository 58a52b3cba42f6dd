//! Arguments of `fathom-mpi`.

use std::ffi::OsString;
use std::path::PathBuf;

use fathom_job::Dialect;

use crate::version::VERSION;
use crate::words;

/// Part of a process in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A rank that measures, by these arguments of `fathom run`.
    Run(Vec<String>),
    /// A rank of `--client`, on a host: rank 0 sends the arguments.
    Join,
    /// Rank 0 of `--client`, beside the user.
    Conduct {
        /// Folder through which the program that the user started learns of the end.
        folder: PathBuf,
        /// Name under which it was started.
        dialect: Dialect,
        /// Its arguments.
        words: Vec<String>,
    },
    /// Nothing but a text.
    Print(String),
}

impl Role {
    /// Reads the arguments after the name of the program.
    pub(crate) fn of(args: &[OsString]) -> Result<Self, String> {
        let args = words::to_text(args)?;
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        match &words[..] {
            ["run", words @ ..] => Ok(Self::Run(owned(words))),
            ["join"] => Ok(Self::Join),
            ["conduct", folder, name, words @ ..] => Ok(Self::Conduct {
                folder: folder.into(),
                dialect: match *name {
                    "fio" => Dialect::Fio,
                    _ => Dialect::Fathom,
                },
                words: owned(words),
            }),
            ["--version" | "-V"] => Ok(Self::Print(format!("fathom-mpi {VERSION}\n"))),
            ["--help" | "-h"] => Ok(Self::Print(HELP.to_owned())),
            [] => Err(format!("no arguments\n{HINT}")),
            [first, ..] => Err(format!("`{first}` is not a command\n{HINT}")),
        }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

const HINT: &str = "hint: start it with a launcher: `mpirun fathom-mpi run job.fio`";
const HELP: &str = "\
Run a job file on all ranks of an MPI job, as one run

Usage: mpirun … fathom-mpi run [FIO ARGUMENTS]

Takes the arguments of `fathom run`; see `fathom run --help`. Each rank writes its record into the
folder of --record; rank 0 adds them up and prints the report. Start a rank on each host:

  Open MPI  mpirun --hostfile hosts --map-by ppr:1:node --bind-to none fathom-mpi run job.fio
  MPICH     mpiexec -f hosts -ppn 1 fathom-mpi run job.fio
  Slurm     srun --mpi=pmix --ntasks-per-node=1 --cpu-bind=none fathom-mpi run job.fio

Exit codes: 0 done; 1 done, but a check failed; 2 not done, or not completely.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, want: Result<Role, &str>) {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let got = Role::of(&words);
        let got = got.map_err(|text| text.lines().next().unwrap_or_default().to_owned());
        assert_eq!(got, want.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn arguments_give_each_process_its_part() {
        let words = vec!["job.fio".to_owned(), "--eta=never".to_owned()];
        check("run job.fio --eta=never", Ok(Role::Run(words.clone())));
        check("join", Ok(Role::Join));
        for (name, dialect) in [("fio", Dialect::Fio), ("fathom", Dialect::Fathom)] {
            let conduct = Role::Conduct {
                folder: "/tmp/x".into(),
                dialect,
                words: words.clone(),
            };
            check(
                &format!("conduct /tmp/x {name} job.fio --eta=never"),
                Ok(conduct),
            );
        }
        check("", Err("no arguments"));
        check("job.fio", Err("`job.fio` is not a command"));
        check("join now", Err("`join` is not a command"));
    }
}
