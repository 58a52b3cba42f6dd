//! Miri over the unsafe code that needs no kernel: `cargo xtask miri`.
//!
//! Most of fathom-sys makes system calls that Miri does not know. What is left is memory: the
//! counting allocators, the buffers shared between threads, and the layout of ring entries.

use anyhow::{Result, bail};

use crate::process;

/// Runs `cargo xtask miri`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(arg) = args.first() {
        bail!("miri takes no option: `{arg}`");
    }
    let root = process::root()?;
    let mut version = process::cargo();
    if process::capture(version.args(["miri", "--version"]).current_dir(&root)).is_err() {
        println!("skipped: no miri: it needs a nightly toolchain with the component of this name");
        return Ok(());
    }
    let mut units = process::cargo();
    units
        .args(["miri", "test", "--package", "fathom-sys", "--lib", "--"])
        .args(UNIT_TESTS);
    process::run(units.current_dir(&root))?;
    let mut examples = process::cargo();
    examples
        .args(["miri", "test", "--package", "fathom-sys", "--doc", "--"])
        .args(EXAMPLES);
    process::run(examples.current_dir(&root))
}

/// Modules whose tests need only memory from the kernel.
const UNIT_TESTS: [&str; 3] = ["in_flight::", "memory::shared::", "uring::entry::"];
/// Modules whose examples exercise their unsafe code.
const EXAMPLES: [&str; 2] = ["allocation_counter", "peak_allocation"];

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that no test matches would pass silently.
    #[test]
    fn every_filter_names_a_module_with_tests() {
        let source = process::root().unwrap().join("crates/fathom-sys/src");
        let has = |module: &str, what: &str| {
            let file = module.trim_end_matches("::").replace("::", "/") + ".rs";
            let text = std::fs::read_to_string(source.join(&file)).expect(&file);
            assert!(text.contains(what), "{file} has no {what}");
        };
        UNIT_TESTS.iter().for_each(|module| has(module, "#[test]"));
        EXAMPLES.iter().for_each(|module| has(module, "//! ```"));
    }
}
