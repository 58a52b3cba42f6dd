//! Files that a program left at the workspace's root, such as the data of a job.

use super::Finding;
use super::tree::Tree;

/// Finds files at the root that are not text.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let is_folder = |path: &str| {
        let mut inside = tree.paths.iter();
        inside.any(|other| {
            other
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    };
    let at_root = tree.paths.iter().filter(|path| !path.contains('/'));
    at_root
        .filter(|path| *path != LOCK_FILE && tree.file(path).is_none() && !is_folder(path))
        .map(|path| {
            let why = "what a program leaves behind does not belong here; remove it";
            Finding::new(path, 1, "not a text file", why)
        })
        .collect()
}

const LOCK_FILE: &str = "Cargo.lock";

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    #[test]
    fn data_at_the_root_are_found() {
        let paths = ["Cargo.lock", "README.md", "crates", "crates/a", "data"];
        let tree = Tree {
            files: vec![File::new("README.md", "")],
            paths: paths.map(str::to_owned).into(),
        };
        let found: Vec<_> = check(&tree).into_iter().map(|one| one.path).collect();
        assert_eq!(found, ["data"]);
    }
}
