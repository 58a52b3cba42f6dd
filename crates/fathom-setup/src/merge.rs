//! Merge of traces (`merge_blktrace_file`): the logs of a replay as one, by time.
//!
//! ```text
//! trace ─► record ─┐
//! trace ─► record ─┼─► the earliest ─► merged bytes ─► survey, replay, file
//! trace ─► record ─┘
//! ```
//!
//! Traces are merged as streams: one record and a piece of each are in memory. The merge is
//! repeated where it is read: by the survey, for the file, and while the job runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};

use fathom_core::Nanos;
use fathom_iolog::{IologError, IologErrorKind, MergeInput, MergedRecord, TimeScale};
use fathom_job::{Job, ReplayOptions};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;
use crate::replay::ReplayError;

/// Merge that a job asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// Path of the merged trace.
    pub output: String,
    traces: Vec<MergedLog>,
}

/// One trace of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MergedLog {
    path: String,
    scale: TimeScale,
    repeats: u32,
}

/// Contradiction between the options of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeContradiction {
    /// Option at fault.
    pub option: &'static str,
    /// Message: what contradicts what.
    pub message: String,
}

impl MergePlan {
    /// Returns the merge of a job, if it has one.
    ///
    /// # Errors
    /// There are no logs, or not as many scalars or repetitions as logs.
    pub fn of(options: &ReplayOptions) -> Result<Option<Self>, MergeContradiction> {
        let (scalars, iterations) = (&options.merge_scalars, &options.merge_iterations);
        let lists = [
            ("merge_blktrace_scalars", scalars.len()),
            ("merge_blktrace_iters", iterations.len()),
        ];
        let Some(output) = &options.merge_to else {
            return match lists.into_iter().find(|(_, count)| *count > 0) {
                Some((option, _)) => Err(MergeContradiction {
                    option,
                    message: format!("`{option}` without `merge_blktrace_file`"),
                }),
                None => Ok(None),
            };
        };
        let logs = options.logs.len();
        if logs == 0 {
            let message = "`merge_blktrace_file` without `read_iolog`: nothing to merge".into();
            let option = "merge_blktrace_file";
            return Err(MergeContradiction { option, message });
        }
        for (option, count) in lists {
            if count > 0 && count != logs {
                let message = format!("`{option}` has {count} values for {logs} logs");
                return Err(MergeContradiction { option, message });
            }
        }
        let traces = options.logs.iter().enumerate().map(|(index, path)| {
            let scale = scalars.get(index).copied().and_then(TimeScale::percent);
            MergedLog {
                path: path.clone(),
                scale: scale.unwrap_or(TimeScale::ONE),
                repeats: iterations.get(index).copied().unwrap_or(1).max(1),
            }
        });
        Ok(Some(Self {
            output: output.clone(),
            traces: traces.collect(),
        }))
    }

    /// Returns the merge of a job, if it has one.
    ///
    /// # Errors
    /// As [`of`](Self::of), at the option.
    pub fn of_job(job: &Job) -> Result<Option<Self>, RunProblem> {
        Self::of(&job.options.replay).map_err(|contradiction| {
            RunProblem::new(ProblemKind::Contradiction, contradiction.message)
                .hint("name the traces in `read_iolog`, with a value for each")
                .at(job, contradiction.option)
        })
    }

    /// Iterates over the paths of the traces.
    pub fn traces(&self) -> impl Iterator<Item = &str> {
        self.traces.iter().map(|trace| trace.path.as_str())
    }

    /// Opens the merged stream of this host's files.
    ///
    /// # Errors
    /// As [`MergedTrace::open`].
    pub fn stream(&self) -> io::Result<Box<dyn Read + Send>> {
        let open = |path: &str| File::open(path);
        Ok(Box::new(MergedTrace::open(self, open)?))
    }
}

/// Merged trace, as a stream of bytes.
pub struct MergedTrace<F, R> {
    open: F,
    inputs: Vec<Input<R>>,
    /// Time and input of the records to come next.
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
    sequence: u32,
    /// Record to be handed over, and how much of it was.
    bytes: Vec<u8>,
    taken: usize,
}

/// Trace of a merge, and its next record.
struct Input<R> {
    log: MergedLog,
    /// Repetitions that follow this one.
    more: u32,
    reader: BufReader<R>,
    merge: MergeInput,
    record: Option<MergedRecord>,
    pdu: Vec<u8>,
    /// Byte of the record that its end cuts off.
    truncated_at: Option<u64>,
}

/// Oddity of a trace that does not prevent a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeNote {
    /// Path of the trace.
    pub log: String,
    /// Records whose time is before that of the record above.
    pub times_back: u64,
    /// Byte of the record that the end of the trace cuts off.
    pub truncated_at: Option<u64>,
}

impl<R: Read, F: FnMut(&str) -> io::Result<R>> MergedTrace<F, R> {
    /// Opens the traces with `open`, which is called again for each repetition.
    ///
    /// # Errors
    /// One of them cannot be read, or begins like no trace.
    pub fn open(plan: &MergePlan, mut open: F) -> io::Result<Self> {
        let mut inputs = Vec::new();
        for log in &plan.traces {
            inputs.push(Input {
                reader: BufReader::with_capacity(PIECE_BYTES, named(log, open(&log.path))?),
                merge: MergeInput::new(&log.path, log.scale),
                more: log.repeats - 1,
                log: log.clone(),
                record: None,
                pdu: Vec::new(),
                truncated_at: None,
            });
        }
        let mut merged = Self {
            open,
            next: BinaryHeap::with_capacity(inputs.len()),
            inputs,
            sequence: 0,
            bytes: Vec::new(),
            taken: 0,
        };
        for index in 0..merged.inputs.len() {
            merged.advance(index)?;
        }
        Ok(merged)
    }

    /// Returns the oddities of the traces so far.
    #[must_use]
    pub fn notes(&self) -> Vec<MergeNote> {
        let notes = self.inputs.iter().map(|input| MergeNote {
            log: input.log.path.clone(),
            times_back: input.merge.times_back(),
            truncated_at: input.truncated_at,
        });
        let odd = |note: &MergeNote| note.times_back > 0 || note.truncated_at.is_some();
        notes.filter(odd).collect()
    }

    /// Makes the next record of a trace known, if there is one.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let input = &mut self.inputs[index];
        while !input.next_record()? {
            if !input.merge.has_records() {
                let error = input.merge.error(IologErrorKind::NotATrace);
                return Err(of_log(error));
            }
            if input.more == 0 {
                return Ok(());
            }
            input.more -= 1;
            input.merge.repeat().map_err(of_log)?;
            let again = named(&input.log, (self.open)(&input.log.path))?;
            input.reader = BufReader::with_capacity(PIECE_BYTES, again);
        }
        let time = input.record.as_ref().map(|record| record.time);
        self.next.extend(time.map(|time| Reverse((time, index))));
        Ok(())
    }

    /// Takes the earliest record; of several those of the first trace.
    fn take_record(&mut self) -> io::Result<()> {
        self.bytes.clear();
        self.taken = 0;
        let Some(Reverse((_, index))) = self.next.pop() else {
            return Ok(());
        };
        let input = &mut self.inputs[index];
        if let Some(record) = input.record.take() {
            self.sequence = self.sequence.wrapping_add(1);
            self.bytes.extend(record.numbered(self.sequence));
            self.bytes.extend(&input.pdu);
        }
        self.advance(index)
    }
}

impl<R: Read> Input<R> {
    /// Reads the next record; false at the end of the trace.
    fn next_record(&mut self) -> io::Result<bool> {
        let mut fixed = [0; MergedRecord::BYTES];
        let start = self.merge.at();
        let read = named(&self.log, fill(&mut self.reader, &mut fixed))?;
        if read == 0 {
            return Ok(false);
        }
        if read < fixed.len() {
            // Of a trace that begins like none the start is wrong, not the end.
            self.truncated_at = Some(start);
            return Ok(false);
        }
        let record = self.merge.record(&fixed).map_err(of_log)?;
        self.pdu.resize(record.pdu_bytes.into(), 0);
        if named(&self.log, fill(&mut self.reader, &mut self.pdu))? < self.pdu.len() {
            self.truncated_at = Some(start);
            return Ok(false);
        }
        self.record = Some(record);
        Ok(true)
    }
}

impl<R: Read, F: FnMut(&str) -> io::Result<R>> Read for MergedTrace<F, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.taken == self.bytes.len() {
                self.take_record()?;
                if self.bytes.is_empty() {
                    break;
                }
            }
            let ready = &self.bytes[self.taken..];
            let count = ready.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&ready[..count]);
            (filled, self.taken) = (filled + count, self.taken + count);
        }
        Ok(filled)
    }
}

impl<F, R> fmt::Debug for MergedTrace<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let traces = self.inputs.iter().map(|input| &input.log.path);
        f.debug_list().entries(traces).finish()
    }
}

/// Reads until `bytes` is full or the stream ends; returns the number of bytes.
fn fill(reader: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Adds the name of the trace to an error.
fn named<T>(log: &MergedLog, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::other(ReplayError::Io(log.path.clone(), error)))
}

fn of_log(error: IologError) -> io::Error {
    io::Error::other(ReplayError::Log(error))
}

/// Bytes read at a time from each trace.
const PIECE_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests;
