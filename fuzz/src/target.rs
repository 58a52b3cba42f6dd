//! The table of targets and the oracle that judges each input.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(any(test, not(feature = "libfuzzer")))]
use std::path::{Path, PathBuf};

use fathom_core::{Nanos, Tick};
use fathom_sys::peak_allocation;
use fathom_sys::thread;

use crate::decoders::{
    history, host_message, iolog, job, lab_file, log, log_page, machine, merge, nbd, nvme,
    nvme_host, nvme_host_controller, nvme_target, nvme_zones, page, planted, rank_frames, record,
    target_file, trace, verify,
};
use crate::watchdog::Watchdog;

/// A decoder under test.
pub(crate) struct Target {
    /// Name on the command line, and of its folder in the corpus.
    pub(crate) name: &'static str,
    /// Decodes an input and uses the result; an error is the rule that was broken.
    decode: fn(&[u8]) -> Result<Verdict, String>,
    /// Words of the format, for the fuzzer's dictionary.
    #[cfg_attr(
        not(any(test, feature = "libfuzzer")),
        expect(dead_code, reason = "libFuzzer's alone")
    )]
    pub(crate) words: fn() -> Vec<String>,
}

/// All targets, one per decoder.
pub(crate) const TARGETS: &[Target] = &[
    target("job-file", job::decode_file, job::words),
    target("command-line", job::decode_line, job::words),
    target("record", record::decode, record::words),
    target("merge", merge::decode, record::words),
    target("page", page::decode, record::words),
    target("saved-runs", history::decode_runs, history::words),
    target("history", history::decode_history, no_words),
    target("log-lines", log::decode_lines, log::words),
    target("log-page", log_page::decode, log::words),
    target("compressed-log", log::decode_compressed, no_words),
    target("trace-page", trace::decode, no_words),
    target("io-log", iolog::decode_text, iolog::words),
    target("blktrace", iolog::decode_trace, no_words),
    target("machine-file", machine::decode, machine::words),
    target("lab-file", lab_file::decode, lab_file::words),
    target("target-file", target_file::decode, target_file::words),
    target("verify-header", verify::decode, no_words),
    target("verify-state", verify::decode_state, no_words),
    target("host-message", host_message::decode, no_words),
    target("rank-frames", rank_frames::decode, no_words),
    target("nbd-handshake", nbd::decode_handshake, no_words),
    target("nbd-replies", nbd::decode_replies, no_words),
    target("nbd-uri", nbd::decode_uri, nbd::words),
    target("nvme-pdu", nvme::decode, no_words),
    target(
        "nvme-host-controller",
        nvme_host_controller::decode,
        no_words,
    ),
    target("nvme-host-queue", nvme_host::decode, no_words),
    target("nvme-target-queue", nvme_target::decode, no_words),
    target("nvme-zones", nvme_zones::decode, no_words),
];

/// A target with a planted bug, which is not a decoder.
const PLANTED: Target = target("planted", planted::decode, no_words);

/// Result of a decoder that kept to the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accepted,
    /// Refused with this message.
    Refused(String),
}

impl Target {
    /// Returns the target of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        let mut all = TARGETS.iter().chain(std::iter::once(&PLANTED));
        all.find(|target| target.name == name)
    }

    /// Returns the directory of its seeds.
    #[cfg(any(test, not(feature = "libfuzzer")))]
    pub(crate) fn corpus(&self) -> PathBuf {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        all.join(self.name)
    }

    /// Tries an input; an error is the rule that it broke.
    pub(crate) fn try_with(&self, input: &[u8], watchdog: &Watchdog) -> Result<Verdict, String> {
        watchdog.begin(self.name, input);
        let before = peak_allocation::in_use();
        peak_allocation::reset();
        let begun = processor_time();
        let answer = catch_unwind(AssertUnwindSafe(|| (self.decode)(input)));
        let took = processor_time() - begun;
        let bytes = peak_allocation::peak() - before;
        watchdog.end();
        let verdict = answer.map_err(|panic| format!("panic: {}", text_of(&*panic)))??;
        if took > TIME_MAX {
            return Err(format!("{took} of processor time; the limit is {TIME_MAX}"));
        }
        if bytes > BYTES_MAX {
            return Err(format!("{bytes} B of memory; the limit is {BYTES_MAX} B"));
        }
        match &verdict {
            Verdict::Refused(message) => check_message(message)?,
            Verdict::Accepted => {}
        }
        Ok(verdict)
    }
}

/// Checks that a message has text and nothing that would garble a terminal.
pub(crate) fn check_message(message: &str) -> Result<(), String> {
    let unprintable = |letter: char| letter.is_control() && letter != '\n' && letter != '\u{1b}';
    if message.trim().is_empty() {
        return Err("refused without a message".to_owned());
    }
    match message.chars().find(|&letter| unprintable(letter)) {
        Some(letter) => Err(format!("control character {letter:?} in a message")),
        None => Ok(()),
    }
}

const fn target(
    name: &'static str,
    decode: fn(&[u8]) -> Result<Verdict, String>,
    words: fn() -> Vec<String>,
) -> Target {
    Target {
        name,
        decode,
        words,
    }
}

/// The dictionary of a format without words.
const fn no_words() -> Vec<String> {
    Vec::new()
}

/// Processor time of this thread: unlike wall-clock time, it stands still while other processes
/// run.
fn processor_time() -> Tick {
    let usage = thread::usage();
    Tick::new((usage.user_us + usage.system_us) * 1000)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => write!(f, "accepted"),
            Self::Refused(message) => write!(f, "refused: {}", message.trim_end()),
        }
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("(no text)")
}

/// Memory for an input of up to 1 MiB.
const BYTES_MAX: i64 = 64 << 20;
/// Ten times what the slowest input takes on a slow machine; a hang never ends.
const TIME_MAX: Nanos = Nanos::from_secs(5);
