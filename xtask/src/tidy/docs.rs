//! Links, files and crates named in the documents must exist.

use serde_json::Value;

use super::Finding;
use super::modules::join;
use super::tree::{File, Tree};

/// Finds dead links, paths of nothing, and an architecture page that is too long or names missing
/// files or crates.
pub(crate) fn check(tree: &Tree, metadata: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        findings.extend(dead_links(file, tree));
        if file.path != CHANGES {
            findings.extend(gone_paths(file, tree));
        }
    }
    match tree.file(MAP) {
        Some(map) => {
            findings.extend(too_long(map));
            findings.extend(gone_files(map, tree));
            findings.extend(unnamed_crates(map, metadata));
        }
        None => findings.push(Finding::new(MAP, 1, "missing", "newcomers start there")),
    }
    findings
}

fn dead_links(file: &File, tree: &Tree) -> Vec<Finding> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for target in links(line) {
            let place = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || target.starts_with("mailto:");
            if !outside && !place.is_empty() && !tree.paths.contains(&join(folder, place)) {
                let what = format!("link to `{target}`");
                findings.push(Finding::new(
                    &file.path,
                    index + 1,
                    what,
                    "nothing is there",
                ));
            }
        }
    }
    findings
}

/// Iterates over the targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let rest = &line[at + 2..];
        let target = rest.split(')').next()?.split_whitespace().next()?;
        (!target.starts_with('<')).then_some(target)
    })
}

fn too_long(map: &File) -> Option<Finding> {
    let lines = map.text.lines().count();
    (lines >= MAP_LINES).then(|| {
        let why = "a map under 250 lines; move detail into the module's own documentation";
        Finding::new(&map.path, lines, format!("{lines} lines"), why)
    })
}

/// Finds file names in backticks that match the end of no path in the tree.
fn gone_files(map: &File, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in map.text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2) {
            let is_file = [".rs", ".toml", ".md", ".fio"]
                .iter()
                .any(|end| name.ends_with(end));
            let ours = is_file || name.starts_with("crates/") || name.starts_with("docs/");
            let wanted = name.trim_end_matches('/');
            let there = tree.paths.iter().any(|path| {
                path.strip_suffix(wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            });
            if ours && !name.contains(['*', ' ']) && !there {
                let what = format!("`{name}`");
                findings.push(Finding::new(
                    &map.path,
                    index + 1,
                    what,
                    "no such file: correct the map",
                ));
            }
        }
    }
    findings
}

/// Finds paths in backticks, from the root, at which nothing is.
fn gone_paths(file: &File, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for path in line.split('`').skip(1).step_by(2) {
            let ours = FOLDERS.iter().any(|folder| path.starts_with(folder));
            let is_pattern = path.contains(['*', ' ', '…', '<', '{']);
            let wanted = path.trim_end_matches('/').to_owned();
            if ours && !is_pattern && !tree.paths.contains(&wanted) {
                let what = format!("`{path}`");
                findings.push(Finding::new(
                    &file.path,
                    index + 1,
                    what,
                    "nothing is there",
                ));
            }
        }
    }
    findings
}

fn unnamed_crates(map: &File, metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let names = packages.filter_map(|package| package["name"].as_str());
    names
        .filter(|name| !map.text.contains(&format!("`{name}`")))
        .map(|name| {
            let what = format!("crate `{name}` is not on the map");
            Finding::new(&map.path, 1, what, "say what it is for and its invariant")
        })
        .collect()
}

/// Folders whose names begin a path in a document.
const FOLDERS: &[&str] = &["crates/", "docs/", "examples/", "xtask/"];
/// Tells what files were called once.
const CHANGES: &str = "CHANGELOG.md";
const MAP: &str = "docs/ARCHITECTURE.md";
const MAP_LINES: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_map(map: &str, want: &[&str]) {
        let files = vec![File::new(MAP, map)];
        let paths = [
            "docs",
            "docs/ARCHITECTURE.md",
            "README.md",
            "crates/fathom-a/src/turn.rs",
        ];
        let tree = Tree {
            files,
            paths: paths.map(str::to_owned).to_vec(),
        };
        let metadata = json!({"packages": [{"name": "fathom-a"}]});
        let found: Vec<_> = check(&tree, &metadata)
            .into_iter()
            .map(|f| f.what)
            .collect();
        assert_eq!(found, want, "{map}");
    }

    #[test]
    fn links_lead_somewhere() {
        check_map(
            "`fathom-a` [r](../README.md#x) [w](https://a.b/c) [s](#here)",
            &[],
        );
        check_map("`fathom-a` [r](README.md)", &["link to `README.md`"]);
    }

    #[test]
    fn paths_lead_somewhere() {
        let text = "`crates/a/src` `examples/b.fio` `docs/*.md`";
        let tree = Tree {
            files: Vec::new(),
            paths: vec!["crates/a/src".to_owned()],
        };
        let found = gone_paths(&File::new("docs/A.md", text), &tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "`examples/b.fio`");
    }

    #[test]
    fn the_map_names_every_crate_and_no_file_that_is_gone() {
        check_map("nothing", &["crate `fathom-a` is not on the map"]);
        check_map(
            "`fathom-a`, `turn.rs`, `crates/fathom-a/`",
            &["`crates/fathom-a/`", "`crates/fathom-a/`"],
        );
        check_map(
            "`fathom-a`: `return.rs`, `urn.rs`",
            &["`return.rs`", "`urn.rs`"],
        );
    }

    #[test]
    fn the_map_stays_short() {
        let line = "`fathom-a`\n";
        check_map(&line.repeat(249), &[]);
        check_map(&line.repeat(250), &["250 lines"]);
    }
}
