//! Incremental decoder of a log of any format.

use fathom_core::Nanos;

use crate::blktrace::{ByteOrder, RECORD_BYTES, TraceEvent, TraceRecord};
use crate::error::{IologError, IologErrorKind, Place, shown};
use crate::event::{Action, Event, LogFile, LogFileName};
use crate::names::Names;
use crate::text::{self, TextVersion, Verb};

/// Decoder of one log.
///
/// Pass it the log's bytes in order, in pieces of any size ([`push`](Self::push)), then
/// [`finish`](Self::finish) it; events go to the caller's sink. The format is recognised by the
/// first bytes. Files still open at the end are closed there.
///
/// Memory: the names of the log's files, and one line or record that a piece has cut.
#[derive(Debug)]
pub struct Decoder {
    log: String,
    format: Format,
    names: Names,
    /// Start of a line or record whose end was not passed yet.
    partial: Vec<u8>,
    /// Bytes that follow a record and are to be skipped.
    skip: usize,
    /// Line of a text, or byte of a trace, that is decoded next.
    at: u64,
    /// Time of the last event.
    now: Nanos,
    /// Time on the trace's clock of its first op.
    trace_start: Option<Nanos>,
    in_flight: u32,
    /// The trace has completions, without which ops in flight cannot be counted.
    has_completions: bool,
    /// Ops of a trace have multiples of this length; 0 or 1 for as they are.
    trace_align: u32,
    notes: Notes,
}

/// Oddities of a log that do not prevent its replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Actions whose time is before that of the action above; they are due with it.
    pub times_back: u64,
    /// Place of the first of them.
    pub first_time_back: Option<Place>,
    /// Byte at which a trace was found to end in the middle of a record.
    pub truncated_at: Option<u64>,
    /// Most ops that a trace has in flight at a time; 0 if it has no completions.
    pub depth: u32,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Unknown,
    Text(TextVersion),
    Trace(ByteOrder),
}

/// Receiver of events.
type Sink<'a> = &'a mut dyn FnMut(Event);

impl Decoder {
    /// Creates a decoder; `log` is the name that its errors show.
    #[must_use]
    pub fn new(log: &str) -> Self {
        Self {
            log: log.to_owned(),
            format: Format::Unknown,
            names: Names::default(),
            partial: Vec::new(),
            skip: 0,
            at: 0,
            now: Nanos::ZERO,
            trace_start: None,
            in_flight: 0,
            has_completions: false,
            trace_align: 0,
            notes: Notes::default(),
        }
    }

    /// Rounds the ops of a trace up to multiples of `align`, as fio does; a text log is left as it
    /// is.
    #[must_use]
    pub const fn align_trace(mut self, align: u32) -> Self {
        self.trace_align = align;
        self
    }

    /// Decodes the next piece of the log.
    ///
    /// # Errors
    /// The log is not readable from some place on; the decoder must not be used any more.
    pub fn push(&mut self, bytes: &[u8], sink: Sink<'_>) -> Result<(), IologError> {
        match self.format {
            Format::Unknown => self.recognise(bytes, sink),
            Format::Text(version) => self.push_text(bytes, version, sink),
            Format::Trace(order) => self.push_trace(bytes, order, sink),
        }
    }

    /// Ends the log: decodes a last line without an end, and closes the files that are open.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self, sink: Sink<'_>) -> Result<(), IologError> {
        let last = std::mem::take(&mut self.partial);
        match self.format {
            Format::Unknown if last.starts_with(text::HEADER) => self.header(&last)?,
            Format::Unknown => return Err(self.error(IologErrorKind::UnknownFormat)),
            Format::Text(version) if !last.is_empty() => self.line(&last, version, sink)?,
            Format::Text(_) => {}
            Format::Trace(_) => {
                if !last.is_empty() || self.skip > 0 {
                    self.notes.truncated_at = Some(self.at);
                }
            }
        }
        for file in self.names.close_all() {
            sink(Event {
                time: self.now,
                file,
                action: Action::Close,
            });
        }
        Ok(())
    }

    /// Returns the names of the files so far, by number.
    #[must_use]
    pub fn names(&self) -> &[LogFileName] {
        self.names.list()
    }

    /// Returns the oddities so far.
    #[must_use]
    pub const fn notes(&self) -> Notes {
        let depth = if self.has_completions {
            self.notes.depth
        } else {
            0
        };
        Notes {
            depth,
            ..self.notes
        }
    }

    /// Returns an error of the log as a whole.
    #[must_use]
    pub fn error(&self, kind: IologErrorKind) -> IologError {
        let place = match self.format {
            Format::Text(_) => Place::Line(self.at.max(1)),
            Format::Unknown | Format::Trace(_) => Place::Byte(self.at),
        };
        IologError {
            log: self.log.clone(),
            place,
            kind,
        }
    }

    /// Recognises the format once there are enough bytes for it.
    fn recognise(&mut self, bytes: &[u8], sink: Sink<'_>) -> Result<(), IologError> {
        self.partial.extend_from_slice(bytes);
        if self.partial.len() < MAGIC_BYTES {
            return Ok(());
        }
        if let Some(order) = ByteOrder::of(&self.partial) {
            self.format = Format::Trace(order);
            let all = std::mem::take(&mut self.partial);
            return self.push_trace(&all, order, sink);
        }
        let Some(end) = end_of_line(&self.partial) else {
            let start = &self.partial[..self.partial.len().min(text::HEADER.len())];
            if text::HEADER.starts_with(start) && self.partial.len() <= LINE_MAX {
                return Ok(());
            }
            return Err(self.error(IologErrorKind::UnknownFormat));
        };
        let all = std::mem::take(&mut self.partial);
        self.header(&all[..end])?;
        match self.format {
            Format::Text(version) => self.push_text(&all[end + 1..], version, sink),
            Format::Unknown | Format::Trace(_) => Ok(()),
        }
    }

    /// Takes the version of a text log from its first line.
    fn header(&mut self, line: &[u8]) -> Result<(), IologError> {
        match text::version(line) {
            Some(Ok(version)) => {
                self.format = Format::Text(version);
                self.at = 1;
                Ok(())
            }
            Some(Err(kind)) => Err(self.error(kind)),
            None => Err(self.error(IologErrorKind::UnknownFormat)),
        }
    }

    fn push_text(
        &mut self,
        mut bytes: &[u8],
        version: TextVersion,
        sink: Sink<'_>,
    ) -> Result<(), IologError> {
        while let Some(end) = end_of_line(bytes) {
            if self.partial.is_empty() {
                self.line(&bytes[..end], version, sink)?;
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&bytes[..end]);
                self.line(&line, version, sink)?;
                // Its memory serves the next line that is cut.
                line.clear();
                self.partial = line;
            }
            bytes = &bytes[end + 1..];
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > LINE_MAX {
            self.at += 1;
            return Err(self.error(IologErrorKind::LongLine));
        }
        Ok(())
    }

    /// Decodes one line, without its end.
    fn line(
        &mut self,
        line: &[u8],
        version: TextVersion,
        sink: Sink<'_>,
    ) -> Result<(), IologError> {
        self.at += 1;
        if line.len() > LINE_MAX {
            return Err(self.error(IologErrorKind::LongLine));
        }
        let event = self.line_event(line, version);
        if let Some(event) = event.map_err(|kind| self.error(kind))? {
            sink(event);
        }
        Ok(())
    }

    fn line_event(
        &mut self,
        line: &[u8],
        version: TextVersion,
    ) -> Result<Option<Event>, IologErrorKind> {
        let Some(line) = text::parse(line, version)? else {
            return Ok(None);
        };
        if let Some(time) = line.time {
            self.advance(time, Place::Line(self.at));
        }
        let action = match line.verb {
            Verb::Add => {
                let name = std::str::from_utf8(line.name).map_err(|_| IologErrorKind::Encoding)?;
                self.names.add(LogFileName::Path(name.to_owned()))?;
                return Ok(None);
            }
            Verb::Wait(until) => {
                self.advance(until, Place::Line(self.at));
                return Ok(None);
            }
            Verb::Open => Action::Open,
            Verb::Close => Action::Close,
            Verb::Data {
                direction,
                offset,
                length,
            } => Action::Data {
                direction,
                offset,
                length,
            },
            Verb::Sync(kind) => Action::Sync(kind),
        };
        let file = self.names.find(line.name);
        let file = file.ok_or_else(|| IologErrorKind::NotAdded(shown(line.name)))?;
        match (action, self.names.is_open(file)) {
            (Action::Open, true) => return Err(IologErrorKind::AlreadyOpen(shown(line.name))),
            (Action::Open, false) => self.names.set_open(file, true),
            (_, false) => return Err(IologErrorKind::NotOpen(shown(line.name))),
            (Action::Close, true) => self.names.set_open(file, false),
            (Action::Data { .. } | Action::Sync(_), true) => {}
        }
        Ok(Some(self.event(file, action)))
    }

    fn push_trace(
        &mut self,
        mut bytes: &[u8],
        order: ByteOrder,
        sink: Sink<'_>,
    ) -> Result<(), IologError> {
        loop {
            let skipped = self.skip.min(bytes.len());
            bytes = &bytes[skipped..];
            self.skip -= skipped;
            self.at += skipped as u64;
            let wanted = RECORD_BYTES - self.partial.len();
            let Some((head, rest)) = bytes.split_at_checked(wanted).filter(|_| self.skip == 0)
            else {
                self.partial.extend_from_slice(bytes);
                return Ok(());
            };
            let mut record = [0; RECORD_BYTES];
            let (old, new) = record.split_at_mut(self.partial.len());
            old.copy_from_slice(&self.partial);
            new.copy_from_slice(head);
            self.partial.clear();
            bytes = rest;
            let decoded = TraceRecord::decode(&record, order);
            let decoded = decoded.map_err(|kind| self.error(kind))?;
            let done = self.trace_record(&decoded, sink);
            done.map_err(|kind| self.error(kind))?;
            self.skip = decoded.pdu_bytes.into();
            self.at += RECORD_BYTES as u64;
        }
    }

    fn aligned(&self, length: u32) -> u32 {
        let aligned = length.checked_next_multiple_of(self.trace_align.max(1));
        aligned.unwrap_or(length)
    }

    fn trace_record(&mut self, record: &TraceRecord, sink: Sink<'_>) -> Result<(), IologErrorKind> {
        let action = match record.event()? {
            TraceEvent::Other => return Ok(()),
            TraceEvent::Complete => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.has_completions = true;
                return Ok(());
            }
            TraceEvent::Flush => Action::Sync(TraceEvent::FLUSH),
            TraceEvent::Data {
                direction,
                offset,
                length,
            } => Action::Data {
                direction,
                offset,
                length: self.aligned(length),
            },
        };
        self.in_flight = self.in_flight.saturating_add(1);
        self.notes.depth = self.notes.depth.max(self.in_flight);
        let start = *self.trace_start.get_or_insert(record.time);
        match record.time.get().checked_sub(start.get()) {
            Some(since) => self.advance(Nanos::new(since), Place::Byte(self.at)),
            None => self.note_back(Place::Byte(self.at)),
        }
        let (major, minor) = record.device();
        let file = self.names.add(LogFileName::Device { major, minor })?;
        if !self.names.is_open(file) {
            self.names.set_open(file, true);
            sink(self.event(file, Action::Open));
        }
        sink(self.event(file, action));
        Ok(())
    }

    const fn event(&self, file: LogFile, action: Action) -> Event {
        Event {
            time: self.now,
            file,
            action,
        }
    }

    /// Moves the time on; a time that goes back is noted.
    fn advance(&mut self, time: Nanos, place: Place) {
        if time < self.now {
            self.note_back(place);
        }
        self.now = self.now.max(time);
    }

    fn note_back(&mut self, place: Place) {
        self.notes.times_back += 1;
        self.notes.first_time_back.get_or_insert(place);
    }
}

fn end_of_line(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\n')
}

/// Bytes that tell a trace from a text.
const MAGIC_BYTES: usize = 4;

/// Longest line: a path of the kernel's length and four numbers.
const LINE_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests;
