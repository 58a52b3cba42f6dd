//! Lives of blocks, under fio's names.

use fathom_record::{BlockLivesRecord, Display, JobRecord};

use crate::json::Object;

/// Returns `block` of a job: the trims that failed blocks survived, and the states of all.
pub(crate) fn block_object(lives: &BlockLivesRecord, display: &Display) -> Object {
    let mut percentiles = Object::new();
    for &percent in &display.percentiles {
        if let Some(trims) = lives.percentile(percent) {
            percentiles.set(format!("{percent:.6}"), u64::from(trims));
        }
    }
    let mut states = Object::new();
    for (name, blocks) in states_of(lives) {
        states.set(name, blocks);
    }
    let mut out = Object::new();
    out.set("percentiles", percentiles);
    out.set("states", states);
    out
}

/// Formats the lines of the text report.
pub(crate) fn block_lines(job: &JobRecord) -> String {
    let Some(lives) = &job.block_lives else {
        return String::new();
    };
    let precision = usize::try_from(job.display.percentile_precision).unwrap_or(2);
    let cells = job.display.percentiles.iter().filter_map(|&percent| {
        let trims = lives.percentile(percent)?;
        Some(format!("{percent:.precision$}th={trims}"))
    });
    let cells: Vec<String> = cells.collect();
    let mut out = String::new();
    if !cells.is_empty() {
        out += "  block lifetime percentiles (trims before a failure):\n";
        for line in cells.chunks(5) {
            out += &format!("     | {}\n", line.join(", "));
        }
    }
    let states: Vec<String> = states_of(lives)
        .iter()
        .map(|(name, blocks)| format!("{name}={blocks}"))
        .collect();
    out + &format!("  block states : {}\n", states.join(", "))
}

/// Returns the numbers of blocks by fio's names of their states.
const fn states_of(lives: &BlockLivesRecord) -> [(&'static str, u64); 5] {
    [
        ("unwritten", lives.unwritten),
        ("trimmed", lives.trimmed),
        ("written", lives.written),
        ("trim failure", lives.trim_failure),
        ("write failure", lives.write_failure),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_shown_by_their_states() {
        let mut job = JobRecord::default();
        assert_eq!(block_lines(&job), "");
        job.display.percentiles = vec![50.0, 100.0];
        job.block_lives = Some(BlockLivesRecord {
            unwritten: 1,
            written: 2,
            trim_failure: 3,
            failed_after_trims: vec![(4, 2), (7, 1)],
            ..BlockLivesRecord::default()
        });
        let want = "  block lifetime percentiles (trims before a failure):\n     | 50.00th=4, \
                    100.00th=7\n  block states : unwritten=1, trimmed=0, written=2, trim \
                    failure=3, write failure=0\n";
        assert_eq!(block_lines(&job), want);
    }
}
