//! The program `fathom-mpi`: one rank of a run, started by an MPI launcher.
//!
//! ```text
//! rank 0    task out ─► run ─► record written ─► all through ─► records in, sum, report ─► leave
//! others    task in  ─► run ─► record written ─► record given to rank 0 ─────────────────► leave
//! ```
//!
//! No rank ends with a code other than 0 before rank 0 has the records: a launcher would end the
//! others. All end with the code of rank 0.

mod client_status;
mod crew;
mod events;
mod exchange;
mod logs;
mod measure;
mod offered_logs;
mod progress;
mod record_folder;
mod role;
mod sum;
mod task;
mod user_side;

use std::ffi::OsString;

use fathom_hosts::Link as _;
use fathom_job::{Dialect, Environment as _, Launched};
use fathom_mpi::MpiLink;
use fathom_sys::system;

use crate::environment::Process;
use crate::exit::ProgramEnd;
use crate::launcher_voice;
use crate::output::{self, StandardStream};
use crate::rank_voice;
use crate::ranks::role::Role;

/// Runs the rank that the arguments describe.
pub(crate) fn run(words: &[OsString], _: Dialect) -> ProgramEnd {
    let role = match Role::of(words.get(1..).unwrap_or_default()) {
        Ok(Role::Print(text)) => return output::show(&text, PROGRAM, ProgramEnd::Printed),
        Ok(role) => role,
        Err(text) => return refused(&text),
    };
    if let Role::Join | Role::Conduct { .. } = role {
        launcher_voice::say_here(&|name| Process::new().variable(name));
    }
    let mut link = match MpiLink::start() {
        Ok(link) => link,
        Err(error) => return refused(&format!("cannot start MPI: {error}")),
    };
    let host = system::kernel().host;
    if link.rank().get() > 0 {
        rank_voice::speak_as(host.clone());
    }
    if let Some(text) = another_launcher(link.ranks()) {
        link.finish();
        return refused(&text);
    }
    let ended = match role {
        Role::Conduct {
            folder,
            dialect,
            words,
        } if link.rank().get() == 0 => user_side::run(link, &host, &folder, dialect, &words),
        Role::Run(words) => measure::run(link, &host, Some(words)),
        Role::Join => measure::run(link, &host, None),
        Role::Conduct { .. } | Role::Print(_) => {
            return refused("`conduct` is for rank 0 alone");
        }
    };
    match ended {
        Ok(end) => end,
        Err(error) => refused(&format!("{error:#}")),
    }
}

/// Returns the complaint about a launcher that is not of this MPI, so that each of its processes is
/// the only rank of a run of its own.
fn another_launcher(ranks: u32) -> Option<String> {
    let launched = Launched::of(&Process::new()).filter(|_| ranks == 1)?;
    let Launched { variable, count } = launched;
    let library = MpiLink::library();
    Some(format!(
        "the launcher has started {count} processes (`{variable}`), but this one is rank 0 of 1 by \
         its MPI library, {library}: each would run all jobs by itself\n\
         hint: start it with the launcher of {library}, or build it with the MPI of this launcher: \
         `MPICC=… cargo install --path crates/fathom-cli --features mpi`"
    ))
}

fn refused(text: &str) -> ProgramEnd {
    output::print(StandardStream::Error, &format!("{PROGRAM}: {text}\n"));
    ProgramEnd::Refused
}

const PROGRAM: &str = "fathom-mpi";
/// Code of a rank that has not done its part.
const FAILED: u8 = 2;
