//! Devices and files that are written before the first run.

use std::path::PathBuf;

use super::*;
use crate::Precondition;
use crate::lab_file::tests::{Files, problems_of};

/// Folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("fathom-precondition-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _not_there = std::fs::remove_dir_all(&self.0);
    }
}

/// Executor that notes the jobs that prepare, and ends them as told.
struct Prepares<'a> {
    jobs: Vec<String>,
    end: &'a mut dyn FnMut(usize) -> RunOutcome,
}

impl Executor for Prepares<'_> {
    fn execute(&mut self, repeats: &[Repeat], watch: &mut dyn FnMut(&Slot, RunStep)) {
        Told(|_: &Slot| reads(1000)).execute(repeats, watch);
    }

    fn prepare(&mut self, job: &str, _file: &str) -> RunOutcome {
        self.jobs.push(job.to_owned());
        (self.end)(self.jobs.len())
    }
}

/// Returns a lab that writes a file, with these lines in `[lab]`.
fn lab(file: &str, rw: &str, head: &str) -> LabPlan {
    let text = format!(
        "[lab]\nname = \"p\"\n{head}\n[precondition]\nrw = \"write\"\nbs = \"64k\"\n\
         times_capacity = 2\n[job]\nfilename = \"{file}\"\nrw = \"{rw}\"\nsize = \"1m\"\n[judge]\n\
         show = [\"all.iops\"]\nrepeats = {{ min = 2, max = 2 }}\n"
    );
    plan(&text)
}

fn run(
    plan: &LabPlan,
    journal: &mut dyn Journal,
    end: &mut dyn FnMut(usize) -> RunOutcome,
) -> (Vec<String>, Result<LabOutcome, LabFailure>) {
    let mut executor = Prepares {
        jobs: Vec::new(),
        end,
    };
    let outcome = run_lab(plan, &mut executor, journal, &mut |_| {});
    (executor.jobs, outcome)
}

#[test]
fn a_file_is_written_as_often_as_asked_for_before_the_first_run() {
    let folder = Folder::new("whole");
    let plan = lab(&folder.path("data"), "randread", "");
    let (jobs, outcome) = run(&plan, &mut NoJournal, &mut |_| reads(1));
    assert_eq!(outcome.unwrap().results.cells[0].repeats, 2);
    assert_eq!(jobs.len(), 2);
    let want = format!(
        "[precondition]\nfilename={}\nsize=1048576\nrw=write\nbs=64k\n",
        folder.path("data")
    );
    assert_eq!(jobs[0], want);
}

#[test]
fn the_job_names_the_file_that_was_checked_whatever_its_letters() {
    let folder = Folder::new("letters");
    std::fs::create_dir(folder.path("data#1;${HOME}")).unwrap();
    let target = folder.path("data#1;${HOME}/f: ");
    std::fs::write(&target, "data").unwrap();
    let link = folder.path("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let (jobs, outcome) = run(&lab(&link, "write", ""), &mut NoJournal, &mut |_| reads(1));
    outcome.unwrap();
    let environment = Files::new(&[]);
    let other = |file: &str| Precondition::other_file_of(&environment, &jobs[0], file);
    assert_eq!(other(&target), None);
    assert!(other(&link).is_some());
    // A keyword of the machine is replaced in every value.
    let plan = lab(&link, "write", "");
    let job = plan.precondition.unwrap().job("/f$ncpus", Some(1));
    let why = Precondition::other_file_of(&environment, &job, "/f$ncpus").unwrap();
    assert!(why.contains("cannot be named in a job file"), "{why}");
}

#[test]
fn a_file_with_data_that_the_jobs_only_read_needs_leave() {
    let folder = Folder::new("leave");
    let file = folder.path("data");
    std::fs::write(&file, "precious").unwrap();
    let refused = |plan: &LabPlan| {
        let (jobs, outcome) = run(plan, &mut NoJournal, &mut |_| reads(1));
        outcome.err().map(|error| (jobs, error.to_string()))
    };
    let (jobs, why) = refused(&lab(&file, "randread", "")).unwrap();
    assert!(jobs.is_empty());
    assert!(why.contains("the jobs only read it"), "{why}");
    assert_eq!(refused(&lab(&file, "randwrite", "")), None);
    let leave = format!("writes = [\"{file}\"]");
    assert_eq!(refused(&lab(&file, "randread", &leave)), None);
    // Neither is anything else written: a link to a character device.
    let link = folder.path("link");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    let (jobs, why) = refused(&lab(&link, "randwrite", "")).unwrap();
    assert!(jobs.is_empty());
    assert!(
        why.contains("neither a block device nor a regular file"),
        "{why}"
    );
}

#[test]
fn a_link_that_leads_elsewhere_when_it_is_written_is_refused() {
    let folder = Folder::new("moved");
    let (link, other) = (folder.path("a"), folder.path("other"));
    let second = folder.path("b");
    for name in ["one", "other", "b"] {
        std::fs::write(folder.path(name), "data").unwrap();
    }
    std::os::unix::fs::symlink(folder.path("b"), &link).unwrap();
    std::fs::rename(&link, folder.path("z")).unwrap();
    let plan = lab(&format!("{second}:{}", folder.path("z")), "write", "");
    let plan = LabPlan {
        precondition: plan.precondition.clone().map(|mut one| {
            one.times_capacity = 1;
            one
        }),
        ..plan
    };
    // Both names lead to one file, which is written once.
    let (jobs, outcome) = run(&plan, &mut NoJournal, &mut |_| reads(1));
    assert_eq!((jobs.len(), outcome.is_ok()), (1, true));
    std::fs::remove_file(folder.path("z")).unwrap();
    std::os::unix::fs::symlink(folder.path("one"), folder.path("z")).unwrap();
    // While the first file is written, the second name moves.
    let (jobs, outcome) = run(&plan, &mut NoJournal, &mut |_| {
        std::fs::remove_file(folder.path("z")).unwrap();
        std::os::unix::fs::symlink(&other, folder.path("z")).unwrap();
        reads(1)
    });
    assert_eq!(jobs.len(), 1);
    let why = outcome.unwrap_err().to_string();
    assert!(
        why.contains("it led to") && why.contains("leads to"),
        "{why}"
    );
}

#[test]
fn devices_that_are_only_read_need_leave_and_jobs_that_write_nothing_are_refused() {
    let text = r#"[lab]
name = "a"
[precondition]
rw = "read"
runtime = 1
[job]
filename = "/dev/x"
rw = "randread"
"#;
    let found = problems_of(text, &[]).join("\n");
    for want in [
        "4:1: `precondition` writes nothing",
        "5:1: `runtime` cannot be set here",
        "7:12: `/dev/x` would be written, and `writes` does not name it",
    ] {
        let want = want.split_once(": ").unwrap().1;
        assert!(found.contains(want), "{want}\n{found}");
    }
}

#[test]
fn a_precondition_that_would_not_write_all_is_refused() {
    let told = |precondition: &str| {
        let job = "filename = \"x\"\nsize = \"4m\"\nrw = \"randread\"";
        let text = format!("[lab]\nname = \"p\"\n[job]\n{job}\n[precondition]\n{precondition}\n");
        problems_of(&text, &[])
    };
    let whole = "each device is written whole: ";
    for (precondition, place, want) in [
        (
            "rw = \"write\"\nioengine = \"null\"",
            "9:1",
            "engine `null` writes no device or file",
        ),
        (
            "rw = \"randwrite\"\nrandom_distribution = \"zipf:1.2\"",
            "9:1",
            &format!("{whole}this distribution leaves blocks out"),
        ),
        (
            "rw = \"write:64k\"",
            "8:1",
            &format!("{whole}`rw` must be `write` or `randwrite`"),
        ),
        (
            "rw = \"rw\"",
            "8:1",
            &format!("{whole}`rw` must be `write` or `randwrite`"),
        ),
        ("rw = \"randtrim\"", "8:1", &format!("{whole}`rw` must be")),
        (
            "rw = \"write\"\nbsrange = \"4k-64k\"",
            "9:1",
            &format!("{whole}blocks must be of one size"),
        ),
        (
            "rw = \"write\"\nbs = \"3m\"",
            "9:1",
            "x has 4194304 bytes, and the precondition's blocks have 3145728: the last 1048576",
        ),
        (
            "rw = \"write\"\nzonemode = \"strided\"\nzonesize = \"64k\"\nzoneskip = \"64k\"",
            "9:1",
            &format!("{whole}strided zones leave gaps"),
        ),
        (
            "rw = \"write\"\nunlink = true",
            "9:1",
            "`unlink` cannot be set here",
        ),
    ] {
        let found = told(precondition);
        assert_eq!(found.len(), 1, "{precondition}: {found:?}");
        let start = format!("f/lab.toml:{place}: {want}");
        assert!(found[0].starts_with(&start), "{start}: {found:?}");
    }
    for precondition in [
        "rw = \"write\"\nbs = \"64k\"",
        "rw = \"randwrite\"\nbs = \"4k\"",
    ] {
        assert_eq!(told(precondition), [""; 0]);
    }
}

#[cfg(feature = "history")]
#[test]
fn a_device_is_prepared_once_unless_it_was_cut() {
    use crate::{History, StoredLab};

    let folder = Folder::new("kept");
    let plan = lab(&folder.path("data"), "randread", "");
    let journal = || {
        let history = History::open(&folder.0.join("history.db")).unwrap();
        StoredLab::begin(history, &plan, "fathom test", false).unwrap()
    };
    let cut = |pass| match pass {
        2 => Err(RunFailure::Interrupted),
        _ => reads(1),
    };
    let (jobs, outcome) = run(&plan, &mut journal(), &mut { cut });
    assert_eq!((jobs.len(), outcome.unwrap().is_interrupted), (2, true));
    let (jobs, outcome) = run(&plan, &mut journal(), &mut |_| {
        Err(RunFailure::Failed("no medium".into()))
    });
    let why = outcome.unwrap_err().to_string();
    assert!(jobs.len() == 1 && why.contains("no medium"), "{why}");
    let (jobs, outcome) = run(&plan, &mut journal(), &mut |_| reads(1));
    assert_eq!((jobs.len(), outcome.unwrap().is_interrupted), (2, false));
    // It is there now, with data, and is not written again, under another name either.
    std::fs::write(folder.path("data"), "prepared").unwrap();
    std::os::unix::fs::symlink(folder.path("data"), folder.path("again")).unwrap();
    let mut both = plan.clone();
    let files = &mut both.precondition.as_mut().unwrap().files;
    files.push(crate::PreconditionFile {
        name: folder.path("again"),
        bytes: None,
        is_written: true,
    });
    let (jobs, _) = run(&both, &mut journal(), &mut |_| reads(1));
    assert_eq!(jobs.len(), 0);
    let (jobs, outcome) = run(&plan, &mut journal(), &mut |_| reads(1));
    assert_eq!(
        (jobs.len(), outcome.unwrap().results.cells[0].repeats),
        (0, 2)
    );
}

#[test]
fn a_device_is_known_by_its_number_wherever_a_link_leads() {
    let is_block = |path: &std::path::Path| {
        let metadata = std::fs::metadata(path).ok()?;
        let kind = fathom_sys::files::FileKind::of(&metadata);
        (kind == fathom_sys::files::FileKind::Block).then(|| path.to_owned())
    };
    let all = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut devices = all.filter_map(|entry| is_block(&entry.path()));
    let (Some(device), Some(other)) = (devices.next(), devices.next()) else {
        println!("skipped: this host shows fewer than two block devices");
        return;
    };
    let [device, other] = [device, other].map(|path| path.to_string_lossy().into_owned());
    let folder = Folder::new("devices");
    let link = folder.path("link");
    std::os::unix::fs::symlink(&device, &link).unwrap();
    let forbidden = |job: &str, writes: &str| {
        let text = format!("[lab]\nname = \"d\"\nwrites = [{writes}]\n[job]\n{job}");
        plan(&text).forbidden_devices(&Files::new(&[]))
    };
    let refused = |file: &str, rw: &str, writes: &str| {
        let job = format!("filename = \"{file}\"\nrw = \"{rw}\"\nsize = \"1m\"\n");
        forbidden(&format!("{job}[axes]\nbs = [\"4k\", \"8k\"]\n"), writes)
    };
    let [found] = &refused(&link, "write", &format!("\"{other}\""))[..] else {
        panic!("the link is not found");
    };
    let want = format!("`{link}`, which leads to the device {device}, would be written");
    assert!(found.starts_with(&want), "{found}");
    assert_eq!(refused(&link, "write", &format!("\"{device}\"")).len(), 0);
    assert_eq!(refused(&link, "read", &format!("\"{other}\"")).len(), 0);
    let file = folder.path("file");
    assert_eq!(refused(&file, "write", &format!("\"{other}\"")).len(), 0);

    // A replay writes what its log says, or redirects it.
    let log = folder.path("io.log");
    let ops = |file: &str, op: &str| {
        let lines = format!("{file} add\n{file} open\n{file} {op} 0 4096\n{file} close\n");
        std::fs::write(&log, format!("fio version 2 iolog\n{lines}")).unwrap();
    };
    let replay = |more: &str| {
        let job = format!("rw = \"read\"\nread_iolog = \"{log}\"\n{more}");
        forbidden(&job, &format!("\"{other}\"")).len()
    };
    let redirect = format!("replay_redirect = \"{link}\"\n");
    ops(&link, "write");
    assert_eq!(replay(""), 1);
    assert_eq!(replay("replay_skip = \"write,trim\"\n"), 0);
    assert_eq!(replay("ioengine = \"null\"\n"), 0);
    ops(&link, "read");
    assert_eq!((replay(""), replay(&redirect)), (0, 0));
    ops(&file, "trim");
    assert_eq!((replay(""), replay(&redirect)), (0, 1));
    std::fs::remove_file(&log).unwrap();
    let unread = format!("read_iolog = \"{log}\"\n");
    let [unread] = &forbidden(&unread, &format!("\"{other}\""))[..] else {
        panic!("what the log names is not known");
    };
    assert!(unread.contains("has to be known before"), "{unread}");
}
