//! Lab files: experiments as users describe them.
//!
//! ```toml
//! [lab]
//! name = "hdd-tags"
//! machine = "../machines/hdd.toml"
//! [job]
//! rw = "randwrite"
//! [axes]
//! numjobs = [1, 8, 64]
//! [variants]
//! plain = { machine = { "device.queue.policy" = "plain" } }
//! fair = { machine = { "device.queue.policy" = "fair" } }
//! [judge]
//! baseline = "plain"
//! metrics = { "write.bw" = "2%" }
//! ```

mod ask;
mod axes;
mod jobs;
mod judge;
mod loads;
mod machine;
mod measured;
mod metrics;
mod names;
mod open_loop;
mod precondition;
mod published;
mod reader;
mod rehearsal;
mod run;
mod settings;
mod subject;
mod told;
mod trials;
mod variants;
mod written;

use fathom_job::Environment;
use fathom_toml::{Fields, FileKind, Source, TomlProblem};

use crate::lab_plan::LabPlan;
pub use metrics::nearest_metric;
use reader::Reader;
pub(crate) use written::{asked_schedulers, written_names};

impl LabPlan {
    /// Parses `text`, the content of the lab file `file`. `arguments` are the values of `ask`, as
    /// `("DEV", "/dev/sdb")`; files and engines come from `environment`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line and column.
    pub fn parse(
        file: &str,
        text: &str,
        arguments: &[(String, String)],
        environment: &dyn Environment,
    ) -> Result<Self, Vec<TomlProblem>> {
        let source = Source::new(file, text, LAB_FILE);
        let plan = source.parse().and_then(|document| {
            let top = source.top(&document);
            let reader = Reader::new(&source, file, environment, arguments);
            let plan = read(&reader, &top, text);
            top.finish();
            plan
        });
        let problems = source.into_problems();
        match plan {
            Some(plan) if problems.is_empty() => Ok(plan),
            _ => Err(problems),
        }
    }
}

/// Reads the tables, then tries the runs they describe; `None` if a part is missing.
fn read(reader: &Reader<'_>, top: &Fields<'_>, text: &str) -> Option<LabPlan> {
    let lab = top.table("lab", false);
    let head = lab.as_ref().map(|lab| head(reader, lab, top));
    let subject = subject::read(reader, top);
    let run = run::read(reader, top);
    let services = run::services(reader, top);
    let axes = axes::read(reader, top, subject.as_ref());
    let variants = variants::read(reader, top, subject.as_ref());
    let judge = judge::read(reader, top, &variants, &services);
    let precondition = precondition::read(reader, top);
    let warm_up = loads::warm_up(reader, top, subject.as_ref());
    let cells = axes::cells(reader, top, &axes);
    let mut plan = LabPlan {
        file: reader.file.to_owned(),
        text: text.to_owned(),
        arguments: reader.arguments.to_vec(),
        subject: subject.unwrap_or_default(),
        axes: axes.into_iter().map(|axis| axis.shown).collect(),
        cells: cells.unwrap_or_default(),
        variants,
        judge,
        run,
        services,
        precondition,
        warm_up,
        ..head.unwrap_or_default()
    };
    plan.rounds = loads::rounds(reader, top, &plan);
    plan.curve = loads::curve(reader, top, &plan);
    open_loop::add_axis(reader, top, &mut plan);
    plan.search = loads::search(reader, top, &plan);
    loads::repeats_of_rounds(reader, top, &mut plan);
    plan.published = published::read(reader, top, &plan);
    loads::refuse_boots(reader, &plan);
    check(reader, top, &mut plan);
    open_loop::find_jobs(reader, top, &mut plan);
    Some(plan)
}

/// Tries the runs as far as they are known.
fn check(reader: &Reader<'_>, top: &Fields<'_>, plan: &mut LabPlan) {
    if plan.cells.is_empty() || reader.is_incomplete() {
        return;
    }
    settings::refuse_set_twice(reader, plan);
    run::check_settings(reader, plan);
    machine::refuse_real_parts(reader, top, plan);
    machine::check(reader, plan);
    jobs::refuse_cut_by_fio(reader, plan);
    jobs::check(reader, top, plan);
    precondition::check(reader, top, plan);
    judge::check(reader, top, plan);
    variants::refuse_equal(reader, plan);
}

/// Reads `[lab]`.
fn head(reader: &Reader<'_>, lab: &Fields<'_>, top: &Fields<'_>) -> LabPlan {
    let name = names::read(reader, lab, "name");
    let seed = lab.whole("seed", 0..=u64::MAX >> 1, Some(1));
    ask::check(reader, lab);
    let writes = ask::writes(reader, lab, top.has("precondition"));
    let machine = machine::read(reader, lab);
    lab.finish();
    LabPlan {
        // A name that is refused hides nothing else.
        name: name.unwrap_or_default(),
        seed,
        writes,
        machine,
        ..LabPlan::default()
    }
}

const LAB_FILE: FileKind = FileKind {
    noun: "a lab file",
    document: "docs/LAB.md",
    examples: "examples/lab",
};

#[cfg(test)]
pub(crate) mod tests;
