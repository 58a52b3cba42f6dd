//! Engines without files: `cpuio` and `exec`, from the command line to the report.

use crate::common::Folder;

#[test]
fn work_that_is_no_io_has_ops_and_no_bytes() {
    let folder = Folder::new();
    let words = "run --name=t --ioengine=cpuio --cpuload=90 --cpuchunks=1000 --runtime=1 \
                 --output-format=json";
    let run = folder.fathom(words).expect(0);
    let job = &run.json()["jobs"][0];
    assert!(job["read"]["total_ios"].as_u64().unwrap() > 0);
    assert_eq!(job["read"]["clat_ns"]["N"], job["read"]["total_ios"]);
    for key in ["io_bytes", "bw_bytes", "runtime", "bw_samples"] {
        assert_eq!(job["read"][key].as_u64(), Some(0), "{key}");
    }
    assert!(job["job_runtime"].as_u64().unwrap() >= 1_000);
    assert!(folder.names().is_empty());
}

#[test]
fn a_load_ends_with_the_last_job_that_does_io_or_by_its_number_of_ops() {
    let folder = Folder::new();
    // Neither would end by itself.
    let words = "run --name=t --ioengine=cpuio --cpuload=1 --cpuchunks=1000 --exit_on_io_done=1 \
                 --name=u --ioengine=null --size=64k";
    folder.fathom(words).expect(0);
    let words = "run --name=t --ioengine=cpuio --cpuload=100 --cpuchunks=100 --number_ios=5 \
                 --output-format=json";
    let run = folder.fathom(words).expect(0);
    assert_eq!(run.json()["jobs"][0]["read"]["total_ios"].as_u64(), Some(5));
}

#[test]
fn a_load_that_cannot_be_is_refused_before_anything_starts() {
    let folder = Folder::new();
    let refused = |words: &str, why: &str| {
        let run = folder
            .fathom(&format!("run --name=t --runtime=1 {words}"))
            .expect(2);
        assert!(run.err.contains(why), "{words}: {run:#?}");
        assert!(folder.names().is_empty());
    };
    refused("--ioengine=cpuio", "hint: add `cpuload=50`");
    refused("--ioengine=cpuio --cpuload=101", "write at most 100");
    refused(
        "--ioengine=cpuio --cpuload=9 --io_submit_mode=offload",
        "leave out io_submit_mode",
    );
    refused("--ioengine=exec", "the job names no program");
    refused(
        "--ioengine=exec --program=./missing",
        "./missing: No such file or directory",
    );
    refused("--ioengine=external:./engine.so", "fathom-engine-example");
    refused(
        "--ioengine=net --rw=read --size=1m",
        "TCP and UDP need a port",
    );
    refused(
        "--ioengine=net --rw=randread --size=1m --port=1 --listen",
        "have an order",
    );
    refused(
        "--ioengine=netsplice --protocol=udp --rw=read --size=1m --port=1",
        "over a stream only",
    );
}

#[test]
fn a_program_runs_for_the_duration_of_the_job() {
    let folder = Folder::new();
    folder.write("echo.sh", "echo \"$@\"\necho err >&2\nsleep 100\n");
    folder.write(
        "j.fio",
        "[a/b]\nioengine=exec\nprogram=/bin/sh\narguments=echo.sh %n %r \"x y\"\nruntime=1\n\
         numjobs=2\n",
    );
    let run = folder.fathom("run j.fio --output-format=json").expect(0);
    let job = &run.json()["jobs"][0];
    assert!(job["read"]["total_ios"].as_u64().unwrap() > 0);
    assert_eq!(job["read"]["io_bytes"].as_u64(), Some(0));
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(text("a.b.stdout"), "a/b 1 \"x y\"\n");
    assert_eq!(
        (text("a.b.stderr"), text("a.b.1.stdout")),
        ("err\n".into(), text("a.b.stdout"))
    );
}

#[test]
fn a_job_without_a_runtime_ends_with_its_program() {
    let folder = Folder::new();
    let run = "run --name=t --ioengine=exec --program=true --std_redirect=0";
    folder.fathom(run).expect(0);
    assert!(folder.names().is_empty());
}

#[test]
fn a_program_that_fails_fails_the_job() {
    let folder = Folder::new();
    folder.write("fail.sh", "echo why >&2\nexit 3\n");
    let words = "run --name=t --ioengine=exec --program=/bin/sh --arguments=fail.sh --runtime=60";
    let run = folder.fathom(words).expect(1);
    let all = format!("{}{}", run.out, run.err);
    assert!(all.contains("/bin/sh: exit status: 3"), "{all}");
    assert!(all.contains("see t.stderr"), "{all}");
}

#[test]
fn a_program_that_does_not_end_is_killed_after_its_grace_time() {
    let folder = Folder::new();
    folder.write(
        "deaf.sh",
        "trap '' TERM\necho $$ > pid\nsleep 1000 & wait; sleep 1000\n",
    );
    let words = "run --name=t --ioengine=exec --program=/bin/sh --arguments=deaf.sh --runtime=1 \
                 --grace_time=0";
    folder.fathom(words).expect(0);
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let left = std::path::Path::new("/proc").join(pid.trim());
    assert!(!left.exists(), "{} is left", left.display());
}
