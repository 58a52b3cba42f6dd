//! Place of a lab's progress: the history, in builds that have it.

use anyhow::Result;
use fathom_lab::{EarlierRun, Journal, LabPlan};

/// Opens the history and finds or begins the lab.
#[cfg(feature = "history")]
pub(crate) fn open<'p>(plan: &'p LabPlan, fresh: bool) -> Result<Box<dyn Journal + 'p>> {
    use fathom_lab::{History, StoredLab, StoredLabError, default_path};

    use crate::failure::with_hint;
    use crate::history_keep::with_its_hint;
    use crate::output::{self, StandardStream};

    let path = default_path(&|name| std::env::var_os(name)).map_err(with_its_hint)?;
    let history = History::open(&path).map_err(with_its_hint)?;
    for note in history.notes() {
        output::print(
            StandardStream::Error,
            &format!("fathom: lab: note: {note}\n"),
        );
    }
    let program = concat!(
        "fathom ",
        env!("CARGO_PKG_VERSION"),
        env!("FATHOM_COMMIT_SUFFIX")
    );
    match StoredLab::begin(history, plan, program, fresh) {
        Ok(lab) => Ok(Box::new(lab)),
        Err(StoredLabError::History(error)) => Err(with_its_hint(error)),
        Err(StoredLabError::Locked(why)) => Err(anyhow::Error::msg(why)),
        Err(StoredLabError::Changed { earlier, now }) => {
            let changes = changes(&earlier, &now);
            let why = format!(
                "{}: the file was changed since the unfinished lab `{}` began:\n{changes}",
                plan.file, plan.name
            );
            let hint = "undo the change to continue, or start over with --fresh";
            Err(with_hint(why, Some(hint)))
        }
    }
}

/// Returns the runs of this lab that the history has, for a plan: without one, or if it cannot be
/// read, there are none.
#[cfg(feature = "history")]
pub(crate) fn runs_before(plan: &LabPlan) -> Vec<EarlierRun> {
    use fathom_lab::{History, StoredLab, default_path};

    let path = default_path(&|name| std::env::var_os(name)).ok();
    let history = path.and_then(|path| History::open_read_only(&path).ok());
    let runs = history.and_then(|history| StoredLab::runs_before(&history, plan).ok());
    runs.unwrap_or_default()
}

/// Without the history, no earlier runs are known.
#[cfg(not(feature = "history"))]
pub(crate) const fn runs_before(_plan: &LabPlan) -> Vec<EarlierRun> {
    Vec::new()
}

/// Without the history, an interrupted lab starts over.
#[cfg(not(feature = "history"))]
pub(crate) fn open<'p>(_plan: &'p LabPlan, _fresh: bool) -> Result<Box<dyn Journal + 'p>> {
    use crate::output::{self, StandardStream};

    let note = "fathom: lab: note: built without the history: nothing is kept, and an interrupted \
                lab starts over\n";
    output::print(StandardStream::Error, note);
    Ok(Box::new(fathom_lab::NoJournal))
}

/// Returns the lines of two texts that differ, the earlier ones with `-`, the later with `+`.
#[cfg(feature = "history")]
fn changes(earlier: &str, now: &str) -> String {
    let only = |these: &str, others: &str, sign: char| {
        let others: Vec<&str> = others.lines().collect();
        let lines = these.lines().filter(|line| !others.contains(line));
        lines
            .map(|line| format!("{sign} {line}"))
            .collect::<Vec<_>>()
    };
    let mut lines = only(earlier, now, '-');
    lines.extend(only(now, earlier, '+'));
    if lines.is_empty() {
        lines.push("  (lines have another order)".into());
    }
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("  and {more} more lines"));
    }
    lines.join("\n")
}

/// Most lines of a difference that are shown.
#[cfg(feature = "history")]
const LINES_MAX: usize = 20;
