//! Every Rust file must belong to a target.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Finding;
use super::lexer::is_word;
use super::tree::Tree;

/// Finds Rust files that no target includes by `mod`.
pub(crate) fn check(tree: &Tree, metadata: &Value) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in roots(metadata) {
        reach(tree, &root, true, &mut reached);
    }
    tree.rust()
        .filter(|file| !reached.contains(&file.path))
        .map(|file| {
            let why = "name it in a `mod`, or delete it";
            Finding::new(&file.path, 1, "no target includes this file", why)
        })
        .collect()
}

/// Returns the root file of each target, as paths from the workspace's root.
fn roots(metadata: &Value) -> Vec<String> {
    let workspace = metadata["workspace_root"].as_str().unwrap_or_default();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .flat_map(|package| package["targets"].as_array().into_iter().flatten())
        .filter_map(|target| target["src_path"].as_str()?.strip_prefix(workspace))
        .map(|path| path.trim_start_matches('/').to_owned())
        .collect()
}

fn reach(tree: &Tree, path: &str, is_root: bool, reached: &mut BTreeSet<String>) {
    let Some(file) = tree.file(path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let own = is_root || name == "mod.rs";
    let below = if own {
        folder.to_owned()
    } else {
        path.trim_end_matches(".rs").to_owned()
    };
    for module in declared(&file.code) {
        reach(tree, &format!("{below}/{module}.rs"), false, reached);
        reach(tree, &format!("{below}/{module}/mod.rs"), false, reached);
    }
    for other in named_paths(&file.text) {
        reach(tree, &join(folder, &other), false, reached);
    }
}

/// Returns the names of `mod name;` in blanked code.
fn declared(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("mod ") {
        if code[..at].chars().next_back().is_some_and(is_word) {
            continue;
        }
        let rest = &code[at + 4..];
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if end > 0 && rest[end..].trim_start().starts_with(';') {
            names.push(rest[..end].to_owned());
        }
    }
    names
}

/// Returns the files named by `#[path = "…"]` and `include!("…")`.
fn named_paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for marker in ["#[path = \"", "include!(\""] {
        for (at, _) in text.match_indices(marker) {
            let rest = &text[at + marker.len()..];
            paths.extend(rest.split('"').next().map(str::to_owned));
        }
    }
    paths
}

/// Joins two paths and resolves `..`.
pub(crate) fn join(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;
    use serde_json::json;

    #[test]
    fn files_are_reached_by_mod_from_a_target_only() {
        let texts = [
            (
                "c/src/lib.rs",
                "mod a;\npub mod b;\nmod inline { }\n// mod lost;\n",
            ),
            ("c/src/a.rs", "mod deep;"),
            ("c/src/a/deep.rs", ""),
            (
                "c/src/b/mod.rs",
                "#[path = \"../other.rs\"]\nmod elsewhere;",
            ),
            ("c/src/other.rs", ""),
            ("c/src/lost.rs", ""),
            ("c/tests/t.rs", "mod common;"),
            ("c/tests/common/mod.rs", ""),
        ];
        let files = texts
            .iter()
            .map(|(path, text)| File::new(path, text))
            .collect();
        let tree = Tree {
            files,
            paths: Vec::new(),
        };
        let metadata = json!({"workspace_root": "/w", "packages": [{"targets": [
            {"src_path": "/w/c/src/lib.rs"}, {"src_path": "/w/c/tests/t.rs"},
        ]}]});
        let found: Vec<_> = check(&tree, &metadata)
            .into_iter()
            .map(|f| f.path)
            .collect();
        assert_eq!(found, ["c/src/lost.rs"]);
    }

    #[test]
    fn a_path_loses_its_dots() {
        assert_eq!(join("docs", "../README.md"), "README.md");
        assert_eq!(join("", "./docs/A.md"), "docs/A.md");
    }
}
