//! Words that must not occur in the tree.

use super::Finding;
use super::lexer::has_word;
use super::tree::Tree;

/// Finds notes of unfinished work, and paths of a particular machine.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            for (word, why) in WORDS {
                if has_word(line, word) {
                    findings.push(Finding::new(
                        &file.path,
                        index + 1,
                        format!("`{word}`"),
                        why,
                    ));
                }
            }
        }
    }
    findings
}

const UNFINISHED: &str = "finish it, or open an issue";
const WORKPLACE: &str = "the project speaks of itself alone; name the public origin instead";

/// Words in two halves, so that this table does not match itself.
const WORDS: [(&str, &str); 5] = [
    (concat!("FIX", "ME"), UNFINISHED),
    (concat!("XX", "X"), UNFINISHED),
    (concat!("/wo", "rk/"), WORKPLACE),
    (concat!("../sha", "red"), WORKPLACE),
    (concat!(".lib", "rary/"), WORKPLACE),
];

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    #[track_caller]
    fn check_line(line: &str, count: usize) {
        let tree = Tree {
            files: vec![File::new("docs/a.md", line)],
            paths: Vec::new(),
        };
        assert_eq!(check(&tree).len(), count, "{line}");
    }

    #[test]
    fn leftovers_and_workplaces_are_found_as_whole_words() {
        for (word, _) in WORDS {
            check_line(&format!("see {word} here"), 1);
        }
        check_line(concat!("mkstemp(\"fileXX", "XXXX\")"), 0);
        check_line("a frame for work and shared libraries", 0);
    }
}
