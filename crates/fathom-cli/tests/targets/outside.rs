//! The test that starts the second program, and its clean-up.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tools;

/// Variables of the second program.
pub(crate) const FOLDER: &str = "FATHOM_TARGETS_FOLDER";
pub(crate) const SUBJECT: &str = "FATHOM_TARGETS_SUBJECT";

/// Directory in which the second program works. Mounts end with its namespaces; swap, loop devices
/// and zram are undone on drop.
pub(crate) struct Outside(PathBuf);

impl Outside {
    pub(crate) fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only the number itself is shared.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("targets-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }

    /// Runs the second program on a subject in these namespaces.
    pub(crate) fn run(&self, subject: &str, namespaces: &[&str]) {
        let mut possible: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"unshare"];
        possible.extend(namespaces.iter().map(|word| word as &dyn AsRef<_>));
        let mut probe = possible.clone();
        probe.push(&"true");
        if let Err(why) = tools::run(&probe) {
            println!("skipped: {why}");
            return;
        }
        let program = std::env::current_exe().unwrap();
        let words = ["inside", "--exact", "--ignored", "--nocapture"];
        possible.push(&program);
        possible.extend(words.iter().map(|word| word as &dyn AsRef<_>));
        let mut command = tools::command(SECONDS, &possible);
        command.env(FOLDER, &self.0).env(SUBJECT, subject);
        let output = command.output().unwrap();
        println!("{}", String::from_utf8_lossy(&output.stdout));
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!tools::was_ended(&output), "not done in {SECONDS} s: {err}");
        assert!(output.status.success(), "{err}");
    }

    /// Undoes what the second program may have left; it does so itself unless it was killed.
    fn undo(&self) {
        let mine = |path: &str| Path::new(path).starts_with(&self.0);
        let loops = loops().into_iter().filter(|(_, file)| mine(file));
        let loops: Vec<PathBuf> = loops.map(|(device, _)| device).collect();
        let zrams = fs::read_to_string(self.0.join(ZRAM)).unwrap_or_default();
        let zrams: Vec<&str> = zrams.lines().collect();
        // /proc/swaps has no usable names for nodes of a /dev that is gone. What is not swapped to
        // is refused.
        let zram_nodes = zrams.iter().map(|number| format!("/dev/zram{number}"));
        let swaps = loops.iter().cloned().chain(zram_nodes.map(PathBuf::from));
        for swap in swaps.chain([self.0.join(SWAP_FILE)]) {
            let _undone = tools::run(&[&"swapoff", &swap]);
        }
        for device in loops {
            let _undone = tools::run(&[&"losetup", &"--detach", &device]);
        }
        for number in zrams {
            remove_zram(number);
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.undo();
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Returns the attached loop devices, each with its backing file.
fn loops() -> Vec<(PathBuf, String)> {
    let devices = fs::read_dir("/sys/class/block").into_iter().flatten();
    let attached = devices.filter_map(|entry| {
        let entry = entry.ok()?;
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let device = Path::new("/dev").join(entry.file_name());
        Some((device, file.trim_end().to_owned()))
    });
    attached.collect()
}

/// Removes a zram device by its number.
pub(crate) fn remove_zram(number: &str) {
    let _was_empty = fs::write(format!("/sys/block/zram{number}/reset"), "1");
    let _undone = fs::write("/sys/class/zram-control/hot_remove", number);
}

/// Swap file in the directory.
pub(crate) const SWAP_FILE: &str = "disk/swap-file";
/// File in the folder with the numbers of the zram devices that were added.
pub(crate) const ZRAM: &str = "zram";
/// A hundred times the duration on an idle machine.
const SECONDS: u32 = 300;
