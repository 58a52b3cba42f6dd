//! Servers of others: nbdkit and qemu-nbd, each with a file.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_conformance::{BLOCK, BLOCKS, content};

/// Running server with a file, which ends with this value.
pub(crate) struct Program {
    folder: PathBuf,
}

impl Program {
    /// Starts nbdkit with further words, filters before the plugin and their parameters after it.
    pub(crate) fn nbdkit(filters: &str, parameters: &str) -> Option<Self> {
        Self::start(|folder| {
            let mut command = Command::new("nbdkit");
            command.arg("-P").arg(folder.join("pid"));
            command.arg("-U").arg(folder.join("socket"));
            command.args(filters.split_whitespace());
            command.arg("file").arg(folder.join("disk"));
            command.args(parameters.split_whitespace());
            command
        })
    }

    /// Starts qemu-nbd with further words.
    pub(crate) fn qemu_nbd(words: &str) -> Option<Self> {
        Self::start(|folder| {
            let mut command = Command::new("qemu-nbd");
            command.args(["--fork", "-t", "-f", "raw", "-x", "disk"]);
            command.arg("--pid-file").arg(folder.join("pid"));
            command.arg("-k").arg(folder.join("socket"));
            command.args(words.split_whitespace());
            command.arg(folder.join("disk"));
            command
        })
    }

    /// Starts a server, which goes to the background once it listens; `None` if there is none.
    fn start(command: impl FnOnce(&PathBuf) -> Command) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Short: the path of a socket has 107 bytes at most.
        let folder = format!("fathom-nbd-{}-{number}", std::process::id());
        let program = Self {
            folder: std::env::temp_dir().join(folder),
        };
        fs::create_dir_all(&program.folder).unwrap();
        let blocks: Vec<u8> = (0..BLOCKS).flat_map(content).collect();
        fs::write(program.folder.join("disk"), blocks).unwrap();
        let mut command = command(&program.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        match command.stderr(Stdio::null()).status() {
            Ok(status) => assert!(status.success(), "{command:?}"),
            Err(error) => {
                println!("skipped: {}: {error}", command.get_program().display());
                return None;
            }
        }
        Some(program)
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///disk?socket={}/socket", self.folder.display())
    }

    pub(crate) fn block(&self, block: u32) -> Vec<u8> {
        let file = fs::File::open(self.folder.join("disk")).unwrap();
        let mut data = vec![0; BLOCK as usize];
        let offset = u64::from(block) * u64::from(BLOCK);
        file.read_exact_at(&mut data, offset).unwrap();
        data
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(pid) = fs::read_to_string(self.folder.join("pid")) {
            let _ended = Command::new("kill").arg(pid.trim()).status();
        }
        let _removed = fs::remove_dir_all(&self.folder);
    }
}
