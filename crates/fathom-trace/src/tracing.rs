//! A private tracing instance of the kernel: enabled events, filters and rings.
//!
//! Other users of tracing are not disturbed: an instance has its own rings, filters and clock.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use fathom_host::block_tree::BlockTree;
use fathom_sys::lease::Lease;
use fathom_sys::tracefs::{self, DetachedTracefs};

use crate::error::TraceError;
use crate::format::Format;
use crate::page::{PageEntry, PageLayout, entries};

/// A tracing instance, removed on drop.
///
/// Create it stopped, [`enable`](Self::enable) events, then [`start`](Self::start) and
/// [`drain`](Self::drain) until [`stop`](Self::stop). An instance left behind by a killed process
/// is removed by the next one. The rings take kernel memory: `ring_kib` for each CPU.
#[derive(Debug)]
pub(crate) struct Tracing {
    tracefs: PathBuf,
    instance: Lease,
    /// One per CPU.
    rings: Vec<File>,
    layout: PageLayout,
    page: Vec<u8>,
    /// Must outlive `instance`.
    _mount: Option<DetachedTracefs>,
}

impl Tracing {
    /// Creates an instance that records nothing yet, with rings of `ring_kib` per CPU.
    pub(crate) fn new(ring_kib: u64) -> Result<Self, TraceError> {
        let (tracefs, mount) = found()?;
        let instances = tracefs.join("instances");
        remove_abandoned(&instances);
        let header = read(&tracefs.join("events/header_page"))?;
        let layout = PageLayout::parse(&header)
            .ok_or_else(|| unknown_layout(&tracefs.join("events/header_page")))?;
        let instance = Lease::new_folder(&instances, NAME)
            .map_err(|error| TraceError::tracefs(&instances, error))?;
        let mut tracing = Self {
            tracefs,
            instance,
            rings: Vec::new(),
            layout,
            page: vec![0; layout.bytes],
            _mount: mount,
        };
        tracing.write("tracing_on", "0")?;
        // Comparable between CPUs, and with `clock_gettime`.
        tracing.write("trace_clock", "mono")?;
        tracing.write("buffer_size_kb", &ring_kib.to_string())?;
        for processor in folders(&tracing.instance.path().join("per_cpu")) {
            let ring = processor.join("trace_pipe_raw");
            let opened =
                tracefs::open_ring(&ring).map_err(|error| TraceError::tracefs(&ring, error))?;
            tracing.rings.push(opened);
        }
        Ok(tracing)
    }

    /// Reads the record layout of an event (`block/block_rq_issue`); `None` if this kernel lacks
    /// it.
    pub(crate) fn format(&self, event: &str) -> Result<Option<Format>, TraceError> {
        let path = self.tracefs.join("events").join(event).join("format");
        if !path.exists() {
            return Ok(None);
        }
        let format = Format::parse(&read(&path)?);
        format.map(Some).ok_or_else(|| unknown_layout(&path))
    }

    /// Enables an event, optionally with a filter.
    pub(crate) fn enable(&self, event: &str, filter: Option<&str>) -> Result<(), TraceError> {
        if let Some(filter) = filter {
            self.write(&format!("events/{event}/filter"), filter)?;
        }
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Restricts recording to these threads and those that they start.
    pub(crate) fn only_threads(&self, threads: &[u32]) -> Result<(), TraceError> {
        self.write("options/event-fork", "1")?;
        let list: Vec<String> = threads.iter().map(ToString::to_string).collect();
        self.write("set_event_pid", &list.join(" "))
    }

    /// Starts recording.
    pub(crate) fn start(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "1")
    }

    /// Stops recording; the rings can still be drained.
    pub(crate) fn stop(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "0")
    }

    /// Drains the rings, one CPU after another. Returns the bytes taken from the fullest one.
    pub(crate) fn drain(&mut self, take: &mut dyn FnMut(PageEntry<'_>)) -> Result<u64, TraceError> {
        let mut most = 0_u64;
        for ring in &mut self.rings {
            let mut taken = 0_u64;
            // Bounded, or a ring that fills as fast as it is read would starve the others.
            while taken < TURN_BYTES {
                let bytes = match ring.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(TraceError::tracefs(self.instance.path(), error)),
                };
                entries(&self.page[..bytes], self.layout).for_each(&mut *take);
                taken += bytes as u64;
            }
            most = most.max(taken);
        }
        Ok(most)
    }

    /// Returns the records lost so far because a ring was full.
    pub(crate) fn lost(&self) -> u64 {
        let processors = folders(&self.instance.path().join("per_cpu"));
        let stats = processors
            .iter()
            .filter_map(|processor| fs::read_to_string(processor.join("stats")).ok());
        stats.map(|stats| lost_in(&stats)).sum()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TraceError> {
        let path = self.instance.path().join(name);
        fs::write(&path, text).map_err(|error| TraceError::tracefs(&path, error))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // The kernel does not remove an instance whose rings are open.
        self.rings.clear();
        // If this fails, the next trace removes it.
        let _left = fs::remove_dir(self.instance.path());
    }
}

/// Checks that this process may trace, by creating a tracing instance and removing it.
///
/// # Errors
/// The reason why it may not.
pub fn check_permission() -> Result<(), TraceError> {
    Tracing::new(RING_KIB_MIN).map(drop)
}

/// Returns the mount point of tracefs, or mounts a detached one.
fn found() -> Result<(PathBuf, Option<DetachedTracefs>), TraceError> {
    let mounts = BlockTree::default().mounts();
    let mut mounted = mounts.iter().filter(|mount| mount.filesystem == "tracefs");
    if let Some(mount) = mounted.next() {
        // Fails early for users who may not trace.
        fs::read_dir(mount.point.join("instances"))
            .map_err(|error| TraceError::tracefs(&mount.point, error))?;
        return Ok((mount.point.clone(), None));
    }
    let own = DetachedTracefs::new().map_err(|source| match source.kind() {
        ErrorKind::PermissionDenied => TraceError::NotPermitted {
            path: "tracefs".into(),
            source,
        },
        _ => TraceError::NoTracefs { source },
    })?;
    Ok((own.path(), Some(own)))
}

/// Removes instances of killed processes.
fn remove_abandoned(instances: &Path) {
    for left in Lease::abandoned(instances, NAME) {
        // An instance that is being read stays.
        let _busy = fs::remove_dir(left.path());
    }
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut folders: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    folders.sort_unstable();
    folders
}

/// Sums the lost records of a ring's `stats`.
fn lost_in(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(':'));
    let lost = lines.filter(|(name, _)| LOST.contains(name));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

fn read(path: &Path) -> Result<String, TraceError> {
    let mut bytes = vec![0; FORMAT_BYTES_MAX];
    // Into one large buffer: the kernel returns `header_page` to a single `read(2)` only.
    let length = File::open(path).and_then(|mut file| {
        let mut length = 0;
        loop {
            match file.read(&mut bytes[length..])? {
                0 => return Ok(length),
                more => length += more,
            }
        }
    });
    let length = length.map_err(|error| TraceError::tracefs(path, error))?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

fn unknown_layout(path: &Path) -> TraceError {
    TraceError::UnknownLayout {
        path: path.to_path_buf(),
    }
}

/// Smallest ring, a page on most machines.
const RING_KIB_MIN: u64 = 4;

/// Prefix of instance names, followed by a number.
const NAME: &str = "fathom-";

/// Counters of lost records in `stats`.
const LOST: [&str; 3] = ["overrun", "commit overrun", "dropped events"];

/// Size limit of a layout file. The largest have a few tens of thousands of bytes.
const FORMAT_BYTES_MAX: usize = 64 << 10;

/// Bytes drained from one ring before the next one's turn.
const TURN_BYTES: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_ring_lost_is_summed() {
        let stats = "entries: 9\noverrun: 2\ncommit overrun: 3\nbytes: 7\n\
                     oldest event ts:     0.5\ndropped events: 4\nread events: 11\n";
        assert_eq!(lost_in(stats), 9);
        assert_eq!(lost_in(""), 0);
    }
}
