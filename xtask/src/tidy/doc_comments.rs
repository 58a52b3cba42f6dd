//! Doc comments begin with a noun phrase or a verb, never with a question word.

use super::Finding;
use super::tree::{File, Tree};

/// Finds doc comments that begin with What, Whether, How or Who.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut inside = false;
    for (index, line) in file.text.lines().enumerate() {
        let text = line.trim_start();
        let comment = text
            .strip_prefix("///")
            .or_else(|| text.strip_prefix("//!"));
        let first = comment.and_then(|text| text.split_whitespace().next());
        if let Some(word) = first
            && !inside
            && QUESTIONS.contains(&word)
        {
            let what = format!("a doc comment begins with `{word}`");
            let why = "name the thing (types, fields), or begin with a verb (functions)";
            findings.push(Finding::new(&file.path, index + 1, what, why));
        }
        inside = comment.is_some();
    }
    findings
}

const QUESTIONS: [&str; 4] = ["What", "Whether", "How", "Who"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(text: &str, lines: &[usize]) {
        let file = File::new("xtask/src/a.rs", text);
        let tree = Tree {
            files: vec![file],
            paths: Vec::new(),
        };
        let found: Vec<_> = check(&tree).iter().map(|finding| finding.line).collect();
        assert_eq!(found, lines, "{text}");
    }

    #[test]
    fn only_the_first_word_of_a_doc_comment_counts() {
        check_text(
            "//! What a run\n//! leaves\n\n    /// Whether it is\nfn a() {}\n",
            &[1, 4],
        );
        check_text("/// Returns\n/// How often it ran.\n", &[]);
        check_text("// What is rejected\n/// Whatever is left\n", &[]);
    }
}
