//! Features that builds of tests have.

use crate::process;

/// Features of the program that no default build has.
pub(crate) const MORE: [&str; 3] = ["live", "http", "mpi"];

/// Returns the argument of cargo for all features that can be built here.
///
/// Tests run in one build with all of them: features of dependencies differ with those of the
/// program, so that a build for each would compile nearly everything again.
pub(crate) fn all() -> String {
    let names = MORE.into_iter().filter(|name| can_build(name));
    let names: Vec<String> = names.map(|name| format!("fathom-cli/{name}")).collect();
    format!("--features={}", names.join(","))
}

/// Returns whether a feature can be built here, and says why not.
pub(crate) fn can_build(name: &str) -> bool {
    if name != "mpi" {
        return true;
    }
    let missing = ["mpicc", "mpirun"]
        .into_iter()
        .find(|tool| process::find(tool).is_none());
    if let Some(tool) = missing {
        println!("skipped: no MPI ({tool})");
    }
    missing.is_none()
}
