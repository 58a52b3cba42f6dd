//! Saved runs and histories: JSON to import, and the database.

use fathom_lab::{
    CompareRules, CompareSide, ExportTable, History, HistoryError, ImportedRun, MetricsExport,
    OtavaExport, RunSelection, compare, csv_line, import, otlp_line,
};

use crate::target::Verdict;

/// Imports the runs of a file, and compares them with copies under other names.
pub(crate) fn decode_runs(input: &[u8]) -> Result<Verdict, String> {
    match import(&String::from_utf8_lossy(input)) {
        Ok(runs) => compared(runs),
        Err(error) => Ok(Verdict::Refused(error.to_string())),
    }
}

/// Reads a database as the commands do: the list, all of each run, a comparison.
pub(crate) fn decode_history(input: &[u8]) -> Result<Verdict, String> {
    let name = format!("fathom-fuzz-{}.db", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, input).map_err(|error| error.to_string())?;
    let read = || -> Result<Vec<ImportedRun>, HistoryError> {
        let history = History::open_read_only(&path)?;
        let all = RunSelection::default();
        history.list(&all)?;
        exported(&history, &all)?;
        history.measured(&all)
    };
    let runs = read();
    for end in ["", "-wal", "-shm"] {
        let mut file = path.clone().into_os_string();
        file.push(end);
        let _removed = std::fs::remove_file(file);
    }
    match runs {
        Ok(runs) => compared(runs),
        Err(error) => Ok(Verdict::Refused(error.to_string())),
    }
}

/// Exports the runs in every format that is made of text or cells.
fn exported(history: &History, selection: &RunSelection) -> Result<(), HistoryError> {
    let runs = history.stored_runs(selection)?;
    let (metrics, tags) = (runs.metrics()?, runs.tag_names()?);
    let table = ExportTable::new(&metrics, &tags);
    let mut openmetrics = MetricsExport::default();
    let mut otava = OtavaExport::new(&metrics, tags, runs.count());
    let width = table.columns().len();
    runs.each(|run| {
        let row = table.row(&run);
        assert_eq!(row.len(), width, "a row has a cell for each column");
        let record = runs.record(run.row.id).ok().flatten();
        let request = otlp_line(&run, record.as_ref());
        assert!(request.lines().count() == 1, "a request is a line");
        openmetrics.add(&run);
        let _ = (csv_line(&row), otava.line(&run));
        Ok::<(), HistoryError>(())
    })?;
    let page = openmetrics.page();
    let comments = page.lines().filter(|line| line.starts_with("# EOF"));
    assert_eq!(comments.count(), 1, "a name ends the page");
    let _ = otava.head();
    Ok(())
}

/// Keys of fio's reports and of exported runs.
pub(crate) fn words() -> Vec<String> {
    let words = FIO.split('"').skip(1).step_by(2);
    let words = words.chain(EXPORTED.split('"').skip(1).step_by(2));
    let words: std::collections::BTreeSet<_> = words.filter(|word| word.len() < 20).collect();
    words
        .into_iter()
        .map(|word| format!("\"{word}\":"))
        .collect()
}

/// Checks that runs are no worse than others with the same results, in all formats.
fn compared(runs: Vec<ImportedRun>) -> Result<Verdict, String> {
    let side = |runs| CompareSide {
        name: "side".into(),
        runs,
        files: Vec::new(),
    };
    // The same runs on both sides are refused.
    let others = runs.iter().zip(0_u64..).map(|(run, number)| ImportedRun {
        uuid: Some(format!("other {number}")),
        begun_ms: Some(run.begun_ms.unwrap_or(0).wrapping_add(OTHERS_MS)),
        ..run.clone()
    });
    let others = others.collect();
    let rules = CompareRules {
        metrics: Vec::new(),
        tolerance: 0.02,
        accept_drift: true,
    };
    match compare(side(runs), side(others), &rules) {
        Ok(comparison) if comparison.is_worse() => Err("runs are worse than themselves".into()),
        Ok(comparison) => {
            let _ = (
                comparison.text(),
                comparison.markdown(),
                comparison.json().to_string(),
            );
            Ok(Verdict::Accepted)
        }
        Err(why) => Ok(Verdict::Refused(why)),
    }
}

/// Time by which the other runs began later. Runs of an input are hardly ever that far apart.
const OTHERS_MS: u64 = 0x1234_5677;

/// Documents whose keys make up the dictionary.
const FIO: &str = include_str!("../../corpus/saved-runs/fio-json");
const EXPORTED: &str = include_str!("../../corpus/saved-runs/exported");
