//! Hosts that are cut off, and ranks that are stopped, killed and interrupted.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Case;
use super::job::{self, Job};
use super::lab::{Lab, Node, WORK};

/// Tests that take up to half a minute.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "cut-off",
        what: "a host whose cable is pulled, under --client",
        run: cut_off,
    },
    Case {
        name: "stopped-client",
        what: "a rank that is stopped (SIGSTOP), under --client",
        run: stopped_client,
    },
    Case {
        name: "stopped-mpirun",
        what: "a rank that is stopped (SIGSTOP), under mpirun",
        run: stopped_mpirun,
    },
    Case {
        name: "killed",
        what: "a rank that is killed (SIGKILL): records are left",
        run: killed,
    },
    Case {
        name: "interrupted",
        what: "a rank that is interrupted (SIGINT) stops all",
        run: interrupted,
    },
    Case {
        name: "short-cut",
        what: "a cable that is out for 5 s loses nothing",
        run: short_cut,
    },
];

/// Writes a job that writes to a file of each rank, for this number of seconds.
fn job(seconds: u32) -> Result<()> {
    let text = format!(
        "[w]\nfilename=/run/shared/f.$rank\nrw=write\nbs=4k\nsize=1g\nrate_iops=100\n\
         ioengine=psync\nfallocate=none\ntime_based\nruntime={seconds}\n"
    );
    Ok(fs::write(Path::new(WORK).join("job.fio"), text)?)
}

/// Checks a run that has lost the third host at `since`: named in time, the others' report soon
/// after their end, exit code 2, no process left on the other hosts.
fn check_lost(mut run: Job, since: Instant) -> Result<()> {
    let named = run.until_told("on node3 is lost")? - since;
    println!("hosts:   named after {:.2} s", named.as_secs_f64());
    let run = run.expect(2)?;
    run.check(named <= NAMED_MAX, "named within 12 s")?;
    let (report, written_ns) = job::report("report")?;
    let hosts = report["fathom"]["hosts"].as_array().context("no hosts")?;
    let others: Vec<&Value> = hosts
        .iter()
        .filter(|host| host["name"] != "node3")
        .collect();
    run.check(others.len() == 2, "the other hosts' records")?;
    let end_ns = others
        .iter()
        .filter_map(|host| host["end_ns"].as_u64())
        .max();
    let end_ns = u128::from(end_ns.context("no end")?);
    let after = Duration::from_nanos(u64::try_from(written_ns.saturating_sub(end_ns))?);
    println!(
        "hosts:   report {:.2} s after the others' end",
        after.as_secs_f64()
    );
    run.check(
        after <= REPORT_MAX,
        "the report within 5 s of the others' end",
    )
}

fn two_others(lab: &Lab) -> impl Iterator<Item = &Node> {
    lab.nodes().iter().take(2)
}

fn cut_off(lab: &Lab) -> Result<()> {
    job(LONG_RUN)?;
    let words = "run --client=/run/lab/nodes job.fio --output=report --output-format=json";
    let mut run = lab.fathom(words)?;
    let since = run.until_written(&FILES)?;
    let node = &lab.nodes()[2];
    node.set_link(false)?;
    let checked = check_lost(run, since).and_then(|()| lab.expect_idle(two_others(lab)));
    node.set_link(true)?;
    // What was cut off has no user any more.
    for name in ["fathom-mpi", "orted"] {
        let _ended = node.signal(name, "KILL");
    }
    checked
}

fn stopped(lab: &Lab, mut run: Job) -> Result<()> {
    let since = run.until_written(&FILES)?;
    lab.nodes()[2].signal("fathom-mpi", "STOP")?;
    let checked = check_lost(run, since);
    // The launcher ends it, or nobody else would.
    let idle = lab.expect_idle(lab.nodes().iter());
    let _ended = lab.nodes()[2].signal("fathom-mpi", "KILL");
    checked.and(idle)
}

fn stopped_client(lab: &Lab) -> Result<()> {
    job(LONG_RUN)?;
    let words = "run --client=/run/lab/nodes job.fio --output=report --output-format=json";
    stopped(lab, lab.fathom(words)?)
}

fn stopped_mpirun(lab: &Lab) -> Result<()> {
    job(LONG_RUN)?;
    stopped(
        lab,
        lab.mpirun("job.fio --output=report --output-format=json")?,
    )
}

fn killed(lab: &Lab) -> Result<()> {
    job(600)?;
    let mut run = lab.mpirun("job.fio --record=out --record-every=1s")?;
    run.until_written(&FILES)?;
    // Whoever sends to the killed rank may never return from Open MPI 4, over TCP: what it has
    // written before is left.
    let records = [0, 1, 2].map(|rank| Path::new(WORK).join(format!("out/rank-000{rank}.json")));
    run.until("records", || records.iter().all(|record| record.exists()))?;
    lab.nodes()[2].signal("fathom-mpi", "KILL")?;
    let run = run.finish()?;
    let merged = lab.fathom("merge out --output-format=json")?.expect(1)?;
    let report = merged.json()?;
    let hosts = report["fathom"]["hosts"].as_array().context("no hosts")?;
    run.check(
        hosts.len() == 3,
        &format!("the records of all: {}", merged.err),
    )?;
    lab.expect_idle(lab.nodes().iter())
}

fn interrupted(lab: &Lab) -> Result<()> {
    job(600)?;
    let mut run = lab.mpirun("job.fio --output=report --output-format=json")?;
    run.until_written(&FILES)?;
    let asked_ns = job::wall_ns()?;
    lab.nodes()[1].signal("fathom-mpi", "INT")?;
    let run = run.expect(2)?;
    let (report, _) = job::report("report")?;
    let hosts = report["fathom"]["hosts"].as_array().context("no hosts")?;
    run.check(hosts.len() == 3, "all hosts")?;
    for host in hosts {
        let end_ns = u128::from(host["end_ns"].as_u64().context("no end")?);
        let after = Duration::from_nanos(u64::try_from(end_ns.saturating_sub(asked_ns))?);
        println!(
            "hosts:   {}: ended after {:.3} s",
            host["name"],
            after.as_secs_f64()
        );
        run.check(after <= STOP_MAX, "all stopped in time")?;
    }
    lab.expect_idle(lab.nodes().iter())
}

fn short_cut(lab: &Lab) -> Result<()> {
    job(8)?;
    let words = "run --client=/run/lab/nodes job.fio --output=report --output-format=json";
    let mut run = lab.fathom(words)?;
    let since = run.until_written(&FILES)?;
    let node = &lab.nodes()[2];
    node.set_link(false)?;
    run.until("5 s", || since.elapsed() > Duration::from_secs(5))?;
    node.set_link(true)?;
    let run = run.expect(0)?;
    let (report, _) = job::report("report")?;
    let hosts = report["fathom"]["hosts"].as_array().context("no hosts")?;
    if hosts.len() != 3 {
        bail!("{} hosts in the report\n{}", hosts.len(), run.err);
    }
    Ok(())
}

/// Seconds of a run in progress after a rank is lost.
const LONG_RUN: u32 = 14;
/// Files of the ranks.
const FILES: [&str; 3] = ["f.0", "f.1", "f.2"];
/// Time within which a lost rank is named.
const NAMED_MAX: Duration = Duration::from_secs(12);
/// Time for the report, from the end of the ranks that are left.
const REPORT_MAX: Duration = Duration::from_secs(5);
/// Time within which a request to stop has ended all jobs: the benchmark's figure is 0.25 s, where
/// nothing else runs.
const STOP_MAX: Duration = Duration::from_secs(2);
