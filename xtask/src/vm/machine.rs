//! A running guest.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::image::Image;
use super::outside::Outside;
use crate::lines::Lines;
use crate::process;

/// A guest, from power on to power off. Dropped, it is killed.
///
/// Its console is the only way to talk to it: lines that begin with `@` are requests to
/// [`Outside`], answered on the same console, or the result of the script.
#[derive(Debug)]
pub(crate) struct Machine {
    qemu: Child,
    input: ChildStdin,
    output: Lines,
    outside: Outside,
    deadline: Instant,
}

impl Machine {
    /// Returns the reason why this machine can run no guest, if any.
    pub(crate) fn obstacle() -> Option<&'static str> {
        let lacks = |program| process::find(program).is_none();
        if lacks(QEMU) {
            return Some("no qemu-system-x86_64 (package qemu-system-x86)");
        }
        (lacks("apt-get") || lacks("dpkg-deb")).then_some("no Debian packages")
    }

    /// Boots an image; the guest may take `limit` until it is off. Files are in `folder`.
    pub(crate) fn boot(
        image: &Image,
        folder: &Path,
        fathom: &Path,
        limit: Duration,
    ) -> Result<Self> {
        // Free until QEMU takes it: nothing here can reserve a port for another process.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let outside = Outside::new(folder, fathom, port)?;
        let initramfs = outside.folder().join("initramfs");
        fs::write(&initramfs, &image.initramfs)?;
        let mut command = process::tied(QEMU);
        command
            .args(HARDWARE)
            .arg("-netdev")
            .arg(format!(
                "user,id=net,hostfwd=tcp:127.0.0.1:{port}-:{GUEST_PORT}"
            ))
            .arg("-kernel")
            .arg(&image.kernel)
            .arg("-initrd")
            .arg(&initramfs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut qemu = command.spawn().context("cannot start QEMU")?;
        let input = qemu.stdin.take().context("no pipe")?;
        let output = qemu.stdout.take().context("no pipe")?;
        Ok(Self {
            qemu,
            input,
            output: Lines::of(output),
            outside,
            deadline: process::now() + limit,
        })
    }

    /// Serves the guest until its script has ended; fails if the script did, and then shows the
    /// logs of the processes around it.
    pub(crate) fn serve(&mut self, show: impl Fn(&str)) -> Result<()> {
        let served = self.serve_requests(&show);
        if served.is_err() {
            self.outside.logs().iter().for_each(|line| show(line));
        }
        served
    }

    fn serve_requests(&mut self, show: &impl Fn(&str)) -> Result<()> {
        loop {
            let line = self.output.next(self.deadline)?;
            let line = line.context("the guest ended without a result")?;
            match line.strip_prefix('@') {
                None => show(&line),
                Some("passed") => return Ok(()),
                Some("failed") => bail!("the script failed"),
                Some(request) => self.answer(request, show)?,
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

const QEMU: &str = "qemu-system-x86_64";
/// Port of the kernel's target in the guest.
const GUEST_PORT: u16 = 4420;
/// A machine with a console and a network. Four processors, because Linux opens no more I/O queues
/// than it has.
const HARDWARE: &[&str] = &[
    "-accel",
    "tcg,thread=multi",
    "-cpu",
    "max",
    "-smp",
    "4",
    "-m",
    "512",
    "-nodefaults",
    "-display",
    "none",
    "-monitor",
    "none",
    "-serial",
    "stdio",
    "-no-reboot",
    "-device",
    "virtio-net-pci,netdev=net",
    "-append",
    "console=ttyS0 quiet panic=-1",
];
const LINE_CHARACTERS_MAX: usize = 1000;
