//! Commands in README.md.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Returns the `cargo` lines of the README's shell blocks, in order.
pub(crate) fn commands(root: &Path) -> Result<Vec<String>> {
    let path = root.join("README.md");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(cargo_lines(&text))
}

/// Returns the lines of ` ```sh ` blocks that call cargo, without trailing comments.
fn cargo_lines(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside && line == "```sh";
        } else if inside && line.starts_with("cargo ") {
            let command = line.split(" #").next().unwrap_or(line);
            lines.push(command.trim_end().to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cargo_lines_of_shell_blocks_are_commands() {
        let text = "\
cargo nothing
```sh
cargo run --release -- run a.fio    # ten seconds
ls
```
```text
cargo run output
```
```sh
cargo test
```
";
        assert_eq!(
            cargo_lines(text),
            ["cargo run --release -- run a.fio", "cargo test"]
        );
    }
}
