//! Searches on a modelled queue whose answer has a closed form.

use super::*;
use crate::lab::{EarlierRun, JournalError, Modelled, RunOutcome, lab_table, run_lab};
use crate::lab_file::tests::Files;

/// p99 of resp is 4.605 ÷ (10,000 − λ): 2 ms at 7,697 IOPS.
const LAB: &str = r#"
[lab]
name = "t"
machine = "q.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/q"
ioengine = "libaio"
iodepth = 4096
norandommap = true
runtime = 3
time_based = true
[search]
keep = ["read.resp_p99 <= 2ms", "read.iops >= 99% of asked"]
precision = "2%"
probe_most = "12s"
"#;
const QUEUE: &str = include_str!("../../../../../examples/machines/one-server.toml");
const ANSWER: f64 = 10_000.0 - 4_605.0 / 2.0;

fn files() -> Files {
    Files::new(&[("q.toml", QUEUE)])
}

#[track_caller]
fn plan(text: &str) -> LabPlan {
    let plan = LabPlan::parse("t.toml", text, &[], &files());
    plan.unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// Journal in memory.
#[derive(Default)]
struct Kept {
    runs: Vec<EarlierRun>,
    planned: usize,
}

impl Journal for Kept {
    fn earlier(&mut self) -> Result<Vec<EarlierRun>, JournalError> {
        Ok(self.runs.clone())
    }
    fn plan(&mut self, slots: &[Slot]) -> Result<(), JournalError> {
        self.planned += slots.len();
        Ok(())
    }
    fn begin(&mut self, _slot: &Slot) -> Result<(), JournalError> {
        Ok(())
    }
    fn finish(&mut self, slot: &Slot, done: &RunDone) -> Result<(), JournalError> {
        let (slot, done) = (*slot, done.clone());
        self.runs.push(EarlierRun { slot, done });
        Ok(())
    }
    fn fail(&mut self, _slot: &Slot, _why: &str) -> Result<(), JournalError> {
        Ok(())
    }
    fn cut(&mut self, _cell: usize, _repeat: u32) -> Result<(), JournalError> {
        Ok(())
    }
    fn judge(&mut self, _: &[crate::Judgement], _: bool) -> Result<(), JournalError> {
        Ok(())
    }
}

fn searched(plan: &LabPlan, journal: &mut Kept) -> LabOutcome {
    let files = files();
    let mut executor = Modelled::new(plan, &files, &|| 0, 2);
    run_lab(plan, &mut executor, journal, &mut |_| {}).unwrap()
}

#[test]
fn the_load_of_a_queue_is_found_and_a_cut_search_ends_alike() {
    let plan = plan(LAB);
    let mut journal = Kept::default();
    let outcome = searched(&plan, &mut journal);
    let search = &outcome.searches[0];
    let (passed, failed) = (search.passed().unwrap(), search.failed().unwrap());
    assert!((passed as f64 / ANSWER - 1.0).abs() < 0.05, "{passed}");
    assert!(passed < failed && failed as f64 <= passed as f64 * 1.02);
    assert!(search.probes.len() <= 20, "{}", search.probes.len());
    let first = &search.probes[0];
    // At the maximum the queue grows without end, which is soon clear.
    assert!(!first.decision.unwrap().passed && first.runs <= 3);

    let table = lab_table(&plan, &outcome);
    crate::table::check::check_table(&table);
    assert_eq!(table.rows.len(), search.probes.len());
    for cut in [0, 1, journal.runs.len() / 2, journal.runs.len()] {
        let mut left = Kept {
            runs: journal.runs[..cut].to_vec(),
            planned: 0,
        };
        let again = lab_table(&plan, &searched(&plan, &mut left));
        assert_eq!(again.json(), table.json(), "{cut}");
        assert_eq!(left.planned, journal.runs.len() - cut);
    }
}

#[test]
fn an_easy_and_an_impossible_condition_end() {
    let short = LAB
        .replace("read.iops >= 99% of asked", "read.resp_mean <= 1h")
        .replace("12s", "3s");
    let refused = LabPlan::parse("t.toml", &short, &[], &files()).unwrap_err();
    assert!(refused[0].message.contains("1h"), "{refused:?}");
    let impossible = LAB.replace("<= 2ms", "<= 1us").replace("12s", "3s");
    let outcome = searched(&plan(&impossible), &mut Kept::default());
    let search = &outcome.searches[0];
    assert_eq!(search.passed(), None);
    assert!(search.failed().is_some());
    assert!(search.probes.len() <= 20, "{}", search.probes.len());
}

#[test]
fn a_share_of_bytes_that_are_asked_for_is_kept_in_bytes() {
    let text = LAB
        .replace("[search]", "[search]\nvary = \"rate\"")
        .replace("\"read.resp_p99 <= 2ms\", \"read.iops >=", "\"read.bw >=")
        .replace("\"12s\"", "\"6s\"");
    let outcome = searched(&plan(&text), &mut Kept::default());
    let search = &outcome.searches[0];
    // The queue serves 10,000 ops of 4 KiB a second.
    let passed = search.passed().unwrap() as f64 / 4096e4;
    assert!((0.8..1.05).contains(&passed), "{passed}");
    assert!(search.failed().is_some());
}

/// Executor without a machine.
struct Failing(u32);

impl Executor for Failing {
    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
        for slot in repeats.iter().flat_map(|repeat| &repeat.slots) {
            self.0 += 1;
            let outcome: RunOutcome = Err(RunFailure::Failed("no medium".into()));
            watch(slot, RunStep::Ended(Box::new(outcome)));
        }
    }
}

#[test]
fn a_run_that_fails_again_and_again_ends_its_search() {
    let plan = plan(LAB);
    let mut executor = Failing(0);
    let outcome = run_lab(&plan, &mut executor, &mut Kept::default(), &mut |_| {}).unwrap();
    assert_eq!(executor.0, 3);
    let failure = outcome.results.cells[0].failure.as_deref();
    assert_eq!(failure, Some("no medium"));
    let table = lab_table(&plan, &outcome);
    let notes = table.notes.join("\n");
    assert!(notes.contains("failed: no medium"), "{notes}");
}

#[test]
fn what_a_search_cannot_do_is_refused() {
    let check = |from: &str, to: &str, want: &str| {
        let text = LAB.replace(from, to);
        assert_ne!(text, LAB);
        let problems = LabPlan::parse("t.toml", &text, &[], &files()).unwrap_err();
        let found = problems.iter().any(|one| one.message.contains(want));
        assert!(found, "{want}: {problems:#?}");
    };
    check("runtime = 3", "size = \"1m\"", "same `runtime`");
    check("runtime = 3", "runtime = 30", "shorter than one run");
    check(
        "runtime = 3",
        "runtime = 3\nrate_iops = 5",
        "sets `rate_iops` itself",
    );
    check("read.iops >=", "write.iops >=", "the jobs write nothing");
    check("read.iops >=", "sync.iops >=", "no job does that");
    check("read.iops >=", "read.bw >=", "is asked for");
    let trims = LAB
        .replace("randread", "randtrimwrite")
        .replace("read.", "all.");
    let problems = LabPlan::parse("t.toml", &trims, &[], &files()).unwrap_err();
    assert!(problems[0].message.contains("at one rate"), "{problems:#?}");
    let judged = "[judge]\nmetrics = { \"read.iops\" = \"2%\" }\n[search]";
    check("[search]", judged, "judges nothing");
}

#[test]
fn a_number_of_a_service_is_a_condition_and_has_to_be_there() {
    let text = LAB.replace("machine = \"q.toml\"\n", "").replace(
        "keep = [\"read.resp_p99 <= 2ms\", \"read.iops >= 99% of asked\"]",
        "keep = [\"service.s.waits <= 5\"]",
    );
    let text = text + "[service.s]\ncommand = \"true\"\nstats = \"true\"\n";
    let plan = plan(&text);
    let ran = |waits_per_op: Option<f64>| {
        let mut executor = Waits(waits_per_op);
        run_lab(&plan, &mut executor, &mut Kept::default(), &mut |_| {}).unwrap()
    };
    let outcome = ran(Some(0.001));
    let search = &outcome.searches[0];
    assert_eq!(search.failure, None);
    let (passed, failed) = (search.passed().unwrap(), search.failed().unwrap());
    assert!(passed <= 5000 && 5000 < failed, "{passed} {failed}");
    // Windows have nothing of it: an interval takes four runs.
    assert!(search.probes.iter().all(|probe| probe.runs > 1));
    let outcome = ran(None);
    let why = outcome.results.cells[0].failure.as_deref().unwrap();
    assert!(why.contains("printed no number `service.s.waits`"), "{why}");
}

/// Runs beside a service that waits so often per op, or does not tell.
struct Waits(Option<f64>);

impl Executor for Waits {
    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
        for slot in repeats.iter().flat_map(|repeat| &repeat.slots) {
            let rate = slot.load.and_then(|load| load.rate).unwrap_or(8000);
            let measure = |group: &str, direction, metric: &str, value| fathom_record::Measure {
                group: group.into(),
                direction,
                metric: metric.into(),
                value,
                low: None,
                high: None,
            };
            let mut measures = vec![measure("", "read", "iops", rate as f64)];
            let waits = self.0.map(|waits| waits * rate as f64);
            measures.extend(waits.map(|waits| measure("s", "service", "waits", waits)));
            let done = RunDone {
                measures,
                ..RunDone::default()
            };
            watch(slot, RunStep::Ended(Box::new(Ok(done))));
        }
    }
}
