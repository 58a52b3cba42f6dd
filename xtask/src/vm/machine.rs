//! A running guest.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::image::Image;
use super::outside::Outside;
use super::spec::Spec;
use crate::lines::Lines;
use crate::process;

/// Returns the reason why this machine can run no guest, if any.
pub(crate) fn obstacle(qemu: &Path) -> Option<String> {
    let lacks = |program: &str| process::find(program).is_none();
    if !qemu.is_file() && lacks(&qemu.to_string_lossy()) {
        return Some(format!("no {} (package qemu-system-x86)", qemu.display()));
    }
    let packages = lacks("apt-get") || lacks("dpkg-deb");
    packages.then(|| "no Debian packages".to_owned())
}

/// Returns the major version of QEMU.
pub(crate) fn qemu_version(qemu: &Path) -> Result<u32> {
    let text = process::capture(Command::new(qemu).arg("--version"))?;
    let version = text
        .split_whitespace()
        .skip_while(|word| *word != "version")
        .nth(1);
    let major = version.and_then(|version| version.split('.').next()?.parse().ok());
    major.with_context(|| format!("no version in `{text}`"))
}

/// Boots a guest with a shell on this terminal, and returns when it is off.
pub(crate) fn interact(image: &Image, spec: &Spec, folder: &Path) -> Result<()> {
    let port = spec.network.then(free_port).transpose()?;
    process::run(&mut qemu(image, spec, folder, port)?)
}

/// A crash of the guest's kernel, which is never the fault of the program under test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelPanic;

impl fmt::Display for KernelPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the guest's kernel crashed")
    }
}

impl std::error::Error for KernelPanic {}

/// A guest that runs a script, from power on to power off. Dropped, it is killed.
///
/// Its console is the only way to talk to it: lines that begin with `@` are requests to
/// [`Outside`], answered on the same console, or the result of the script.
#[derive(Debug)]
pub(crate) struct Machine {
    qemu: Child,
    input: ChildStdin,
    output: Lines,
    outside: Outside,
    limit: Duration,
    deadline: Instant,
}

impl Machine {
    /// Boots an image. Files are in `folder`, and `fathom` is the program under test around it.
    pub(crate) fn boot(image: &Image, spec: &Spec, folder: &Path, fathom: &Path) -> Result<Self> {
        let port = spec.network.then(free_port).transpose()?;
        let outside = Outside::new(folder, fathom, port)?;
        let mut command = qemu(image, spec, folder, port)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut qemu = command.spawn().context("cannot start QEMU")?;
        let input = qemu.stdin.take().context("no pipe")?;
        let output = qemu.stdout.take().context("no pipe")?;
        Ok(Self {
            qemu,
            input,
            output: Lines::of(output),
            outside,
            limit: spec.limit,
            deadline: process::now() + spec.limit,
        })
    }

    /// Serves the guest until its script has ended, and returns the script's exit code; shows the
    /// logs of the processes around it unless that is 0.
    pub(crate) fn serve(&mut self, show: impl Fn(&str)) -> Result<u8> {
        let served = self.serve_requests(&show);
        if !matches!(served, Ok(0)) {
            self.outside.logs().iter().for_each(|line| show(line));
        }
        served
    }

    fn serve_requests(&mut self, show: &impl Fn(&str)) -> Result<u8> {
        loop {
            let line = self.output.next(self.deadline).with_context(|| {
                let seconds = self.limit.as_secs();
                format!("stopped after {seconds} s; `--limit SECONDS` grants more")
            })?;
            let line = line.context("the guest ended without a result")?;
            if line.contains("Kernel panic - not syncing") {
                show(&line);
                return Err(KernelPanic.into());
            }
            match line.strip_prefix('@') {
                None => show(&line),
                Some(request) => match request.strip_prefix("ended ") {
                    Some(code) => return code.parse().context("the guest's exit code"),
                    None => self.answer(request, show)?,
                },
            }
        }
    }

    fn answer(&mut self, request: &str, show: &impl Fn(&str)) -> Result<()> {
        show(&format!("$ {request}"));
        let mut text = String::new();
        match self.outside.request(request, self.deadline) {
            Ok(lines) => {
                for line in lines {
                    show(&line);
                    // The guest's terminal takes lines of 4095 bytes at most.
                    let line: String = line.chars().take(LINE_CHARACTERS_MAX).collect();
                    text.push_str(&format!("answer: {line}\n"));
                }
                text.push_str("answer done\n");
            }
            Err(error) => {
                show(&format!("{error:#}"));
                text.push_str("answer failed\n");
            }
        }
        self.input.write_all(text.as_bytes())?;
        self.input.flush()?;
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _has_ended = self.qemu.kill();
        let _status = self.qemu.wait();
    }
}

/// Returns the command of QEMU, whose console is its standard input and output.
fn qemu(image: &Image, spec: &Spec, folder: &Path, port: Option<u16>) -> Result<Command> {
    let initramfs = folder.join("initramfs");
    fs::write(&initramfs, &image.initramfs)?;
    let devices = spec.emulated(folder)?;
    if spec.memory_mib < MEMORY_MIB_MIN {
        bail!(
            "--memory {}: the guest needs {MEMORY_MIB_MIN} MiB",
            spec.memory_mib
        );
    }
    let mut command = process::tied(&spec.qemu.to_string_lossy());
    command
        .args(HARDWARE)
        .args(["-m", &spec.memory_mib.to_string()])
        .arg("-kernel")
        .arg(&image.kernel)
        .arg("-initrd")
        .arg(&initramfs)
        .args(devices);
    if let Some(port) = port {
        let forward = format!("user,id=net,hostfwd=tcp:127.0.0.1:{port}-:{GUEST_PORT}");
        command.args(["-netdev", &forward, "-device", "virtio-net-pci,netdev=net"]);
    }
    Ok(command)
}

/// Returns a port that is free until QEMU takes it: nothing here can reserve one for another
/// process.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Port of the kernel's target in the guest.
const GUEST_PORT: u16 = 4420;
/// The initramfs, twice while it is unpacked, and the programs in it.
const MEMORY_MIB_MIN: u32 = 512;
/// A machine with a console. Four processors, because Linux opens no more I/O queues than it has;
/// they are emulated, which works on every machine. Signals of the terminal go to the guest.
const HARDWARE: &[&str] = &[
    "-accel",
    "tcg,thread=multi",
    "-cpu",
    "max",
    "-smp",
    "4",
    "-nodefaults",
    "-display",
    "none",
    "-monitor",
    "none",
    "-chardev",
    "stdio,id=console,signal=off",
    "-serial",
    "chardev:console",
    "-no-reboot",
    "-append",
    // After an oops the locks of the killed process stay held, and the guest would hang.
    "console=ttyS0 quiet panic=-1 oops=panic",
];
const LINE_CHARACTERS_MAX: usize = 1000;
