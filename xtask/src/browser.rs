//! `cargo xtask browser`: the program's pages in the distribution's Chromium.
//!
//! ```text
//! pages (command lines) ─► target/browser/pages ─► tests/browser/main.mjs, copied ─► findings
//! ```
//!
//! The checks are scripts of `tests/browser`; they run from a copy below the target folder, where
//! npm installs what they need, so that nothing is written into the source tree. A machine without
//! the programs says so and passes.

mod pages;
mod shown;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench::programs::target_folder;
use crate::process;
use pages::{LIVE, PAGES, Page};
pub(crate) use shown::times_ms;

/// Runs `cargo xtask browser [--only NAME | --short] [--self-test] [--fathom FILE] [--list]`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    if options.list {
        for page in PAGES {
            println!("{:20} {}", page.name, page.what);
        }
        println!("{LIVE_PAGE:20} a run in progress, on its local page");
        return Ok(());
    }
    let chosen: Vec<&Page> = PAGES.iter().filter(|page| options.wants(page)).collect();
    if chosen.is_empty() && !options.wants_live() {
        bail!("no page has such a name: --list shows them");
    }
    let folder = target_folder()?.join("browser");
    let tools = match Tools::find(&folder)? {
        Ok(tools) => tools,
        Err(why) => {
            println!("browser: skipped: {why}");
            return Ok(());
        }
    };
    let fathom = match &options.fathom {
        Some(path) => path
            .canonicalize()
            .with_context(|| path.display().to_string())?,
        None => build()?,
    };
    let made = folder.join("pages");
    emptied(&made)?;
    emptied(&folder.join("pictures"))?;
    let mut list = Vec::new();
    for page in chosen {
        list.push(make(page, &fathom, &made)?);
    }
    if options.wants_live() {
        let mut command = vec![fathom.to_string_lossy().into_owned()];
        command.extend(LIVE.iter().map(|&word| word.to_owned()));
        list.push(json!({ "name": LIVE_PAGE, "command": command, "folder": made }));
    }
    let plan = json!({
        "chromium": tools.chromium,
        "pictures": folder.join("pictures"),
        "selfTest": SELF_TEST_PAGE,
        "pages": list,
    });
    let plan_path = folder.join("plan.json");
    fs::write(&plan_path, plan.to_string()).with_context(|| plan_path.display().to_string())?;
    let mut command = Command::new(&tools.node);
    command.current_dir(&tools.scripts).arg("main.mjs");
    command.arg(&plan_path);
    command.args(options.self_test.then_some("--self-test"));
    process::run(&mut command)
}

struct Options {
    only: Option<String>,
    short: bool,
    self_test: bool,
    fathom: Option<PathBuf>,
    list: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            only: None,
            short: false,
            self_test: false,
            fathom: None,
            list: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--only" => options.only = Some(value()?.clone()),
                "--short" => options.short = true,
                "--self-test" => options.self_test = true,
                "--fathom" => options.fathom = Some(PathBuf::from(value()?)),
                "--list" => options.list = true,
                other => bail!("browser has no option `{other}`: `cargo xtask help` lists them"),
            }
        }
        Ok(options)
    }

    fn wants(&self, page: &Page) -> bool {
        match &self.only {
            Some(part) => page.name.contains(part.as_str()),
            None => {
                let is_tried = !self.self_test || SELF_TEST_PAGES.contains(&page.name);
                is_tried && (page.is_short || !self.short)
            }
        }
    }

    fn wants_live(&self) -> bool {
        let is_named = |part: &String| LIVE_PAGE.contains(part.as_str());
        self.only.as_ref().is_none_or(is_named)
    }
}

/// Installed programs, and the scripts with the packages that they need.
struct Tools {
    chromium: PathBuf,
    node: PathBuf,
    /// Copy of `tests/browser`.
    scripts: PathBuf,
}

impl Tools {
    /// Finds the programs and installs the packages; the inner error says what is not there.
    fn find(folder: &Path) -> Result<Result<Self, String>> {
        let chromium = ["chromium", "chromium-browser"];
        let Some(chromium) = chromium.iter().find_map(|name| process::find(name)) else {
            return Ok(Err("no chromium".into()));
        };
        let Some(node) = process::find("node") else {
            return Ok(Err("no node".into()));
        };
        let Some(npm) = process::find("npm") else {
            return Ok(Err("no npm".into()));
        };
        let scripts = folder.join("scripts");
        copy(&process::root()?.join("tests/browser"), &scripts)?;
        Ok(install(&npm, &scripts)?.map(|()| Self {
            chromium,
            node,
            scripts,
        }))
    }
}

/// Installs the packages of the lock file, unless they are there; the inner error says that npm
/// cannot reach them.
fn install(npm: &Path, scripts: &Path) -> Result<Result<(), String>> {
    let lock = fs::read(scripts.join("package-lock.json")).context("package-lock.json")?;
    let stamp = scripts.join("node_modules/installed.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(Ok(()));
    }
    let mut command = Command::new(npm);
    command
        .current_dir(scripts)
        .args(["ci", "--ignore-scripts"]);
    command.args(["--no-audit", "--no-fund", "--prefer-offline"]);
    command.args(["--fetch-retries=1", "--fetch-timeout=60000"]);
    let output = command.output().context("cannot start npm")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return match is_unreachable(&text) {
            true => Ok(Err("npm cannot reach its packages".into())),
            false => bail!("`{}` failed: {text}", process::shown(&command)),
        };
    }
    fs::write(&stamp, lock).with_context(|| stamp.display().to_string())?;
    Ok(Ok(()))
}

/// Returns whether npm failed for want of a network, and not because of what it got.
fn is_unreachable(text: &str) -> bool {
    UNREACHABLE.iter().any(|code| text.contains(code))
}

/// Copies a folder with its folders; packages that were installed there stay.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    let entries = fs::read_dir(from).with_context(|| from.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // Else a script that is no more would still be there.
            emptied(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(|| target.display().to_string())?;
        }
    }
    Ok(())
}

/// Recreates a folder.
fn emptied(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Builds the program without optimisations: pages are the same.
fn build() -> Result<PathBuf> {
    let mut command = process::cargo();
    command.args(["build", "--quiet", "--bin", "fathom"]);
    process::run(command.current_dir(process::root()?))?;
    Ok(target_folder()?.join("debug/fathom"))
}

/// Makes a page and returns its entry of the plan.
fn make(page: &Page, fathom: &Path, folder: &Path) -> Result<Value> {
    for line in page.commands {
        run_line(line, page, fathom, folder)?;
    }
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let paths = |names: &[&str]| names.iter().map(|name| path(name)).collect::<Vec<_>>();
    let mut entry = json!({
        "name": page.name,
        "url": format!("file://{}", path(&format!("{}.html", page.name))),
        "documents": paths(page.documents),
    });
    if let Some((subject, sources)) = page.drawn {
        entry["subject"] = subject.into();
        entry["sources"] = paths(sources).into();
    }
    Ok(entry)
}

/// Runs a command line of a page; `> FILE` at its end takes what is printed.
fn run_line(line: &str, page: &Page, fathom: &Path, folder: &Path) -> Result<()> {
    let root = process::root()?;
    let (arguments, printed) = match line.split_once(" > ") {
        Some((arguments, file)) => (arguments, Some(folder.join(file.trim()))),
        None => (line, None),
    };
    let words = arguments
        .split_whitespace()
        .flat_map(|word| match word {
            "SHORT" => SHORT.to_vec(),
            word => vec![word],
        })
        .map(|word| word.replace("ROOT", &root.to_string_lossy()));
    let mut command = Command::new(fathom);
    command.current_dir(folder).args(words);
    // Runs of this test belong into no history but the page's own.
    command.env("FATHOM_HISTORY", folder.join(format!("{}.db", page.name)));
    let output = command.output().with_context(|| process::shown(&command))?;
    // A lab or a comparison that finds a difference ends with 1.
    if !matches!(output.status.code(), Some(0 | 1)) {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{}: `fathom {line}` failed: {text}", page.name);
    }
    match printed {
        Some(path) => fs::write(&path, output.stdout).with_context(|| path.display().to_string()),
        None => Ok(()),
    }
}

/// Short run without a device.
const SHORT: [&str; 6] = [
    "--name=short",
    "--ioengine=null",
    "--rw=randread",
    "--size=64k",
    "--time_based=1",
    "--runtime=300ms",
];

/// Name of the page of a run in progress.
const LIVE_PAGE: &str = "live";

/// Page that the self-test breaks in every way.
const SELF_TEST_PAGE: &str = "run";

/// Pages that the self-test breaks, one of each subject.
const SELF_TEST_PAGES: [&str; 6] = [SELF_TEST_PAGE, "fio", "logs", "lab", "comparison", "trend"];

/// Names that npm gives to failures of the network.
const UNREACHABLE: [&str; 7] = [
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "ENOTCACHED",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_network_is_a_reason_to_skip() {
        assert!(is_unreachable("npm error code EAI_AGAIN"));
        assert!(!is_unreachable("npm error code EINTEGRITY"));
    }

    #[test]
    fn pages_have_names_of_their_own_and_those_of_the_self_test_are_known() {
        let names: std::collections::BTreeSet<_> = PAGES.iter().map(|page| page.name).collect();
        assert_eq!(names.len(), PAGES.len());
        assert!(SELF_TEST_PAGES.iter().all(|page| names.contains(page)));
    }

    #[test]
    fn the_lock_file_names_no_registry_and_has_a_sum_for_each_package() {
        let path = process::root()
            .unwrap()
            .join("tests/browser/package-lock.json");
        let lock: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        assert!(packages.len() > 2);
        for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package.get("resolved").is_none(), "{name}");
            assert!(package["integrity"].is_string(), "{name}");
        }
    }
}
