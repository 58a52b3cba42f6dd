//! `--showcmd`: a plan as the command line that means the same.

use crate::plan::{Plan, Typed};

/// The command line, in one line.
pub(crate) fn text(plan: &Plan) -> String {
    let mut line = String::from("fio");
    for (name, value) in &plan.global_options {
        push(&mut line, name, value);
    }
    for job in &plan.jobs {
        push(&mut line, "name", &job.name);
        let own = |typed: &&Typed| typed.name != "name";
        for typed in job.typed.iter().filter(own) {
            push(&mut line, &typed.name, &typed.value);
        }
    }
    line.push('\n');
    line
}

fn push(line: &mut String, name: &str, value: &str) {
    line.push_str(" --");
    line.push_str(name);
    if !value.is_empty() {
        line.push('=');
        line.push_str(&quoted(value));
    }
}

/// As a shell takes it: in double quotes, as fio prints it, unless those leave something special.
fn quoted(value: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:,=+%@".contains(letter);
    if value.chars().all(plain) {
        value.to_owned()
    } else if !value.contains(['"', '$', '`', '\\', '!']) {
        format!("\"{value}\"")
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}
