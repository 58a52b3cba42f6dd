//! Recordings of jobs (`write_iolog`), kept in memory until the run has ended.

use std::sync::{Arc, Mutex, PoisonError};

use fathom_core::Errno;
use fathom_setup::recording::{RecordingSpec, RecordingText};
use fathom_setup::translate::JobSetup;
use fathom_workload::{RecordingError, RecordingSink, ReplayOp};

use super::LogFiles;

/// Recordings of a run: path and text of each.
#[derive(Default)]
pub(super) struct Recordings(Vec<(String, SharedText)>);

/// Text that a worker's sink and the run share; `None` once it was taken.
type SharedText = Arc<Mutex<Option<RecordingText<Vec<u8>>>>>;

impl Recordings {
    /// Begins the recording of a job, if it has one.
    pub(super) fn begin(&mut self, setup: &JobSetup) -> Option<Box<dyn RecordingSink>> {
        let spec = RecordingSpec::of(setup)?;
        // Cannot fail: memory takes everything.
        let text = RecordingText::begin(Vec::new(), &spec).ok();
        let text = Arc::new(Mutex::new(text));
        self.0.push((spec.path, Arc::clone(&text)));
        Some(Box::new(MemorySink(text)))
    }

    /// Ends all recordings; their workers are gone. Returns each log's name and content.
    pub(super) fn end(self) -> LogFiles {
        let all = self.0.into_iter();
        let files = all.filter_map(|(path, text)| {
            let text = text.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            Some((path, text.end().ok()?))
        });
        files.collect()
    }
}

/// Worker's end of a recording.
#[derive(Debug)]
struct MemorySink(SharedText);

impl RecordingSink for MemorySink {
    fn take(&mut self, ops: &mut Vec<ReplayOp>) -> Result<(), RecordingError> {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = text.as_mut().map_or(Ok(()), |text| text.write(ops));
        ops.clear();
        written.map_err(|error| RecordingError {
            errno: Errno::EIO,
            text: error.to_string(),
        })
    }
}
