//! No function of more than 70 lines, no line of more than 100 columns.

use super::Finding;
use super::lexer::is_word;
use super::tree::{File, Tree};

/// Long functions and long lines of all Rust files.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        findings.extend(long_lines(file));
        findings.extend(long_functions(file));
    }
    findings
}

fn long_lines(file: &File) -> impl Iterator<Item = Finding> {
    file.text.lines().enumerate().filter_map(|(index, line)| {
        let columns = line.chars().count();
        (columns > COLUMNS && !line.contains("://")).then(|| {
            let what = format!("{columns} columns");
            Finding::new(
                &file.path,
                index + 1,
                what,
                "100 is the limit; break the line",
            )
        })
    })
}

fn long_functions(file: &File) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut findings = Vec::new();
    for function in functions(&file.code) {
        let length = function.last - function.first + 1;
        if length > LINES && !is_excused(&lines, function.first) {
            findings.push(Finding::new(
                &file.path,
                function.first,
                format!("fn {} has {length} lines", function.name),
                "70 is the limit; split it, or, for a flat table, say why in a comment \
                 `// tidy: long: why` just above",
            ));
        }
    }
    findings
}

/// A function with a body; lines from 1, both within it.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    first: usize,
    last: usize,
}

/// All functions of blanked code, nested ones too.
fn functions(code: &str) -> Vec<Function> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut line = 1;
    for at in 0..chars.len() {
        if chars[at] == '\n' {
            line += 1;
        }
        let Some(name) = name_at(&chars, at) else {
            continue;
        };
        let Some(open) = body(&chars, at) else {
            continue;
        };
        let Some(close) = closing(&chars, open) else {
            continue;
        };
        let height = chars[at..close].iter().filter(|&&c| c == '\n').count();
        found.push(Function {
            name,
            first: line,
            last: line + height,
        });
    }
    found
}

/// The name, if the keyword `fn` and a name begin at `at`; a function pointer has none.
fn name_at(chars: &[char], at: usize) -> Option<String> {
    let alone = at == 0 || !(is_word(chars[at - 1]) || chars[at - 1] == '#');
    if !alone || !chars[at..].starts_with(&['f', 'n', ' ']) {
        return None;
    }
    let name: String = chars[at + 3..]
        .iter()
        .take_while(|&&c| is_word(c))
        .collect();
    (!name.is_empty()).then_some(name)
}

/// Where the body's brace opens; none for a declaration.
fn body(chars: &[char], from: usize) -> Option<usize> {
    let mut depth = 0;
    for (index, &c) in chars.iter().enumerate().skip(from) {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' if depth == 0 => return None,
            '{' if depth == 0 => return Some(index),
            _ => {}
        }
    }
    None
}

fn closing(chars: &[char], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (index, &c) in chars.iter().enumerate().skip(open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Whether a reason stands in the comments and attributes just above a function.
fn is_excused(lines: &[&str], first: usize) -> bool {
    let above = lines[..first - 1].iter().rev();
    above
        .map(|line| line.trim())
        .take_while(|line| line.starts_with("//") || line.starts_with('#') || line.starts_with(')'))
        .any(|line| {
            line.strip_prefix(EXCUSE)
                .is_some_and(|why| !why.trim().is_empty())
        })
}

const COLUMNS: usize = 100;
const LINES: usize = 70;
const EXCUSE: &str = "// tidy: long:";

#[cfg(test)]
mod tests {
    use super::*;

    fn of_length(lines: usize, above: &str) -> File {
        let body = "    x();\n".repeat(lines - 2);
        File::new("a.rs", &format!("{above}fn long() {{\n{body}}}\n"))
    }

    #[test]
    fn a_function_past_seventy_lines_is_found() {
        assert_eq!(long_functions(&of_length(70, "")), []);
        let found = long_functions(&of_length(71, "\n\n"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 3);
        assert_eq!(found[0].what, "fn long has 71 lines");
    }

    #[test]
    fn a_reason_just_above_excuses_a_long_function() {
        let excuse = "// tidy: long: one flat match over the table\n#[must_use]\n";
        assert_eq!(long_functions(&of_length(90, excuse)), []);
        assert_eq!(long_functions(&of_length(90, "// tidy: long:\n")).len(), 1);
        assert_eq!(
            long_functions(&of_length(90, &format!("{excuse}\n"))).len(),
            1
        );
    }

    #[test]
    fn functions_are_told_from_declarations_and_pointers() {
        let code = "fn a(x: [u8; 4]) -> fn(u8) {\n  fn b() {}\n}\ntrait T { fn c(); }\n";
        let names: Vec<_> = functions(code)
            .into_iter()
            .map(|f| (f.name, f.first, f.last))
            .collect();
        assert_eq!(names, [("a".to_owned(), 1, 3), ("b".to_owned(), 2, 2)]);
    }

    #[test]
    fn a_line_past_a_hundred_columns_is_found_but_for_addresses() {
        let wide = "x".repeat(101);
        let text = format!("{}\n{wide}\n// https://{wide}\n", "é".repeat(100));
        let found: Vec<_> = long_lines(&File::new("a.rs", &text)).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }
}
