//! `[run]` and `[service.NAME]`: the execution of each run, and programs beside it.

use fathom_toml::{Fields, Value};

use super::names;
use super::reader::Reader;
use crate::lab_plan::{LabPlan, Ready, RunSettings, Service, Setting, Target};

/// Reads `[run]`.
pub(super) fn read(reader: &Reader<'_>, top: &Fields<'_>) -> RunSettings {
    let mut run = RunSettings::default();
    let Some(fields) = top.table("run", true) else {
        return run;
    };
    run.before = commands(reader, &fields, "before");
    run.after = commands(reader, &fields, "after");
    if let Some(variables) = fields.table("env", true) {
        for entry in variables.entries() {
            if let Some(value) = reader.scalar(&entry.value, entry.key) {
                run.env.push((entry.key.to_owned(), value));
            }
        }
    }
    for entry in fields.entries() {
        let Some(text) = reader.scalar(&entry.value, entry.key) else {
            continue;
        };
        if let Err(problem) = run.set(entry.key, &text) {
            let value = entry.value.span();
            let span = if problem.is_of_key {
                &entry.key_span
            } else {
                &value
            };
            reader.refuse(span, problem.message, problem.hint);
        }
    }
    run
}

/// Reads one command or a list of them.
fn commands(reader: &Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Vec<String> {
    let Some(value) = fields.value(key) else {
        return Vec::new();
    };
    let commands = value.items().unwrap_or_else(|| vec![value]);
    let text = |value: &Value<'_>| reader.scalar(value, key);
    commands.iter().filter_map(text).collect()
}

/// Reads all services.
pub(super) fn services(reader: &Reader<'_>, top: &Fields<'_>) -> Vec<Service> {
    let Some(fields) = top.table("service", true) else {
        return Vec::new();
    };
    let mut services = Vec::new();
    for entry in fields.entries() {
        names::check(reader, entry.key, &entry.key_span);
        if entry.key.contains(['.', '/']) {
            let why = format!("the service `{}` has `.` or `/` in its name", entry.key);
            let hint = "rename it: its numbers are metrics, as `service.NAME.KEY`";
            reader.refuse(&entry.key_span, why, hint);
        }
        match entry.value.fields(format!("service.{}", entry.key)) {
            Some(fields) => services.extend(service(reader, entry.key, &fields)),
            None => {
                let why = format!("service `{}` must be a table", entry.key);
                let hint = format!("write `[service.{}]`, with `command`", entry.key);
                reader.refuse(&entry.value.span(), why, hint);
            }
        }
    }
    services
}

fn service(reader: &Reader<'_>, name: &str, fields: &Fields<'_>) -> Option<Service> {
    let command = fields.text("command", false);
    let ready = fields
        .value("ready")
        .and_then(|value| ready(reader, &value));
    let stats = fields.text("stats", true);
    let mut arguments = Vec::new();
    let table = fields.table("arguments", true);
    fields.finish();
    let (command, span) = command?;
    let command = reader.substituted(command, &span)?;
    let stats = stats.and_then(|(stats, span)| reader.substituted(stats, &span));
    for entry in table.iter().flat_map(Fields::entries) {
        let used = format!("${{{}}}", entry.key);
        let in_stats = stats.as_deref().is_some_and(|stats| stats.contains(&used));
        if !command.contains(&used) && !in_stats {
            let why = format!("the command of `{name}` does not use `{used}`");
            reader.refuse(
                &entry.key_span,
                why,
                "write it there, or remove the argument",
            );
        }
        if let Some(value) = reader.scalar(&entry.value, entry.key) {
            arguments.push((entry.key.to_owned(), value));
        }
    }
    Some(Service {
        name: name.to_owned(),
        command,
        ready,
        stats,
        arguments,
    })
}

/// Reads `ready`: a text of the service's output, or a TCP port.
fn ready(reader: &Reader<'_>, value: &Value<'_>) -> Option<Ready> {
    let text = reader.scalar(value, "ready")?;
    match (
        text.parse::<u16>(),
        value.literal().starts_with(['"', '\'']),
    ) {
        (Ok(port), false) if port > 0 => Some(Ready::Port(port)),
        (_, true) if !text.is_empty() => Some(Ready::Text(text)),
        _ => {
            let why = "`ready` must be a text of the service's output, or a port";
            reader.refuse(
                &value.span(),
                why,
                "write `ready = \"listening\"`, or `ready = 4420`",
            );
            None
        }
    }
}

/// Notes settings of services or arguments that do not exist.
pub(super) fn check_settings(reader: &Reader<'_>, plan: &LabPlan) {
    let of_cells = plan.cells.iter().flat_map(|cell| cell.settings());
    let of_variants = plan.variants.iter().flat_map(|variant| &variant.settings);
    let mut told = Vec::new();
    for setting in of_cells.chain(of_variants) {
        let Target::Service(name) = &setting.target else {
            continue;
        };
        if told.contains(&setting.span.start) {
            continue;
        }
        if let Err(why) = find_argument(plan, name, setting) {
            told.push(setting.span.start);
            let hint = "add it to `[service.NAME.arguments]`, and `${ARGUMENT}` to its command";
            reader.refuse(&setting.key_span, why, hint);
        }
    }
}

fn find_argument(plan: &LabPlan, name: &str, setting: &Setting) -> Result<(), String> {
    let service = plan.services.iter().find(|service| service.name == name);
    let service = service.ok_or_else(|| format!("there is no service `{name}`"))?;
    let mut arguments = service.arguments.iter();
    match arguments.any(|(argument, _)| *argument == setting.key) {
        true => Ok(()),
        false => Err(format!(
            "service `{name}` has no argument `{}`",
            setting.key
        )),
    }
}
