//! The machine with the targets: files, file systems, devices, and a private /dev.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::outside::{SWAP_FILE, ZRAM, remove_zram};
use crate::snapshot::{self, Snapshot};
use crate::tools;

/// Bytes of a file before each cell, and of each device.
const FILE_BYTES: usize = 64 << 10;
const DEVICE_BYTES: u64 = 256 << 10;

/// Devices, mounts and files built for the test; undone on drop, and when the namespaces end.
pub(crate) struct Machine {
    folder: PathBuf,
    /// Loop devices, which live as long as they are open.
    loops: RefCell<Vec<(PathBuf, File)>>,
    swaps: RefCell<Vec<PathBuf>>,
    zrams: RefCell<Vec<String>>,
    listener: RefCell<Option<UnixListener>>,
    /// The other end of the pipe.
    pipe: RefCell<Option<File>>,
    targets: Vec<(&'static str, Result<Target, String>)>,
}

/// One target.
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    /// Names whose content may change because it is the target's.
    pub(crate) may_change: Vec<PathBuf>,
    made: Made,
}

/// Recipe by which a new target is made for each cell.
enum Made {
    File,
    /// A link, and the file that it leads to.
    Link(PathBuf),
    /// A link to a name that does not exist.
    Dangling(PathBuf),
    Folder,
    Pipe,
    Socket,
    /// Not at all.
    Once,
}

impl Machine {
    /// Builds it in a folder, in namespaces of its own.
    pub(crate) fn build(folder: &Path) -> Self {
        let mut machine = Self {
            folder: folder.to_path_buf(),
            loops: RefCell::default(),
            swaps: RefCell::default(),
            zrams: RefCell::default(),
            listener: RefCell::default(),
            pipe: RefCell::default(),
            targets: Vec::new(),
        };
        for name in ["disk", "memory", "overlay", "mounted", "beneath", "cwd"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        tools::run(&[&"mount", &"-t", &"tmpfs", &"fathom", &folder.join("memory")]).unwrap();
        let files = machine.files();
        let devices = machine.devices();
        machine.targets.extend(files);
        machine.targets.extend(devices);
        machine.own_devices();
        let characters = ["null", "zero", "full", "urandom", "tty", "kmsg"];
        let characters = characters.map(|name| (name, machine.character(name)));
        machine.targets.extend(characters);
        machine
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns a target by its name in the table, or why this machine lacks it.
    pub(crate) fn target(&self, name: &str) -> Result<&Target, &str> {
        let found = self.targets.iter().find(|(one, _)| *one == name);
        let (_, target) = found.unwrap_or_else(|| panic!("no target is called `{name}`"));
        target.as_ref().map_err(String::as_str)
    }

    /// Returns files and other entries of a file system.
    fn files(&self) -> Vec<(&'static str, Result<Target, String>)> {
        let at = |name: &str| self.path(name);
        let target = |path: &str, made| Target::new(at(path), &[], made);
        let gone = at("memory/gone");
        let linked = at("memory/linked");
        vec![
            ("file", Ok(target("disk/file", Made::File))),
            ("tmpfs file", Ok(target("memory/file", Made::File))),
            (
                "link",
                Ok(Target::new(
                    at("memory/link"),
                    &[&linked],
                    Made::Link(linked.clone()),
                )),
            ),
            (
                "dangling link",
                Ok(Target::new(
                    at("memory/dangling"),
                    &[&gone],
                    Made::Dangling(gone.clone()),
                )),
            ),
            (
                "link into /dev",
                Ok(target(
                    "memory/astray",
                    Made::Dangling("/dev/fathom-is-not-here".into()),
                )),
            ),
            ("directory", Ok(target("memory/folder", Made::Folder))),
            ("pipe", Ok(target("memory/pipe", Made::Pipe))),
            ("socket", Ok(target("memory/socket", Made::Socket))),
            ("procfs file", Ok(Target::once(proc_file(), &[]))),
            ("overlay file", self.overlay()),
        ]
    }

    fn overlay(&self) -> Result<Target, String> {
        let at = |name: &str| self.path("memory").join(name);
        for name in ["lower", "upper", "scratch"] {
            fs::create_dir(at(name)).unwrap();
        }
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            at("lower").display(),
            at("upper").display(),
            at("scratch").display()
        );
        let point = self.path("overlay");
        tools::run(&[
            &"mount", &"-t", &"overlay", &"fathom", &"-o", &layers, &point,
        ])?;
        Ok(Target::new(
            point.join("file"),
            &[&at("upper/file")],
            Made::File,
        ))
    }

    /// Returns block devices and the files behind them.
    fn devices(&self) -> Vec<(&'static str, Result<Target, String>)> {
        let mut targets = vec![];
        let free = self
            .image("disk/free")
            .and_then(|image| Ok((self.attach(&image)?, image)));
        match free {
            Ok((device, image)) => {
                let hand = self.node("memory/by-hand", &device);
                let same = [&*image, &*device, &self.path("memory/by-hand")].map(Path::to_path_buf);
                let same = same.each_ref();
                targets.push(("loop", Ok(Target::once(device.clone(), &same))));
                targets.push(("file of a loop", Ok(Target::once(image.clone(), &same))));
                let hand = hand.map(|node| Target::once(node, &same));
                targets.push(("node by hand", hand));
                targets.push(("sysfs file", Ok(Target::once(read_ahead(&device), &[]))));
            }
            Err(why) => {
                for name in ["loop", "file of a loop", "node by hand", "sysfs file"] {
                    targets.push((name, Err(why.clone())));
                }
            }
        }
        let on_memory = self.image("memory/free").and_then(|image| {
            let device = self.attach(&image)?;
            Ok(Target::once(device, &[&image]))
        });
        targets.push(("loop on tmpfs", on_memory));
        targets.extend(self.mounted());
        targets.extend(self.beneath());
        targets.extend(self.swaps());
        targets
    }

    /// Returns a mounted device and all ways to its data.
    fn mounted(&self) -> Vec<(&'static str, Result<Target, String>)> {
        let names = [
            "mounted",
            "file of mounted",
            "second loop",
            "loop on mounted",
            "mounted by hand",
        ];
        let build = || -> Result<_, String> {
            let image = self.image("disk/mounted")?;
            let device = self.attach(&image)?;
            let others = [self.attach(&image)?, self.attach(&device)?];
            let hand = self.node("memory/mounted-by-hand", &device)?;
            self.mount(&device, "mounted")?;
            let [second, over] = others;
            Ok([device, image, second, over, hand])
        };
        match build() {
            Ok(paths) => names
                .into_iter()
                .zip(paths.map(|path| Ok(Target::once(path, &[]))))
                .collect(),
            Err(why) => names
                .into_iter()
                .map(|name| (name, Err(why.clone())))
                .collect(),
        }
    }

    /// Returns the disk below a mounted loop device that was attached through another node.
    fn beneath(&self) -> Vec<(&'static str, Result<Target, String>)> {
        let build = || {
            let disk = self.attach(&self.image("disk/beneath")?)?;
            let node = self.node("memory/beneath", &disk)?;
            let device = self.attach(&node)?;
            self.mount(&device, "beneath")?;
            Ok(Target::once(disk, &[]))
        };
        vec![("beneath mounted", build())]
    }

    fn swaps(&self) -> Vec<(&'static str, Result<Target, String>)> {
        let file = self.image(SWAP_FILE).and_then(|file| self.swap_to(file));
        let (device, behind) = match self.image("disk/swap-device") {
            Ok(image) => match self.attach(&image).and_then(|device| self.swap_to(device)) {
                Ok(device) => {
                    self.swaps.borrow_mut().push(image.clone());
                    (Ok(device), Ok(Target::once(image, &[])))
                }
                Err(why) => (Err(why.clone()), Err(why)),
            },
            Err(why) => (Err(why.clone()), Err(why)),
        };
        vec![
            ("swap file", file),
            ("swap device", device),
            ("file of swap", behind),
            ("zram", self.zram().map(|device| Target::once(device, &[]))),
            (
                "zram as swap",
                self.zram().and_then(|device| self.swap_to(device)),
            ),
        ]
    }

    fn swap_to(&self, path: PathBuf) -> Result<Target, String> {
        if self.loops.borrow().is_empty() {
            return Err("no loop devices either".into());
        }
        tools::run(&[&"mkswap", &path])?;
        tools::run(&[&"swapon", &path])?;
        self.swaps.borrow_mut().push(path.clone());
        Ok(Target::once(path, &[]))
    }

    /// Creates a zram device.
    fn zram(&self) -> Result<PathBuf, String> {
        if self.loops.borrow().is_empty() {
            return Err("no loop devices either".into());
        }
        let control = Path::new("/sys/class/zram-control/hot_add");
        let number = fs::read_to_string(control).map_err(|error| format!("zram: {error}"))?;
        let number = number.trim().to_owned();
        self.zrams.borrow_mut().push(number.clone());
        fs::write(self.path(ZRAM), self.zrams.borrow().join("\n")).unwrap();
        let size = format!("/sys/block/zram{number}/disksize");
        fs::write(size, DEVICE_BYTES.to_string()).map_err(|error| format!("zram: {error}"))?;
        Ok(PathBuf::from(format!("/dev/zram{number}")))
    }

    fn image(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        let mut file = OpenOptions::new();
        let file = file
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path);
        // Without holes: swap has none.
        let content = vec![1; usize::try_from(DEVICE_BYTES).unwrap()];
        let written = file.and_then(|mut file| {
            file.write_all(&content)?;
            file.sync_all()
        });
        written
            .map(|()| path)
            .map_err(|error| format!("{name}: {error}"))
    }

    /// Attaches a loop device that the kernel releases when this process ends: it is marked for
    /// detachment while open.
    fn attach(&self, file: &Path) -> Result<PathBuf, String> {
        let users = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        if users.split_whitespace().nth(2) != Some("4294967295") {
            return Err("loop devices belong to the first user namespace".into());
        }
        let device = PathBuf::from(tools::run(&[&"losetup", &"--find", &"--show", &file])?);
        let open = File::open(&device);
        let detached = tools::run(&[&"losetup", &"--detach", &device]);
        let open = open.map_err(|error| format!("{}: {error}", device.display()))?;
        self.loops.borrow_mut().push((device.clone(), open));
        detached.map(|_| device)
    }

    fn node(&self, name: &str, device: &Path) -> Result<PathBuf, String> {
        let path = self.path(name);
        make_node(&path, device, "b")?;
        Ok(path)
    }

    fn mount(&self, device: &Path, name: &str) -> Result<(), String> {
        let plain = [
            "mkfs.ext4",
            "-q",
            "-O",
            "^has_journal",
            "-E",
            "lazy_itable_init=0",
        ];
        let mut words: Vec<&dyn AsRef<std::ffi::OsStr>> = Vec::new();
        words.extend(plain.iter().map(|word| word as &dyn AsRef<_>));
        words.push(&device);
        tools::run(&words)?;
        tools::run(&[&"mount", &"-o", &"noatime", &device, &self.path(name)])?;
        tools::run(&[&"sync", &"--file-system", &self.path(name)]).map(|_| ())
    }

    /// Mounts a private /dev, so that no device of the machine can be overwritten.
    fn own_devices(&self) {
        let own = self.path("dev");
        fs::create_dir(&own).unwrap();
        tools::run(&[&"mount", &"-t", &"tmpfs", &"fathom", &own]).unwrap();
        for name in ["null", "zero", "full", "random", "urandom", "tty", "kmsg"] {
            let (from, to) = (Path::new("/dev").join(name), own.join(name));
            let made = make_node(&to, &from, "c");
            // In a user namespace nodes cannot be made, but shown.
            if made.is_err() || File::open(own.join("null")).is_err() {
                let _none = fs::remove_file(&to);
                fs::write(&to, "").unwrap();
                tools::run(&[&"mount", &"--bind", &from, &to]).unwrap();
            }
        }
        let loops = self.loops.borrow();
        let zrams = self.zrams.borrow();
        let zrams = zrams
            .iter()
            .map(|number| PathBuf::from(format!("/dev/zram{number}")));
        for device in loops.iter().map(|(device, _)| device.clone()).chain(zrams) {
            make_node(&own.join(device.file_name().unwrap()), &device, "b").unwrap();
        }
        for (name, number) in [("stdin", 0), ("stdout", 1), ("stderr", 2)] {
            symlink(format!("/proc/self/fd/{number}"), own.join(name)).unwrap();
        }
        tools::run(&[&"mount", &"--move", &own, &"/dev"])
            .or_else(|_| tools::run(&[&"mount", &"--rbind", &own, &"/dev"]))
            .unwrap();
    }

    fn character(&self, name: &str) -> Result<Target, String> {
        Ok(Target::once(Path::new("/dev").join(name), &[]))
    }

    /// Restores a target to its state before each cell.
    pub(crate) fn make(&self, target: &Target) {
        let path = &target.path;
        let content = [7; FILE_BYTES];
        let remove = |path: &Path| {
            let _none = fs::remove_file(path);
        };
        match &target.made {
            Made::File => fs::write(path, content).unwrap(),
            Made::Link(to) => {
                fs::write(to, content).unwrap();
                remove(path);
                symlink(to, path).unwrap();
            }
            Made::Dangling(to) => {
                remove(to);
                remove(path);
                symlink(to, path).unwrap();
            }
            Made::Folder => fs::create_dir_all(path).unwrap(),
            Made::Pipe => {
                remove(path);
                tools::run(&[&"mkfifo", path]).unwrap();
                // Someone reads, and has room for a report.
                let both = OpenOptions::new().read(true).write(true).open(path);
                *self.pipe.borrow_mut() = Some(both.unwrap());
            }
            Made::Socket => {
                remove(path);
                *self.listener.borrow_mut() = Some(UnixListener::bind(path).unwrap());
            }
            Made::Once => {}
        }
    }

    /// Returns everything that a run could reach, after flushing devices.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let loops = self.loops.borrow();
        if !loops.is_empty() {
            let mut words: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"blockdev", &"--flushbufs"];
            words.extend(loops.iter().map(|(device, _)| device as &dyn AsRef<_>));
            tools::run(&words).unwrap();
        }
        snapshot::take(&[&self.folder, Path::new("/dev")], &self.swaps.borrow())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for swap in self.swaps.borrow().iter() {
            let _undone = tools::run(&[&"swapoff", swap]);
        }
        for number in self.zrams.borrow().iter() {
            remove_zram(number);
        }
    }
}

impl Target {
    fn new(path: PathBuf, others: &[&PathBuf], made: Made) -> Self {
        let mut may_change = vec![path.clone()];
        may_change.extend(others.iter().map(|other| other.to_path_buf()));
        Self {
            path,
            may_change,
            made,
        }
    }

    pub(crate) const fn is_link(&self) -> bool {
        matches!(self.made, Made::Link(_) | Made::Dangling(_))
    }

    fn once(path: PathBuf, others: &[&PathBuf]) -> Self {
        Self::new(path, others, Made::Once)
    }
}

/// Creates a device node with the same number as another.
fn make_node(path: &Path, like: &Path, kind: &str) -> Result<(), String> {
    let raw = fs::metadata(like)
        .map_err(|error| format!("{}: {error}", like.display()))?
        .rdev();
    let major = (raw >> 8 & 0xfff).to_string();
    let minor = (raw & 0xff | raw >> 12 & 0xf_ff00).to_string();
    tools::run(&[&"mknod", &path, &kind, &major, &minor]).map(|_| ())
}

/// Returns a file of procfs that accepts few values, so that random bytes do no harm.
fn proc_file() -> PathBuf {
    PathBuf::from(format!("/proc/{}/oom_score_adj", std::process::id()))
}

fn read_ahead(device: &Path) -> PathBuf {
    let name = device.file_name().unwrap();
    Path::new("/sys/block")
        .join(name)
        .join("queue/read_ahead_kb")
}
