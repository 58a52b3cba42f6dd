//! An instance of the kernel's tracing for ourselves: which events go into its rings, and what has
//! come out of them.
//!
//! Nothing that others trace is touched: the instance has rings, filters and a clock of its own,
//! and is removed when this value is. One that was left behind by a process that was killed is
//! removed by the next.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use fathom_host::block_tree::BlockTree;
use fathom_sys::lease::Lease;
use fathom_sys::tracefs::{self, DetachedTracefs};

use crate::error::TraceError;
use crate::format::Format;
use crate::page::{Entry, PageLayout, entries};

/// See the module.
#[derive(Debug)]
pub(crate) struct Tracing {
    tracefs: PathBuf,
    instance: Lease,
    /// One for each processor.
    rings: Vec<File>,
    layout: PageLayout,
    page: Vec<u8>,
    /// Kept as long as `instance` is used.
    _mount: Option<DetachedTracefs>,
}

impl Tracing {
    /// A new instance that traces nothing yet; `ring_kib` for each processor.
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
        // The same on every processor, and the same as `clock_gettime` shows.
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

    /// What the records of an event look like (`block/block_rq_issue`); `None` where this kernel
    /// does not have it.
    pub(crate) fn format(&self, event: &str) -> Result<Option<Format>, TraceError> {
        let path = self.tracefs.join("events").join(event).join("format");
        if !path.exists() {
            return Ok(None);
        }
        let format = Format::parse(&read(&path)?);
        format.map(Some).ok_or_else(|| unknown_layout(&path))
    }

    /// Has an event recorded, all or what passes the kernel's filter.
    pub(crate) fn enable(&self, event: &str, filter: Option<&str>) -> Result<(), TraceError> {
        if let Some(filter) = filter {
            self.write(&format!("events/{event}/filter"), filter)?;
        }
        self.write(&format!("events/{event}/enable"), "1")
    }

    /// Has only what these threads do recorded, and those that they start.
    pub(crate) fn only_threads(&self, threads: &[u32]) -> Result<(), TraceError> {
        self.write("options/event-fork", "1")?;
        let list: Vec<String> = threads.iter().map(ToString::to_string).collect();
        self.write("set_event_pid", &list.join(" "))
    }

    /// Begins to record.
    pub(crate) fn start(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "1")
    }

    /// Ends it; what was recorded stays to be read.
    pub(crate) fn stop(&self) -> Result<(), TraceError> {
        self.write("tracing_on", "0")
    }

    /// Takes out what was recorded, processor by processor. Gives the bytes that the fullest ring
    /// had.
    pub(crate) fn drain(&mut self, take: &mut dyn FnMut(Entry<'_>)) -> Result<u64, TraceError> {
        let mut most = 0_u64;
        for ring in &mut self.rings {
            let mut taken = 0_u64;
            // So much at a time, or a ring that is filled as fast as it is read would keep the
            // others waiting.
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

    /// Records that were lost because a ring was full, since the beginning.
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
        // The kernel keeps an instance whose rings are open.
        self.rings.clear();
        // If it cannot be removed, the next one does it.
        let _left = fs::remove_dir(self.instance.path());
    }
}

/// Where tracefs is mounted, or one that is mounted for us alone.
fn found() -> Result<(PathBuf, Option<DetachedTracefs>), TraceError> {
    let mounts = BlockTree::default().mounts();
    let mut mounted = mounts.iter().filter(|mount| mount.filesystem == "tracefs");
    if let Some(mount) = mounted.next() {
        // Its folders are root's.
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

/// Instances of processes that were killed.
fn remove_abandoned(instances: &Path) {
    for left in Lease::abandoned(instances, NAME) {
        // One that is read by somebody stays.
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

/// The sum of what a ring's `stats` say was not kept.
fn lost_in(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(':'));
    let lost = lines.filter(|(name, _)| LOST.contains(name));
    lost.filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

fn read(path: &Path) -> Result<String, TraceError> {
    let mut bytes = vec![0; FORMAT_BYTES_MAX];
    // In one go: the kernel gives `header_page` to one call of `read(2)`, whatever its length.
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

/// Instances are called so, with a number behind.
const NAME: &str = "fathom-";

/// What is counted of a ring that was full: overwritten, not committed, not let in.
const LOST: [&str; 3] = ["overrun", "commit overrun", "dropped events"];

/// A description of an event is of a few thousand bytes, and its print format of some ten.
const FORMAT_BYTES_MAX: usize = 64 << 10;

/// What is taken from one ring before the others have their turn.
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
