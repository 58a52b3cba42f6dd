//! Names of a log's files, and which of them are open.

use std::collections::HashMap;

use crate::error::IologErrorKind;
use crate::event::{LogFile, LogFileName};

/// Files of a log, numbered in the order of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<LogFileName>,
    numbers: HashMap<LogFileName, LogFile>,
    open: Vec<bool>,
    /// Path looked up last: most lines repeat it.
    last: Option<(Vec<u8>, LogFile)>,
    bytes: usize,
}

impl Names {
    /// Returns all names.
    pub(crate) fn list(&self) -> &[LogFileName] {
        &self.list
    }

    /// Adds a name, unless it is there, and returns its file.
    pub(crate) fn add(&mut self, name: LogFileName) -> Result<LogFile, IologErrorKind> {
        if let Some(&file) = self.numbers.get(&name) {
            return Ok(file);
        }
        if let LogFileName::Path(path) = &name {
            self.bytes += path.len();
        }
        if self.list.len() >= FILES_MAX || self.bytes > NAME_BYTES_MAX {
            return Err(IologErrorKind::TooManyNames);
        }
        let number = u32::try_from(self.list.len()).map_err(|_| IologErrorKind::TooManyNames)?;
        let file = LogFile(number);
        self.list.push(name.clone());
        self.open.push(false);
        self.numbers.insert(name, file);
        Ok(file)
    }

    /// Returns the file of a path that was added.
    pub(crate) fn find(&mut self, path: &[u8]) -> Option<LogFile> {
        if let Some((last, file)) = &self.last
            && last == path
        {
            return Some(*file);
        }
        let name = LogFileName::Path(std::str::from_utf8(path).ok()?.to_owned());
        let file = *self.numbers.get(&name)?;
        self.last = Some((path.to_owned(), file));
        Some(file)
    }

    /// Returns whether a file is open.
    pub(crate) fn is_open(&self, file: LogFile) -> bool {
        self.open[file.index()]
    }

    /// Marks a file as open or closed.
    pub(crate) fn set_open(&mut self, file: LogFile, open: bool) {
        self.open[file.index()] = open;
    }

    /// Closes the files that are open and returns them.
    pub(crate) fn close_all(&mut self) -> Vec<LogFile> {
        let open = (0..).map(LogFile).zip(&mut self.open);
        let open = open.filter_map(|(file, open)| std::mem::take(open).then_some(file));
        open.collect()
    }
}

/// Files of one log, at most: more than a process can hold open, by far.
const FILES_MAX: usize = 1 << 17;

/// Bytes of all names of one log, at most.
const NAME_BYTES_MAX: usize = 8 << 20;
