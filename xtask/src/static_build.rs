//! `cargo xtask static`: a program without shared libraries, built, examined and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::programs::target_folder;
use crate::process;

/// Runs `cargo xtask static`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut release = false;
    for arg in args {
        match arg.as_str() {
            "--release" => release = true,
            other => bail!("static has no option `{other}`: only --release"),
        }
    }
    let program = build(release)?;
    run_jobs(&program)?;
    println!("static: {}", program.display());
    Ok(())
}

/// Builds the program without shared libraries, and checks that it has none.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let libc = Libc::installed()?;
    let target = libc.target();
    let mut cargo = process::cargo();
    cargo.args(["build", "--package", "fathom-cli", "--target", target]);
    match libc {
        // The history compiles SQLite from C; glibc's headers do not do for musl.
        Libc::Musl if process::find("musl-gcc").is_none() => {
            println!("static: without the history: no musl-gcc");
            cargo.args(["--no-default-features", "--features", "parquet"]);
        }
        Libc::Musl => {}
        Libc::Gnu => {
            println!("static: with glibc: no standard library for {MUSL} (rustup target add)");
            cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
        }
    }
    if release {
        cargo.arg("--release");
    }
    process::run(cargo.current_dir(process::root()?))?;
    let profile = if release { "release" } else { "debug" };
    let program = target_folder()?.join(target).join(profile).join("fathom");
    check_linkage(&program)?;
    Ok(program)
}

/// C library that is linked into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Libc {
    /// Whole: also looks up users and hosts.
    Musl,
    /// Looks up hosts by shared libraries of its own version, if they are there at run time;
    /// without them, servers are named by address.
    Gnu,
}

impl Libc {
    /// Returns musl if its target is installed.
    fn installed() -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let words = ["--print", "target-libdir", "--target", MUSL];
        let folder = process::capture(Command::new(rustc).args(words))?;
        Ok(match Path::new(folder.trim()).is_dir() {
            true => Self::Musl,
            false => Self::Gnu,
        })
    }

    fn target(self) -> &'static str {
        match self {
            Self::Musl => MUSL,
            Self::Gnu => "x86_64-unknown-linux-gnu",
        }
    }
}

/// Fails if the program needs an interpreter or a library.
fn check_linkage(program: &Path) -> Result<()> {
    if process::find("ldd").is_none() {
        println!("static: linkage: skipped: no ldd");
        return Ok(());
    }
    // ldd fails for some programs that are not dynamic; the words decide.
    let output = Command::new("ldd").arg(program).output().context("ldd")?;
    let both = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&both);
    if STATIC.iter().all(|words| !said.contains(words)) {
        bail!("{} is not static: ldd: {}", program.display(), said.trim());
    }
    Ok(())
}

/// Runs a small job with each kind of engine in a folder of its own.
fn run_jobs(program: &Path) -> Result<()> {
    let folder = target_folder()?.join(format!("static-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let ran = ENGINES.iter().try_for_each(|engine| {
        let mut job = Command::new(program);
        job.args(["run", "--name=static", "--rw=randrw", "--size=1m"])
            .arg(format!("--ioengine={engine}"))
            .args(["--verify=crc32c", "--output-format=json"])
            .current_dir(&folder);
        let text = process::capture(&mut job).with_context(|| (*engine).to_owned())?;
        let report: serde_json::Value = serde_json::from_str(&text)?;
        let bytes = report["jobs"][0]["write"]["io_bytes"].as_u64();
        anyhow::ensure!(bytes > Some(0), "{engine}: nothing was written");
        Ok(())
    });
    fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    ran
}

const MUSL: &str = "x86_64-unknown-linux-musl";

/// Messages of ldd about a static program, of glibc and of musl.
const STATIC: [&str; 3] = [
    "statically linked",
    "not a dynamic executable",
    "Not a valid dynamic program",
];

/// Engines that use threads, and those that use the kernel's asynchronous interfaces, where a
/// sandbox may refuse io_uring.
const ENGINES: [&str; 3] = ["psync", "posixaio", "libaio"];
