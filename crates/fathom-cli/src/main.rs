//! The program `fathom`; under the name `fio` it takes fio's arguments directly.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fathom_cli::main()
}
