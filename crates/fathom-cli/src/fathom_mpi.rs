//! The program `fathom-mpi`: one rank of a run, started by an MPI launcher.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fathom_cli::main_of_rank()
}
