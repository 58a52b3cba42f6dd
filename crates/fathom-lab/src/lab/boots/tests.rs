//! Patterns of kernels, and labs over several boots.

use super::*;

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, text, want) in [
        ("*-patched", "6.18.0-patched", true),
        ("*-patched", "6.18.0-patched+", false),
        ("6.18.*", "6.18.0", true),
        ("6.18.*", "6.17.18.0", false),
        ("6.*-rc*-x", "6.18.0-rc3-x", true),
        ("6.*-rc*-x", "6.18.0-x", false),
        ("*", "", true),
        ("", "", true),
        ("6.18", "6.18.0", false),
        ("a*a", "a", false),
        ("a*b*b", "ab", false),
    ] {
        assert_eq!(matches(pattern, text), want, "{pattern} {text}");
    }
}

#[cfg(feature = "history")]
mod stored {
    use std::path::PathBuf;

    use super::super::super::executor::{RunFailure, RunStep};
    use super::super::super::tests::{plan, reads};
    use super::super::super::{LabOutcome, StoredLab, lab_table, run_lab};
    use super::*;
    use crate::store::History;

    const LAB: &str = r#"
[lab]
name = "kernels"
[job]
rw = "randread"
filename = "/dev/sdx"
runtime = "100ms"
[axes]
iodepth = [1, 2]
[variants]
old = { requires = { kernel = "*-old" } }
new = { requires = { kernel = "*-new" } }
[judge]
baseline = "old"
metrics = { "read.iops" = "2%" }
repeats = { min = 8, max = 8, stop = "never" }
"#;

    /// Host in one of its boots.
    struct Host {
        boot: Boot,
        runs: Vec<Slot>,
        fails: bool,
    }

    impl Executor for Host {
        fn boot(&self) -> Result<Boot, String> {
            Ok(self.boot.clone())
        }

        fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
            for slot in repeats.iter().flat_map(|repeat| &repeat.slots) {
                self.runs.push(*slot);
                let outcome = match self.fails {
                    true => Err(RunFailure::Failed("no such device".into())),
                    false => reads(1000 + 500 * slot.variant as u64 + u64::from(slot.repeat)),
                };
                watch(slot, RunStep::Ended(Box::new(outcome)));
            }
        }
    }

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("fathom-boots-test-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        /// Runs the lab in a boot; returns its outcome and the number of its runs.
        fn boot(&self, plan: &LabPlan, id: &str, kernel: &str) -> (LabOutcome, usize) {
            let (outcome, runs) = self.execute(plan, id, kernel, false);
            (outcome, runs.len())
        }

        fn execute(
            &self,
            plan: &LabPlan,
            id: &str,
            kernel: &str,
            fails: bool,
        ) -> (LabOutcome, Vec<Slot>) {
            let history = History::open(&self.0.join("history.db")).unwrap();
            let mut journal = StoredLab::begin(history, plan, "fathom test", false).unwrap();
            let mut host = Host {
                boot: Boot {
                    id: id.into(),
                    kernel: kernel.into(),
                },
                runs: Vec::new(),
                fails,
            };
            let outcome = run_lab(plan, &mut host, &mut journal, &mut |_| {}).unwrap();
            (outcome, host.runs)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _best_effort = std::fs::remove_dir_all(&self.0);
        }
    }

    fn waits(plan: &LabPlan, outcome: &LabOutcome) -> Vec<String> {
        let waiting = outcome.waiting.iter();
        waiting.map(|one| one.phrase(plan)).collect()
    }

    #[test]
    fn each_boot_is_one_repeat_of_what_it_can_run() {
        let (plan, place) = (plan(LAB), Place::new("alternate"));
        let mut last = None;
        for boot in 0..8 {
            let (outcome, runs) = place.boot(&plan, &format!("o{boot}"), "6.18-old");
            assert_eq!((outcome.is_interrupted, runs), (true, 2), "{boot}");
            let want = format!(
                "repeat {} of new waits for a boot with kernel *-new",
                boot + 1
            );
            assert_eq!(waits(&plan, &outcome)[0], want);
            let (outcome, runs) = place.boot(&plan, &format!("n{boot}"), "6.18-new");
            assert_eq!((outcome.is_interrupted, runs), (boot < 7, 2), "{boot}");
            last = Some(outcome);
        }
        let last = last.unwrap();
        assert!(last.waiting.is_empty());
        let repeats: Vec<u32> = last.results.cells.iter().map(|cell| cell.repeats).collect();
        assert_eq!(repeats, [8, 8]);
        let ratio = last.judgements[0].ratio.unwrap().middle;
        assert!((ratio - 1.5).abs() < 0.01, "{ratio}");
        let text = lab_table(&plan, &last).text(120);
        assert!(text.contains("repeats are boots"), "{text}");
    }

    #[test]
    fn a_boot_counts_once_and_one_that_fits_nothing_runs_nothing() {
        let (plan, place) = (plan(LAB), Place::new("once"));
        assert_eq!(place.boot(&plan, "b1", "6.18-old").1, 2);
        let (outcome, runs) = place.boot(&plan, "b1", "6.18-old");
        assert_eq!((outcome.is_interrupted, runs), (true, 0));
        let (outcome, runs) = place.boot(&plan, "b2", "6.18");
        assert_eq!((outcome.is_interrupted, runs), (true, 0));
        assert_eq!(
            waits(&plan, &outcome).len(),
            1,
            "old has its run of repeat 1"
        );
        // In the boot that completes a repeat, the next one has to wait.
        let (outcome, runs) = place.boot(&plan, "b3", "6.18-new");
        assert_eq!((outcome.is_interrupted, runs), (true, 2));
        let want = [
            "repeat 2 of old waits for a boot with kernel *-old",
            "repeat 2 of new waits for another boot with kernel *-new",
        ];
        assert_eq!(waits(&plan, &outcome), want);
        let text = lab_table(&plan, &outcome).text(120);
        assert!(text.contains("give the same command"), "{text}");
    }

    #[test]
    fn a_failure_in_one_boot_keeps_the_run_of_another() {
        let (plan, place) = (plan(LAB), Place::new("fails"));
        assert_eq!(place.boot(&plan, "b1", "6.18-old").1, 2);
        let (outcome, _) = place.execute(&plan, "b2", "6.18-new", true);
        assert!(
            outcome
                .results
                .cells
                .iter()
                .all(|cell| cell.failure.is_some())
        );
        // The next process tries again what failed.
        let (outcome, runs) = place.execute(&plan, "b3", "6.18-new", false);
        assert_eq!(runs.iter().filter(|slot| slot.variant == 0).count(), 0);
        assert_eq!(outcome.results.cells[0].repeats, 1);
    }

    #[test]
    fn a_variant_without_conditions_runs_beside_the_other() {
        let text = LAB.replace("old = { requires = { kernel = \"*-old\" } }", "old = {}");
        let (plan, place) = (plan(&text), Place::new("beside"));
        let (outcome, runs) = place.execute(&plan, "b1", "6.18-new", false);
        assert_eq!((outcome.is_interrupted, runs.len()), (true, 4));
        assert_eq!(
            waits(&plan, &outcome),
            [
                "repeat 2 of old waits for another boot",
                "repeat 2 of new waits for another boot with kernel *-new",
            ]
        );
    }
}
