//! Steps of continuous integration: their order, and how one runs.

use anyhow::{Context, Result};

use crate::process;

/// Names of all steps in their order.
const STEPS: [&str; 24] = [
    "tidy",
    "fmt",
    "clippy",
    "test",
    "hosts",
    "release",
    "doc",
    "fuzz",
    "quick start",
    "examples",
    "compat",
    "qemu",
    "browser",
    "exports",
    "instructions",
    "mpich",
    "open mpi 5",
    "single features",
    "fewer features",
    "static",
    "packages",
    "dist",
    "bench",
    "bench lab",
];

/// Returns the place of a step in their order.
pub(super) fn place(name: &str) -> Result<usize> {
    let place = STEPS.iter().position(|step| *step == name);
    place.with_context(|| format!("ci has no step `{name}`, only: {}", STEPS.join(", ")))
}

/// Steps from one on.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    /// Place of the first one; those before it have passed.
    pub(super) from: usize,
}

impl Steps {
    /// Runs one step between a line with its name and a line with its time, unless it comes before
    /// the first.
    pub(super) fn step(self, name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if place(name)? < self.from {
            return Ok(());
        }
        println!("ci: {name}");
        let start = process::now();
        work().with_context(|| format!("ci: {name} failed"))?;
        println!(
            "ci: {name}: passed in {:.1} s",
            start.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

/// Runs steps beside each other. Both end before a failure of one counts.
pub(super) fn beside(
    one: impl FnOnce() -> Result<()>,
    other: impl FnOnce() -> Result<()> + Send,
) -> Result<()> {
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let first = one();
        let second = match other.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        first.and(second)
    })
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn steps_begin_with_the_one_asked_for() {
        let steps = |from| Steps {
            from: place(from).unwrap(),
        };
        let runs = |from, name| {
            let mut ran = false;
            let done = steps(from).step(name, || {
                ran = true;
                Ok(())
            });
            done.map(|()| ran).ok()
        };
        assert_eq!(runs("qemu", "compat"), Some(false));
        assert_eq!(runs("qemu", "qemu"), Some(true));
        assert_eq!(runs("qemu", "exports"), Some(true));
        assert_eq!(runs("qemu", "unlisted"), None);
        assert!(place("tests").is_err());
    }

    #[test]
    fn a_failure_of_either_step_counts_once_both_have_ended() {
        for (one, other) in [(true, true), (true, false), (false, true), (false, false)] {
            let ended = std::sync::atomic::AtomicUsize::new(0);
            let step = |is_good: bool| {
                ended.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                if is_good { Ok(()) } else { bail!("failed") }
            };
            let done = beside(|| step(one), || step(other));
            assert_eq!(done.is_ok(), one && other);
            assert_eq!(ended.into_inner(), 2);
        }
    }
}
