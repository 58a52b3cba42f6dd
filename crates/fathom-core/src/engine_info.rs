//! Facts about engines that hold before one starts, and the options that each brings along.
//!
//! The job language, the translation into worker configurations, lint and the documentation read
//! an [`EngineInfo`]; none of them links an engine. Ask for a property here instead of comparing
//! names: an engine of another crate has a name that this workspace has never heard of.

use crate::engine_values::EngineValues;
use crate::{Direction, Nanos};

/// Static description of an engine.
///
/// An engine's file declares one as a `static` and a registry row joins it to the constructor, so
/// everything known about an engine stands in one place. Start from [`EngineInfo::new`] and
/// override what differs:
///
/// ```
/// use fathom_core::{EngineInfo, EngineOption, Storage, Synchronous};
///
/// static INFO: EngineInfo = EngineInfo {
///     synchronous: Synchronous::Never,
///     storage: Storage::Remote,
///     options: &[EngineOption::int("port", 1, 65_535, "TCP port of the server", "port=10809")],
///     ..EngineInfo::new("example", "block devices over the network")
/// };
/// assert!(!INFO.synchronous.at_depth(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// Its name in job files: `psync`, `io_uring`…
    pub name: &'static str,
    /// Other names that mean it. As in fio, a name that merely begins with one is taken too:
    /// `aio` stands for `aio-ring`.
    pub aliases: &'static [&'static str],
    /// Depth up to which it performs one op after the other.
    pub synchronous: Synchronous,
    /// Holds prepared ops back and completes all of them inside the call that submits them, so that
    /// the device sees no queue whatever the depth.
    pub gathers: bool,
    /// Ops that go to the device together.
    pub batches: Batches,
    /// Place of the data it reads and writes.
    pub storage: Storage,
    /// Effect of its ops on its files.
    pub work: Work,
    /// Directions of the ops that it performs; a job with others is refused.
    pub directions: &'static [Direction],
    /// Changes its files whatever the direction of its ops.
    pub always_writes: bool,
    /// Has memory of the size of the job's files, which ops may fill.
    pub files_in_memory: bool,
    /// Noun phrase for help texts.
    pub help: &'static str,
    /// End of its jobs; distinguishes engines that perform I/O from those that do other work.
    pub job_end: JobEnd,
    /// Pause after each op that the engine's own options ask for.
    pub pause: Option<fn(&EngineValues) -> Nanos>,
    /// Difference from fio's engine of the same name; empty where there is none.
    pub different: &'static str,
    /// Options that a job has with this engine only.
    pub options: &'static [EngineOption],
    /// Options of other engines that fio accepts for this one, too, without effect.
    pub ignored_by_fio: &'static [&'static str],
    /// Honours `direct=1`. False for an engine whose data always pass through the page cache.
    pub bypasses_cache: bool,
    /// It writes to mappings of files, which cannot extend them.
    pub maps_files: bool,
    /// Asynchronous with `direct=1` only: a buffered op completes inside the call that submits it.
    pub blocks_when_buffered: bool,
    /// Passes each op's own I/O priority on (`cmdprio_percentage` and its relatives).
    pub op_priorities: bool,
    /// Marks writes that must be stored whole or not at all (`RWF_ATOMIC`).
    pub atomic_writes: bool,
    /// Marks writes with the number of a stream of the device.
    pub write_streams: bool,
    /// Reports and manages the zones of its devices itself. Those of engines on local files are the
    /// block layer's.
    pub manages_zones: bool,
    /// Test of a job's values for Zone Append, with which the device chooses the place of each
    /// write in its zone; `None` for an engine without it.
    pub appends: Option<fn(&EngineValues) -> bool>,
    /// Trims several ranges at once ([`Engine::set_ranges`](crate::Engine::set_ranges)).
    pub trim_ranges: bool,
    /// Kernel resource of which every slot takes one.
    pub slot_limit: Option<SlotLimit>,
    /// Has the kernel start threads on its behalf, whose CPU time is the job's.
    pub kernel_threads: bool,
    /// The process cannot exit while ops are in flight, not even when killed.
    pub exit_waits_for_ops: bool,
    /// Its buffers may be handed from thread to thread, which workers that submit for a job need
    /// (`io_submit_mode=offload`); see [`crate::Engine::release`]. An engine that moves no data
    /// needs no such buffers.
    pub shares_buffers: bool,
}

/// Ops that an engine passes on together, of those submitted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// All of them.
    All,
    /// Trims, as one command. Each other op takes a system call of its own, so that it is submitted
    /// by itself: in a batch, its issue time would be that of the last op.
    Trims,
}

/// Place of the data that an engine reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Nowhere: no data move, no file is needed.
    None,
    /// Files and devices of this machine, named by the job's `filename`: laid out, checked for
    /// other users, and subject to the page cache.
    LocalFiles,
    /// At a peer: a stream, in order, without files. The job's file names are not opened.
    Peer,
    /// Elsewhere. The engine opens the job's file names in its own way; this machine's file system
    /// and page cache are left alone.
    Remote,
    /// Devices of this machine, by commands that pass its block layer: checked for other users as
    /// block devices are. Otherwise as [`Remote`](Self::Remote).
    Device,
}

/// End of an engine's jobs, if neither time nor an error ends them earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// Completion of the job's bytes.
    Size,
    /// Report of the engine ([`Completion::ENDED`](crate::Completion::ENDED)). Its ops are no
    /// I/O: reports show their number and latency, but no bytes.
    Engine,
    /// Never. Its ops are not I/O, as with [`Engine`](Self::Engine).
    Never,
}

/// Effect of an engine's ops on its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads and writes their data.
    Data,
    /// Changes their size or the blocks allocated to them; moves no data.
    Allocation,
    /// Makes one system call on the name of a file, and opens none: an op is a file, whatever its
    /// length.
    Names(NameWork),
}

/// Work on the names of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameWork {
    /// The names are of directories.
    pub directories: bool,
    /// The files must exist before the run, which lays them out.
    pub laid_out: bool,
    /// A second op on the same name fails.
    pub once: bool,
}

/// File of an engine whose storage is remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFile {
    /// Size, which is fixed.
    pub bytes: u64,
    /// Logical block size in bytes, of which ops must be multiples.
    pub block_bytes: u32,
    /// Directions of the ops that it takes; a job with others is refused.
    pub directions: &'static [Direction],
}

/// Effect of an option that other parts of a run have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionEffect {
    /// The job's thread spins for completions instead of sleeping.
    PolledCompletions,
    /// A kernel thread of each queue spins for submissions.
    PolledSubmissions,
    /// Pages are dropped from the page cache after each op.
    Uncached,
    /// The job ends with the last job that performs I/O.
    EndsWithIo,
    /// Verified blocks are compared by the device
    /// ([`Engine::compare_next`](crate::Engine::compare_next)).
    ComparedReadback,
    /// The value, which must be given, names a file that the engine writes, below the job's
    /// `directory`.
    WrittenFile,
    /// The value, which must be given, names the job's only file, in place of `filename`.
    FileName,
}

/// Depth up to which an engine performs one op after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    /// Any depth: `iodepth` is capped at 1.
    Always,
    /// A depth of 1 only.
    AtDepthOne,
    /// None.
    Never,
}

impl Synchronous {
    /// Returns whether ops complete inside the call that submits them at this depth.
    #[must_use]
    pub const fn at_depth(self, depth: u32) -> bool {
        match self {
            Self::Always => true,
            Self::AtDepthOne => depth == 1,
            Self::Never => false,
        }
    }
}

/// System-wide limit on the slots of all engines of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLimit {
    /// sysctl below `fs` with the limit: `aio-max-nr`.
    pub limit: &'static str,
    /// sysctl below `fs` with the number taken so far.
    pub used: &'static str,
}

impl EngineInfo {
    /// Creates the facts of a synchronous engine on local files that honours `direct=1`, without
    /// options of its own.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            synchronous: Synchronous::Always,
            gathers: false,
            batches: Batches::All,
            storage: Storage::LocalFiles,
            work: Work::Data,
            directions: &Direction::ALL,
            always_writes: false,
            files_in_memory: false,
            help,
            job_end: JobEnd::Size,
            pause: None,
            different: "",
            options: &[],
            ignored_by_fio: &[],
            bypasses_cache: true,
            maps_files: false,
            blocks_when_buffered: false,
            op_priorities: false,
            atomic_writes: false,
            write_streams: false,
            manages_zones: false,
            appends: None,
            trim_ranges: false,
            slot_limit: None,
            kernel_threads: false,
            exit_waits_for_ops: false,
            shares_buffers: false,
        }
    }

    /// Returns whether its ops are I/O, with bytes to count.
    #[must_use]
    pub const fn performs_io(&self) -> bool {
        matches!(self.job_end, JobEnd::Size)
    }

    /// Returns whether its ops move data to or from storage, wherever it is.
    #[must_use]
    pub const fn moves_data(&self) -> bool {
        !matches!(self.storage, Storage::None) && matches!(self.work, Work::Data)
    }

    /// Returns what it does to the names of files, if that is its work.
    #[must_use]
    pub const fn name_work(&self) -> Option<NameWork> {
        match self.work {
            Work::Names(names) => Some(names),
            Work::Data | Work::Allocation => None,
        }
    }

    /// Returns whether it opens the job's files on this machine.
    #[must_use]
    pub const fn opens_local_files(&self) -> bool {
        matches!(self.storage, Storage::LocalFiles) && self.name_work().is_none()
    }

    /// Returns whether an option with this effect is on; a choice is on unless it is the default.
    #[must_use]
    pub fn has_effect(&self, effect: OptionEffect, values: &EngineValues) -> bool {
        let is_on = |option: &EngineOption| match option.kind {
            OptionKind::Choice(_) => {
                (values.text(option)).is_some_and(|word| word != option.default)
            }
            _ => values.flag(option),
        };
        let mut options = self.options.iter();
        options.any(|option| option.effect == Some(effect) && is_on(option))
    }

    /// Returns the options that name files which the engine writes, with the names given.
    pub fn written_files(
        &self,
        values: &EngineValues,
    ) -> impl Iterator<Item = (&'static EngineOption, String)> {
        let named = self.options.iter();
        let named = named.filter(|option| option.effect == Some(OptionEffect::WrittenFile));
        named.filter_map(|option| Some((option, values.text(option)?.to_owned())))
    }

    /// Returns the option that names the job's only file, if there is one.
    #[must_use]
    pub fn file_option(&self) -> Option<&'static EngineOption> {
        let mut options = self.options.iter();
        options.find(|option| option.effect == Some(OptionEffect::FileName))
    }

    /// Returns whether `name` means this engine.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| name.starts_with(alias))
    }

    /// Its own option of this name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static EngineOption> {
        self.options.iter().find(|option| option.name == name)
    }
}

/// Option of an engine, as the job language reads and documents it.
#[derive(Clone, Copy, Debug)]
pub struct EngineOption {
    /// Its name in job files.
    pub name: &'static str,
    /// Form of its value.
    pub kind: OptionKind,
    /// Value of a job that does not give it; empty for none.
    pub default: &'static str,
    /// One line, without a full stop, unit named.
    pub help: &'static str,
    /// A line of a job file that uses it.
    pub example: &'static str,
    /// Difference from fio's option of the same name; empty where there is none.
    pub different: &'static str,
    /// Effect that parts of a run other than the engine have to know.
    pub effect: Option<OptionEffect>,
    /// Its value opens something: no output shows it.
    pub is_secret: bool,
}

/// Form of an engine option's value.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// Bare, `=0` or `=1`.
    Flag,
    /// `0` or `1`.
    Bool,
    /// A whole number within bounds.
    Int {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// One of some words.
    Choice(&'static [OptionWord]),
    /// One of some words, or several with percentages: `write/70:zeroes/30`.
    Mix(&'static [OptionWord]),
    /// Any text.
    Text,
}

/// A word that an option may have for its value.
#[derive(Clone, Copy, Debug)]
pub struct OptionWord {
    /// The word.
    pub word: &'static str,
    /// Its meaning, in a few words.
    pub help: &'static str,
}

impl EngineOption {
    /// Creates an option that needs no value; off by default.
    #[must_use]
    pub const fn flag(name: &'static str, help: &'static str) -> Self {
        Self::new(name, OptionKind::Flag, "0", help, name)
    }

    /// Creates an option of 0 or 1; 0 by default.
    #[must_use]
    pub const fn boolean(name: &'static str, help: &'static str, example: &'static str) -> Self {
        Self::new(name, OptionKind::Bool, "0", help, example)
    }

    /// Creates an integer option within bounds, without a default.
    #[must_use]
    pub const fn int(
        name: &'static str,
        min: u64,
        max: u64,
        help: &'static str,
        example: &'static str,
    ) -> Self {
        Self::new(name, OptionKind::Int { min, max }, "", help, example)
    }

    /// Creates an option that accepts any text, without a default.
    #[must_use]
    pub const fn text(name: &'static str, help: &'static str, example: &'static str) -> Self {
        Self::new(name, OptionKind::Text, "", help, example)
    }

    /// Creates an option with a fixed set of words, without a default.
    #[must_use]
    pub const fn choice(
        name: &'static str,
        words: &'static [OptionWord],
        help: &'static str,
        example: &'static str,
    ) -> Self {
        Self::new(name, OptionKind::Choice(words), "", help, example)
    }

    /// Creates an option with a fixed set of words, of which it may mix several, without a default.
    #[must_use]
    pub const fn mix(
        name: &'static str,
        words: &'static [OptionWord],
        help: &'static str,
        example: &'static str,
    ) -> Self {
        Self::new(name, OptionKind::Mix(words), "", help, example)
    }

    const fn new(
        name: &'static str,
        kind: OptionKind,
        default: &'static str,
        help: &'static str,
        example: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            help,
            example,
            different: "",
            effect: None,
            is_secret: false,
        }
    }

    /// Returns the option with this default.
    #[must_use]
    pub const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// Returns the option with an effect that other parts of a run have to know.
    #[must_use]
    pub const fn effect(self, effect: OptionEffect) -> Self {
        Self {
            effect: Some(effect),
            ..self
        }
    }

    /// Returns the option with a value that no output shows.
    #[must_use]
    pub const fn secret(self) -> Self {
        Self {
            is_secret: true,
            ..self
        }
    }

    /// Returns the option with a difference from fio's.
    #[must_use]
    pub const fn different(self, different: &'static str) -> Self {
        Self { different, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_the_beginning_of_a_name() {
        let info = EngineInfo {
            aliases: &["aio"],
            ..EngineInfo::new("libaio", "")
        };
        assert!(info.is_called("libaio") && info.is_called("aio") && info.is_called("aio2"));
        assert!(!info.is_called("libaio2") && !info.is_called("ai"));
    }
}
