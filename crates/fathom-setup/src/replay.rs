//! Replay of a log: the survey before the run, and the stream of ops during it.
//!
//! A log is read twice. The survey finds its files, sizes and directions, which the checks need
//! before anything is opened, and every error in it; the stream then hands its ops over. Neither
//! holds more than a piece of it in memory. A log that has changed in between is refused where it
//! differs from what was checked.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use fathom_core::{Direction, FileIndex};
use fathom_iolog::{
    Action, Changes, Decoder, Event, IologError, IologErrorKind, LogFileName, Notes, Survey,
    Transform,
};
use fathom_workload::{FeedStatus, ReplayFeed, ReplayKind, ReplayOp};

use crate::merge::{MergeNote, MergePlan, MergedTrace};

/// Log to replay, surveyed.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// Name of the log.
    pub log: String,
    /// Changes to make to it.
    pub changes: Changes,
    /// Facts about the changed log.
    pub survey: Survey,
    /// Oddities of the log.
    pub notes: Notes,
    /// Merge whose result is the log.
    pub merge: Option<MergePlan>,
    /// Oddities of the merged traces.
    pub merge_notes: Vec<MergeNote>,
    /// Length of the log, or of the merged trace.
    log_bytes: u64,
    /// Names of all files in the log.
    names: Vec<LogFileName>,
    /// The job's file for each of the changed log.
    places: Vec<Option<FileIndex>>,
}

/// Reason for which a log cannot be replayed.
#[derive(Debug)]
pub enum ReplayError {
    /// It cannot be read.
    Io(String, io::Error),
    /// Its content is wrong.
    Log(IologError),
}

impl std::error::Error for ReplayError {}

impl ReplayError {
    /// Returns the error of reading `log`, or of the trace that is merged into it.
    #[must_use]
    pub fn of(log: &str, error: io::Error) -> Self {
        let own = error.downcast::<Self>();
        own.unwrap_or_else(|error| Self::Io(log.to_owned(), error))
    }

    /// Returns the remedy, in the imperative.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Io(..) => "check the name and the permissions of the log",
            Self::Log(error) => error.kind.hint(),
        }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(log, error) => write!(f, "cannot read {log}: {error}"),
            Self::Log(error) => error.fmt(f),
        }
    }
}

impl ReplayPlan {
    /// Surveys a log.
    ///
    /// # Errors
    /// The log cannot be read, is wrong somewhere, or has no op.
    pub fn survey(log: &str, changes: Changes, mut reader: impl Read) -> Result<Self, ReplayError> {
        let mut pieces = Pieces::new(log, changes);
        let mut survey = Survey::default();
        while !pieces.ended {
            let read = pieces.next(&mut reader, &mut |event| survey.add(&event));
            read?;
        }
        if survey.is_empty() {
            let error = pieces.decoder.error(IologErrorKind::NoOps);
            return Err(ReplayError::Log(error));
        }
        let opened = survey.files.iter().map(|file| file.opened);
        let mut next = 0;
        let places = opened.map(|opened| {
            let place = FileIndex::new(next);
            next += u32::from(opened);
            opened.then_some(place)
        });
        Ok(Self {
            log: log.to_owned(),
            changes,
            merge: None,
            merge_notes: Vec::new(),
            notes: pieces.decoder.notes(),
            log_bytes: pieces.bytes_read,
            places: places.collect(),
            names: pieces.decoder.names().to_vec(),
            survey,
        })
    }

    /// Surveys the merge of several traces, which `open` opens by their paths.
    ///
    /// # Errors
    /// As [`survey`](Self::survey), of each trace and of the result.
    pub fn survey_merged<R: Read>(
        merge: MergePlan,
        changes: Changes,
        open: impl FnMut(&str) -> io::Result<R>,
    ) -> Result<Self, ReplayError> {
        let merged = MergedTrace::open(&merge, open);
        let mut merged = merged.map_err(|error| ReplayError::of(&merge.output, error))?;
        let plan = Self::survey(&merge.output, changes, &mut merged)?;
        Ok(Self {
            merge_notes: merged.notes(),
            merge: Some(merge),
            ..plan
        })
    }

    /// Opens the log again, to be replayed.
    ///
    /// # Errors
    /// Those of opening it, or the traces merged into it.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        match &self.merge {
            Some(merge) => merge.stream(),
            None => Ok(Box::new(File::open(&self.log)?)),
        }
    }

    /// Iterates over the names and facts of the files that the replay opens, in the order of the
    /// job's files.
    pub fn files(&self) -> impl Iterator<Item = (&LogFileName, &fathom_iolog::FileSurvey)> {
        let named = self.names.iter().zip(&self.survey.files);
        named.filter(|(_, file)| file.opened)
    }

    /// Returns the length of the largest op that needs a buffer.
    #[must_use]
    pub fn largest(&self) -> u32 {
        let sizes = &self.survey.sizes;
        let largest = [sizes.read, sizes.write].into_iter().flatten();
        largest.map(|(_, max)| max).max().unwrap_or(0)
    }

    /// Returns the stream of the log's ops, read from `reader`.
    pub fn stream(self: &Arc<Self>, reader: Box<dyn Read + Send>) -> ReplayStream {
        ReplayStream {
            pieces: Pieces::new(&self.log, self.changes),
            plan: Arc::clone(self),
            reader,
            names_checked: 0,
        }
    }

    /// Returns the op of an event, if it is one of those that were checked.
    fn op(&self, event: Event) -> Option<ReplayOp> {
        let file = self.places.get(event.file.index()).copied().flatten()?;
        let (kind, offset, length) = match event.action {
            Action::Open => (ReplayKind::Open, 0, 0),
            Action::Close => (ReplayKind::Close, 0, 0),
            Action::Sync(kind) => (ReplayKind::Sync(kind), 0, 0),
            Action::Data {
                direction,
                offset,
                length,
            } => {
                let (_, largest) = self.survey.sizes[direction]?;
                let end = self.survey.files[event.file.index()].end;
                if length > largest || offset + u64::from(length) > end {
                    return None;
                }
                (ReplayKind::Data(direction), offset, length)
            }
        };
        Some(ReplayOp {
            due: event.time,
            kind,
            file,
            offset,
            length,
        })
    }

    /// Returns true if the ops of a direction occur.
    #[must_use]
    pub fn uses(&self, direction: Direction) -> bool {
        self.survey.ops[direction] > 0
    }
}

/// Ops of a log, decoded while the job runs.
pub struct ReplayStream {
    plan: Arc<ReplayPlan>,
    pieces: Pieces,
    reader: Box<dyn Read + Send>,
    /// Number of names that are known to be those of the survey.
    names_checked: usize,
}

impl fmt::Debug for ReplayStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayStream")
            .field("log", &self.plan.log)
            .finish_non_exhaustive()
    }
}

/// Reads the log on each call: for a caller that may block.
impl ReplayFeed for ReplayStream {
    fn fill(&mut self, ops: &mut Vec<ReplayOp>) -> FeedStatus {
        while ops.is_empty() {
            if self.pieces.ended {
                return FeedStatus::End;
            }
            let (plan, mut unknown) = (&self.plan, false);
            let read = self.pieces.next(&mut self.reader, &mut |event| match plan
                .op(event)
                .filter(|_| !unknown)
            {
                Some(op) => ops.push(op),
                None => unknown = true,
            });
            // A log that was cut may end in the middle of a number, which is an op like others.
            unknown |= self.pieces.ended && self.pieces.bytes_read != plan.log_bytes;
            let names = self.pieces.decoder.names();
            let new = names.get(self.names_checked..).unwrap_or_default();
            let known = plan.names.get(self.names_checked..).unwrap_or_default();
            if !known.starts_with(new) || unknown {
                ops.clear();
                return FeedStatus::Failed(format!("{} was changed during the run", plan.log));
            }
            self.names_checked = names.len();
            if let Err(error) = read {
                // Ops before the error are not issued: it was not there when the log was checked.
                ops.clear();
                return FeedStatus::Failed(error.to_string());
            }
        }
        FeedStatus::Filled
    }
}

/// Decoder and transformation of a log, fed piece by piece.
struct Pieces {
    log: String,
    decoder: Decoder,
    transform: Transform,
    last: fathom_core::Nanos,
    buffer: Box<[u8]>,
    bytes_read: u64,
    ended: bool,
}

impl Pieces {
    fn new(log: &str, changes: Changes) -> Self {
        Self {
            log: log.to_owned(),
            decoder: Decoder::new(log).align_trace(changes.align),
            transform: Transform::new(changes),
            last: fathom_core::Nanos::ZERO,
            buffer: vec![0; PIECE_BYTES].into_boxed_slice(),
            bytes_read: 0,
            ended: false,
        }
    }

    /// Reads and decodes the next piece; at the end of the log, the events that end it.
    fn next(
        &mut self,
        reader: &mut dyn Read,
        sink: &mut dyn FnMut(Event),
    ) -> Result<(), ReplayError> {
        let read = loop {
            match reader.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(|error| ReplayError::of(&self.log, error))?,
            }
        };
        self.bytes_read += read as u64;
        let (transform, last) = (&mut self.transform, &mut self.last);
        let mut each = |event: Event| {
            *last = event.time;
            transform.apply(event).into_iter().for_each(&mut *sink);
        };
        let decoded = match self.buffer.get(..read) {
            Some(bytes) if !bytes.is_empty() => self.decoder.push(bytes, &mut each),
            _ => {
                self.ended = true;
                self.decoder.finish(&mut each)
            }
        };
        decoded.map_err(ReplayError::Log)?;
        if self.ended {
            self.transform.finish(self.last).into_iter().for_each(sink);
        }
        Ok(())
    }
}

/// Bytes per piece: about a thousand ops.
const PIECE_BYTES: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &[u8] = b"fio version 3 iolog\n0 a add\n0 b add\n0 b open\n10 b read 4096 512\n\
        20 b write 0 1024\n30 b close\n";

    fn plan(log: &[u8]) -> Result<Arc<ReplayPlan>, ReplayError> {
        ReplayPlan::survey("log", Changes::default(), log).map(Arc::new)
    }

    #[test]
    fn the_stream_has_the_ops_that_were_surveyed() {
        let plan = plan(LOG).expect("a log");
        let names: Vec<String> = plan.files().map(|(name, _)| name.to_string()).collect();
        assert_eq!((names, plan.largest()), (vec!["b".to_owned()], 1024));
        let mut stream = plan.stream(Box::new(LOG));
        let mut ops = Vec::new();
        assert_eq!(stream.fill(&mut ops), FeedStatus::Filled);
        let kinds: Vec<_> = ops.iter().map(|op| (op.kind, op.file.get())).collect();
        let want = [
            (ReplayKind::Open, 0),
            (ReplayKind::Data(Direction::Read), 0),
            (ReplayKind::Data(Direction::Write), 0),
            (ReplayKind::Close, 0),
        ];
        assert_eq!(kinds, want);
        ops.clear();
        assert_eq!(stream.fill(&mut ops), FeedStatus::End);
    }

    #[test]
    fn a_log_that_has_changed_is_refused() {
        let plan = plan(LOG).expect("a log");
        let text = std::str::from_utf8(LOG).expect("text");
        for (from, to) in [
            ("0 b add", "0 c add"),
            ("read 4096 512", "read 4096 2048"),
            ("read 4096 512", "read 8192 512"),
            ("read", "trim"),
            ("0 b open\n", "0 a open\n0 b open\n"),
            ("10 b read", "10 b frob"),
        ] {
            let changed = text.replace(from, to).into_bytes();
            let mut stream = plan.stream(Box::new(io::Cursor::new(changed)));
            let mut ops = Vec::new();
            let status = stream.fill(&mut ops);
            assert!(matches!(status, FeedStatus::Failed(_)), "{to}: {status:?}");
            assert_eq!(ops, []);
        }
    }

    #[test]
    fn a_log_that_was_cut_is_refused_at_its_end() {
        let plan = plan(LOG).expect("a log");
        let text = std::str::from_utf8(LOG).expect("text");
        for end in ["read 4096 512\n", "write 0 1", "0 b open\n", "add\n"] {
            let log = &LOG[..text.find(end).expect("a line") + end.len()];
            let mut stream = plan.stream(Box::new(log));
            let mut ops = Vec::new();
            let status = loop {
                ops.clear();
                match stream.fill(&mut ops) {
                    FeedStatus::Filled => {}
                    end => break end,
                }
            };
            let why = "log was changed during the run".to_owned();
            assert_eq!((status, ops), (FeedStatus::Failed(why), vec![]), "{end}");
        }
    }

    #[test]
    fn a_log_without_ops_is_an_error() {
        let error = plan(b"fio version 3 iolog\n0 a add\n").unwrap_err();
        assert_eq!(error.to_string(), "log:2: no op to replay");
    }
}
