//! `ioengine=nbd` as a user runs it, on exports of nbdkit.

use std::process::{Command, Stdio};

use crate::common::{Folder, Run};

/// nbdkit with a socket in a folder, ended on drop.
struct Nbdkit {
    folder: Folder,
    socket: tempdir::Short,
}

/// A directory with a short path: that of a socket has 107 bytes at most.
mod tempdir {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    pub(crate) struct Short(pub(crate) PathBuf);

    impl Short {
        pub(crate) fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("fathom-cli-nbd-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Short {
        fn drop(&mut self) {
            let _removed = std::fs::remove_dir_all(&self.0);
        }
    }
}

impl Nbdkit {
    /// Starts it with these words, the last of which name the plugin; `None` if it is not
    /// installed.
    fn start(words: &str) -> Option<Self> {
        let (folder, socket) = (Folder::new(), tempdir::Short::new());
        let mut command = Command::new("nbdkit");
        command.arg("-P").arg(socket.0.join("pid"));
        command.arg("-U").arg(socket.0.join("s"));
        command.args(words.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match command.stderr(Stdio::null()).status() {
            Ok(status) => assert!(status.success(), "{command:?}"),
            Err(error) => {
                println!("skipped: nbdkit: {error}");
                return None;
            }
        }
        Some(Self { folder, socket })
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}/s", self.socket.0.display())
    }

    /// Runs a job on the export.
    fn run(&self, words: &str) -> Run {
        let start = format!("run --name=x --ioengine=nbd --uri={} {words}", self.uri());
        self.folder.fathom(&start)
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        if let Ok(pid) = std::fs::read_to_string(self.socket.0.join("pid")) {
            let _ended = Command::new("kill").arg(pid.trim()).status();
        }
    }
}

#[test]
fn data_are_verified_over_the_whole_export() {
    let Some(nbdkit) = Nbdkit::start("memory 8M") else {
        return;
    };
    for words in [
        "--rw=write --bs=64k --iodepth=8 --verify=crc32c",
        "--rw=randwrite --bs=4k --iodepth=32 --connections=2 --verify=crc32c",
        "--rw=randwrite --bs=1m --iodepth=2 --fsync=2 --sync=dsync --verify=md5",
    ] {
        let run = nbdkit.run(&format!("{words} --output-format=json"));
        let report = run.expect(0).json();
        let job = &report["jobs"][0];
        assert_eq!(job["error"], 0, "{report}");
        assert_eq!(job["write"]["io_bytes"], 8 << 20, "{words}: {report}");
        assert_eq!(job["read"]["io_bytes"], 8 << 20, "{words}: {report}");
    }
    assert_eq!(nbdkit.folder.names(), [""; 0], "no file is made of the URI");
}

#[test]
fn jobs_and_clones_share_an_export() {
    let Some(nbdkit) = Nbdkit::start("memory 8M") else {
        return;
    };
    let words = "--rw=randrw --bs=4k --iodepth=4 --size=2m --offset_increment=2m --numjobs=4 \
                 --group_reporting --output-format=json";
    let report = nbdkit.run(words).expect(0).json();
    let job = &report["jobs"][0];
    let bytes = |side: &str| job[side]["io_bytes"].as_u64().unwrap();
    assert_eq!(bytes("read") + bytes("write"), 8 << 20, "{report}");
}

#[track_caller]
fn check_refused(server: &str, words: &str, want: &[&str]) {
    let Some(nbdkit) = Nbdkit::start(server) else {
        return;
    };
    let run = nbdkit.run(words).expect(2);
    for text in want {
        assert!(run.err.contains(text), "{words}: {run:#?}");
    }
}

#[test]
fn what_an_export_does_not_take_is_refused_before_the_run() {
    check_refused(
        "-r memory 1M",
        "--rw=randrw --bs=4k",
        &["is read-only", "use `rw=read`"],
    );
    check_refused(
        "--filter=blocksize-policy memory 1M blocksize-minimum=4096 \
         blocksize-error-policy=error",
        "--rw=read --bs=512",
        &[
            "block size 512 B is not a multiple of the 4096 B",
            "make `bs` a multiple of 4096",
        ],
    );
    check_refused(
        "--filter=multi-conn memory 1M multi-conn-mode=disable",
        "--rw=read --bs=4k --connections=2",
        &["does not support several connections"],
    );
    check_refused("memory 1M", "--rw=read --bs=4k --offset=2m", &["offset"]);
}

#[test]
fn a_uri_is_needed_and_checked() {
    let folder = Folder::new();
    for (words, want) in [
        ("", "engine `nbd` needs `uri`"),
        ("--uri=nbds://localhost/", "TLS is not supported"),
        ("--uri=localhost", "not a URI"),
        (
            "--uri=nbd+unix:///?socket=/no/such",
            "start the server, or check uri",
        ),
    ] {
        let run = folder.fathom(&format!("run --name=x --ioengine=nbd --rw=read {words}"));
        let run = run.expect(2);
        assert!(run.err.contains(want), "{words}: {run:#?}");
    }
}

#[test]
fn a_log_is_replayed_on_the_export_whatever_it_names() {
    let Some(nbdkit) = Nbdkit::start("memory 1M") else {
        return;
    };
    let lines = [
        "fio version 3 iolog",
        "0 /dev/sda add",
        "0 /dev/sda open",
        "0 /dev/sdb add",
        "0 /dev/sdb open",
        "1 /dev/sda write 4096 8192",
        "2 /dev/sdb read 0 4096",
        "3 /dev/sda close",
        "3 /dev/sdb close",
    ];
    nbdkit.folder.write("log", lines.join("\n") + "\n");
    let run = nbdkit.run("--read_iolog=log --output-format=json");
    let report = run.expect(0).json();
    let job = &report["jobs"][0];
    assert_eq!(job["write"]["io_bytes"], 8192, "{report}");
    assert_eq!(job["read"]["io_bytes"], 4096, "{report}");
}

#[test]
fn a_replay_on_a_read_only_export_leaves_writes_out_or_is_refused() {
    let Some(nbdkit) = Nbdkit::start("-r memory 1M") else {
        return;
    };
    let lines = [
        "fio version 3 iolog",
        "0 f add",
        "0 f open",
        "1 f write 0 4096",
        "2 f read 0 4096",
        "3 f close",
    ];
    nbdkit.folder.write("log", lines.join("\n") + "\n");
    let run = nbdkit.run("--read_iolog=log").expect(2);
    for text in ["is read-only", "read_iolog", "`replay_skip=write`"] {
        assert!(run.err.contains(text), "{text}: {run:#?}");
    }
    let run = nbdkit.run("--read_iolog=log --replay_skip=write --output-format=json");
    let report = run.expect(0).json();
    assert_eq!(report["jobs"][0]["read"]["io_bytes"], 4096, "{report}");
}

#[test]
fn an_error_of_the_server_is_that_of_the_job() {
    let words = "--filter=error memory 1M error-pread=ENOSPC error-pread-rate=100%";
    let Some(nbdkit) = Nbdkit::start(words) else {
        return;
    };
    let run = nbdkit.run("--rw=read --bs=4k --output-format=json");
    assert_eq!(run.json()["jobs"][0]["error"], 28, "{run:#?}");
}
