//! Forms of the command line on several hosts.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Case;
use super::job::Outcome;
use super::lab::{Lab, WORK, sh};

/// Tests that take seconds.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "mpirun",
        what: "a rank on each host of a list, records on each host",
        run: mpirun,
    },
    Case {
        name: "client-list",
        what: "--client with a list of hosts, as fathom and as fio",
        run: client_list,
    },
    Case {
        name: "client-addresses",
        what: "--client with addresses and ports",
        run: client_addresses,
    },
    Case {
        name: "client-each",
        what: "--client with a job file each",
        run: client_each,
    },
    Case {
        name: "remote-config",
        what: "--remote-config reads a file of each host",
        run: remote_config,
    },
    Case {
        name: "rank",
        what: "--rank by ssh and by a launcher, then merge",
        run: rank,
    },
    Case {
        name: "shared-file",
        what: "one file of all hosts, laid out once, written in turn",
        run: shared_file,
    },
    Case {
        name: "logs",
        what: "logs have the names of their hosts, and those of clients come home",
        run: logs,
    },
    Case {
        name: "refused",
        what: "a plan that one host refuses, and a host that is not there",
        run: refused,
    },
];

/// Writes a job file of one section, 1,024 ops on each host, into the folder of the test.
fn job(name: &str, section: &str) -> Result<()> {
    let text = format!("[{section}]\nioengine=null\nsize=4m\nrw=randread\n");
    Ok(fs::write(Path::new(WORK).join(name), text)?)
}

/// Checks that a report adds up three hosts.
fn check_sum(outcome: &Outcome, report: &Value) -> Result<()> {
    let own = report["jobs"].as_array();
    let all = own.or_else(|| report["client_stats"].as_array());
    let last = all.and_then(|jobs| jobs.last()).context("no jobs")?;
    let ios = last["read"]["total_ios"].as_u64();
    outcome.check(ios == Some(3 * 1024), "3072 ops")?;
    let hosts = report["fathom"]["hosts"].as_array().context("no hosts")?;
    let names: Vec<_> = hosts
        .iter()
        .filter_map(|host| host["name"].as_str())
        .collect();
    outcome.check(names == NAMES, "three hosts, in order")?;
    let compared = hosts
        .iter()
        .all(|host| host["clock"]["compared"] == "messages");
    outcome.check(compared, "clocks compared by messages")
}

fn mpirun(lab: &Lab) -> Result<()> {
    job("job.fio", "a")?;
    let run = lab.mpirun("job.fio --record=/run/local/out --output-format=json")?;
    let run = run.expect(0)?;
    check_sum(&run, &run.json()?)?;
    for (rank, node) in lab.nodes().iter().enumerate() {
        let mut left = names(&node.local("out"))?;
        left.retain(|name| *name != format!("rank-{rank:04}.json"));
        let has = node.local(&format!("out/rank-{rank:04}.json")).exists();
        run.check(has && left.is_empty(), "each record on its host")?;
    }
    let text = lab.mpirun("job.fio")?.expect(0)?;
    text.check(text.out.contains("Hosts: 3\n"), "a table of hosts")?;
    text.check(names(Path::new(WORK))? == ["job.fio"], "nothing left")?;
    lab.expect_idle(lab.nodes().iter())
}

fn client_list(lab: &Lab) -> Result<()> {
    job("job.fio", "a")?;
    let words = "--client=/run/lab/nodes job.fio --output-format=json";
    for as_fio in [false, true] {
        let run = match as_fio {
            true => lab.fio(words)?,
            false => lab.fathom(&format!("run {words}"))?,
        };
        let run = run.expect(0)?;
        let report = run.json()?;
        check_sum(&run, &report)?;
        let stats = report["client_stats"].as_array().context("no clients")?;
        let hosts: Vec<_> = stats
            .iter()
            .filter_map(|job| job["hostname"].as_str())
            .collect();
        run.check(hosts.starts_with(&NAMES), "a host each")?;
        lab.expect_idle(lab.nodes().iter())?;
    }
    Ok(())
}

fn client_addresses(lab: &Lab) -> Result<()> {
    job("job.fio", "a")?;
    let words = "run --client=ip:10.77.0.2,8801 --client=node2,8802 --client=ip6:node3-6 job.fio \
                 --output-format=json";
    let run = lab.fathom(words)?.expect(0)?;
    let report = run.json()?;
    let stats = report["client_stats"].as_array().context("no clients")?;
    let ports: Vec<_> = stats
        .iter()
        .filter_map(|job| job["port"].as_u64())
        .collect();
    run.check(ports.starts_with(&[8801, 8802]), "ports as given")?;
    check_sum(&run, &report)
}

fn client_each(lab: &Lab) -> Result<()> {
    job("a.fio", "a")?;
    job("b.fio", "b")?;
    let words = "run --client=node1 a.fio --client=node2 b.fio --output-format=json";
    let run = lab.fathom(words)?.expect(0)?;
    let report = run.json()?;
    let stats = report["client_stats"].as_array().context("no clients")?;
    let of = |host: &str| {
        let job = stats.iter().find(|job| job["hostname"] == host);
        job.and_then(|job| job["jobname"].as_str())
    };
    run.check(
        of("node1") == Some("a") && of("node2") == Some("b"),
        "a section each",
    )
}

fn remote_config(lab: &Lab) -> Result<()> {
    job("job.fio", "a")?;
    for node in lab.nodes() {
        fs::copy(Path::new(WORK).join("job.fio"), node.local("job.fio"))?;
    }
    let words = "run --client=/run/lab/nodes --remote-config=/run/local/job.fio \
                 --output-format=json";
    let run = lab.fathom(words)?.expect(0)?;
    check_sum(&run, &run.json()?)
}

fn rank(lab: &Lab) -> Result<()> {
    job("job.fio", "a")?;
    let fathom = lab.program().display();
    // Far enough ahead for three logins.
    let each = NAMES.iter().enumerate().map(|(at, host)| {
        let run = format!("{fathom} run --rank={at}/3 --record=out job.fio");
        format!("ssh {host} \"cd {WORK} && {run} --start-at=$at\" &")
    });
    let script = format!(
        "PATH=/run/bin:$PATH; at=$(date -u -d '+5 seconds' +%Y-%m-%dT%H:%M:%SZ)\n{}\nwait",
        each.collect::<Vec<_>>().join("\n")
    );
    sh(&format!(
        "({script}) >/run/tmp/ranks 2>&1 || {{ cat /run/tmp/ranks; false; }}"
    ))?;
    let merged = lab.fathom(&format!("merge {WORK}/out --output-format=json"))?;
    let merged = merged.expect(0)?;
    let report = merged.json()?;
    let ios = report["jobs"][0]["read"]["total_ios"].as_u64();
    let told = fs::read_to_string("/run/tmp/ranks")?;
    merged.check(ios == Some(3 * 1024), &format!("3072 ops: {told}"))?;
    // The launcher of an MPI gives a rank to a program that has none.
    let run = lab.launch(&format!("{fathom} run --rank=auto --record=auto job.fio"))?;
    run.expect(0)?;
    let merged = lab.fathom(&format!("merge {WORK}/auto --output-format=json"))?;
    let merged = merged.expect(0)?;
    let ios = merged.json()?["jobs"][0]["read"]["total_ios"].as_u64();
    merged.check(ios == Some(3 * 1024), "3072 ops")
}

fn shared_file(lab: &Lab) -> Result<()> {
    // Laid out by one, read by all; then each writes its segments.
    let read = "--name=r --filename=f --size=4m --rw=read --bs=64k --ioengine=psync";
    lab.mpirun(read)?.expect(0)?;
    let write = "--name=w --filename=g --rw=write --bs=64k --ioengine=psync --filesize=3m \
                 --buffer_pattern=0x5a --offset=($rank*256k) --zonemode=strided \
                 --zonerange=256k --zonesize=256k --zoneskip=(($ranks-1)*256k) --io_size=1m \
                 --fallocate=none";
    lab.mpirun(write)?.expect(0)?;
    let content = fs::read(Path::new(WORK).join("g"))?;
    if content.len() != 3 << 20 || content.iter().any(|&byte| byte != 0x5a) {
        bail!(
            "not every byte was written: {} of {}",
            content.len(),
            3 << 20
        );
    }
    Ok(())
}

fn logs(lab: &Lab) -> Result<()> {
    job("job.fio", "a")?;
    let run = lab.mpirun("job.fio --write_bw_log=P")?.expect(0)?;
    let want = NAMES.map(|host| format!("P_bw.1.log.{host}"));
    let found = names(Path::new(WORK))?;
    run.check(
        want.iter().all(|name| found.contains(name)),
        "a log of each host",
    )?;
    // Each host has a folder of this name for itself: the user's, mounted over.
    // Many pieces: a line of some 15 bytes for each of 30,000 ops.
    let many = "--client=/run/lab/nodes --name=a --ioengine=null --rw=read --size=120000k \
                --write_lat_log=/run/local/L --log_entries=40000 --bandwidth-log=/run/local/B";
    lab.fathom(&format!("run {many}"))?.expect(0)?;
    let mut lengths = Vec::new();
    for node in lab.nodes() {
        for name in [
            "L_clat.1.log",
            "L_slat.1.log",
            "L_lat.1.log",
            "B-read_bw.log",
        ] {
            let name = format!("{name}.{}", node.name());
            let (there, here) = (node.local(&name), Path::new("/run/local").join(&name));
            let (there, here) = (fs::read(there)?, fs::read(&here)?);
            run.check(there == here, "the log of a client is here as it is there")?;
            lengths.push(here.len());
            fs::remove_file(Path::new("/run/local").join(&name))?;
        }
    }
    run.check(
        lengths.iter().any(|&length| length > 300_000),
        "logs of many pieces",
    )
}

fn refused(lab: &Lab) -> Result<()> {
    for node in &lab.nodes()[..2] {
        fs::create_dir(node.local("d"))?;
    }
    let text = "[w]\nrw=write\nsize=1m\ndirectory=/run/local/d\n";
    fs::write(Path::new(WORK).join("job.fio"), text)?;
    for by_client in [false, true] {
        let run = match by_client {
            true => lab.fathom("run --client=/run/lab/nodes job.fio")?,
            false => lab.mpirun("job.fio")?,
        };
        let run = run.expect(2)?;
        run.check(run.out.is_empty(), "no report")?;
        run.check(run.err.contains("node3: "), "the host is named")?;
        for node in &lab.nodes()[..2] {
            run.check(names(&node.local("d"))?.is_empty(), "no file made")?;
        }
        lab.expect_idle(lab.nodes().iter())?;
    }
    let run = lab.fathom("run --client=node1 --client=node9 job.fio")?;
    let run = run.expect(2)?;
    run.check(run.err.contains("node9"), "the host is named")?;
    lab.expect_idle(lab.nodes().iter())
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Names of the hosts.
pub(super) const NAMES: [&str; 3] = ["node1", "node2", "node3"];
