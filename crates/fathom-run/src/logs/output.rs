//! One file of a log.

use std::fs::File;
use std::io::{self, Write};

use super::format::Page;
use super::plan::LogFormat;
use super::stored;

/// What a log is written into.
#[derive(Debug)]
pub(super) enum Sink {
    File(File),
    Memory(Vec<u8>),
}

/// A file, and the lines that are to be written next.
#[derive(Debug)]
pub(super) struct Output {
    /// Text, or records as the format wants them.
    pub(super) page: Page,
    /// Lines on the page.
    pub(super) lines: u64,
    pub(super) format: LogFormat,
    sink: Sink,
    /// Nothing more is written behind this.
    failed: Option<io::Error>,
    lost: u64,
}

impl Output {
    pub(super) fn new(sink: Sink, format: LogFormat, page_bytes: usize) -> Self {
        Self {
            page: Page::new(page_bytes),
            lines: 0,
            format,
            sink,
            failed: None,
            lost: 0,
        }
    }

    /// Writes the page. After an error nothing more is written: the job goes on.
    pub(super) fn flush(&mut self) {
        if self.failed.is_none() && !self.page.written().is_empty() {
            let result = match self.format {
                LogFormat::Text => self.sink.write_all(self.page.written()),
                LogFormat::Stored => stored::deflate(self.page.written(), &mut self.sink),
            };
            self.failed = result.err();
        }
        if self.failed.is_some() {
            self.lost += self.lines;
        }
        self.lines = 0;
        self.page.clear();
    }

    /// Lines that could not be written, since the last time somebody asked.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// What became of it.
    pub(super) fn into_end(self) -> (Option<io::Error>, Sink) {
        (self.failed, self.sink)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Memory(memory) => memory.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
