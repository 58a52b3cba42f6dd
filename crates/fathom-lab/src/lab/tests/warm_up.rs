//! Time at the start of each run that does not count.

use super::*;

const LAB: &str = r#"
[lab]
name = "t"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/sdx"
runtime = "100ms"
time_based = true
[warm_up]
seconds = "50ms"
[judge]
show = ["read.iops"]
repeats = { min = 2, max = 2 }
"#;

#[test]
fn a_warm_up_lengthens_a_run_and_does_not_count() {
    let plan = plan(LAB);
    let mut notes = Notes::default();
    simulated_with(&plan, 1, &mut notes).unwrap();
    assert_eq!(notes.earlier.len(), 2);
    for run in &notes.earlier {
        let record = run.done.record.as_ref().unwrap();
        let read = &record.jobs[0].directions.read;
        // 100 ms at 100 µs each, with 1 % of noise; 1500 with the warm-up.
        assert!((950..=1050).contains(&read.ios), "{}", read.ios);
        assert_eq!((read.runtime_ms, record.elapsed_ms), (100, 150));
    }
}

#[test]
fn a_ramp_time_of_the_lab_file_replaces_the_warm_up() {
    let ramps = |text: &str| -> Vec<String> {
        let job = plan(text).run_of(0, 0, 1).job.unwrap();
        let lines = job.lines().filter(|line| line.starts_with("ramp_time"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(ramps(LAB), ["ramp_time=50000us"]);
    let own = LAB.replace("bs = \"4k\"", "bs = \"4k\"\nramp_time = \"10ms\"");
    assert_eq!(ramps(&own), ["ramp_time=10ms"]);
}
