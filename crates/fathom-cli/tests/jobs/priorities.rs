//! I/O priorities on a real disk: under mq-deadline, urgent reads must overtake the others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::common::Folder;
use serde_json::Value;

/// Scheduler setting of a disk, restored on drop.
struct Scheduler {
    file: PathBuf,
    before: String,
}

impl Scheduler {
    /// Returns the scheduler of the disk under a folder, or why there is none to try.
    fn under(folder: &Path) -> Result<Self, String> {
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            return Err("only root sets a scheduler".into());
        }
        let number = fs::metadata(folder).unwrap().dev();
        let (major, low) = ((number >> 8) & 0xfff, number & 0xff);
        let minor = ((number >> 12) & 0xfff00) | low;
        let link = format!("/sys/dev/block/{major}:{minor}");
        let Ok(mut device) = fs::canonicalize(&link) else {
            return Err(format!("no disk under {}", folder.display()));
        };
        if device.join("partition").exists() {
            device.pop();
        }
        let file = device.join("queue/scheduler");
        let text = fs::read_to_string(&file).unwrap_or_default();
        if !text.contains("mq-deadline") {
            return Err(format!("{} has no mq-deadline", file.display()));
        }
        if fs::OpenOptions::new().write(true).open(&file).is_err() {
            return Err(format!("{} cannot be written", file.display()));
        }
        let in_force = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        let Some((before, _)) = in_force else {
            return Err(format!("{}: {text}", file.display()));
        };
        let before = before.to_owned();
        Ok(Self { file, before })
    }

    fn set(&self, name: &str) {
        fs::write(&self.file, name).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _read_only = fs::write(&self.file, &self.before);
    }
}

/// Runs the jobs once and returns the mean clat of the urgent reads divided by that of the others.
fn ratio(folder: &Folder) -> f64 {
    let run = folder
        .fathom(
            "run --name=t --filename=data --size=128m --rw=randread --bs=4k --direct=1 \
             --ioengine=libaio --iodepth=32 --time_based --runtime=1 --nice=-20 \
             --cmdprio_percentage=30 --ioscheduler=mq-deadline --output-format=json",
        )
        .expect(0);
    let job = &run.json()["jobs"][0];
    let prios = job["read"]["prios"].as_array().unwrap();
    let mean = |class: u64| {
        let of_class = |entry: &&Value| entry["prioclass"].as_u64() == Some(class);
        let entry = prios.iter().find(of_class).unwrap();
        entry["clat_ns"]["mean"].as_f64().unwrap()
    };
    let (urgent, others) = (mean(1), mean(0));
    urgent / others
}

/// Returns the load average if it exceeds the number of CPUs.
fn busy() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    let cpus = std::thread::available_parallelism().ok()?.get();
    (load > f64::from(u32::try_from(cpus).ok()?)).then_some(load)
}

#[test]
fn urgent_reads_take_half_the_time_of_others() {
    // It sets the scheduler of the disk under the temporary folder: no test run does that unasked.
    if std::env::var_os("FATHOM_DEVICE_TESTS").is_none() {
        println!("skipped: set FATHOM_DEVICE_TESTS=1 to let it change a disk's scheduler");
        return;
    }
    let folder = Folder::new();
    let scheduler = match Scheduler::under(folder.path()) {
        Ok(scheduler) => scheduler,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    scheduler.set("none");
    // A busy machine delays both alike: one quiet second in five is enough.
    let ratios = (0..5).map(|_| ratio(&folder));
    let mut seen = Vec::new();
    for ratio in ratios {
        seen.push(ratio);
        if ratio <= 0.5 {
            break;
        }
    }
    let best = seen.iter().copied().fold(f64::INFINITY, f64::min);
    // As in fio, the scheduler stays when the job has ended.
    assert!(
        scheduler.text().contains("[mq-deadline]"),
        "{}",
        scheduler.text()
    );
    match busy() {
        // What waits for a processor waits whatever its priority.
        Some(load) if best > 0.5 => println!("skipped: the machine is busy ({load}): {seen:?}"),
        _ => assert!(best <= 0.5, "{seen:?}"),
    }
    a_diskless_job_leaves_the_scheduler_alone(&folder, &scheduler);
    a_scheduler_that_is_not_there_is_refused(&folder, &scheduler);
}

fn a_diskless_job_leaves_the_scheduler_alone(folder: &Folder, scheduler: &Scheduler) {
    let words = "run --name=t --size=1m --ioengine=null --rw=read --ioscheduler=none";
    folder.fathom(words).expect(0);
    assert!(
        scheduler.text().contains("[mq-deadline]"),
        "{}",
        scheduler.text()
    );
}

fn a_scheduler_that_is_not_there_is_refused(folder: &Folder, scheduler: &Scheduler) {
    let words = "run --name=t --filename=new --size=1m --rw=write --ioscheduler=mq-deadlin";
    let run = folder.fathom(words).expect(2);
    assert!(
        run.err.contains("not offer the I/O scheduler `mq-deadlin`"),
        "{}",
        run.err
    );
    assert!(
        !folder.names().contains(&"new".to_owned()),
        "{:?}",
        folder.names()
    );
    assert!(
        scheduler.text().contains("[mq-deadline]"),
        "{}",
        scheduler.text()
    );
}
