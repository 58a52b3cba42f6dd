//! Generation maps of verified files, shared by all jobs of a run that work on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_core::Direction;
use fathom_host::FileIdentity;
use fathom_host::target_kind::{FileSystemProbe, TargetKind};
use fathom_workload::{GenerationMap, MapLayout, Verifier, VerifyConfig};

use super::pattern::{draws_in, uses};
use super::{FileSetup, JobSetup};

/// Gives the jobs that verify, or write what another one verifies, the maps of their files.
///
/// A job that does not verify is tracked too where it shares a file: otherwise its writes would be
/// taken for corruption of the others' data.
pub(super) fn share(setups: &mut [JobSetup], probe: &dyn FileSystemProbe) {
    if setups.iter().all(|setup| setup.worker.verify.is_none()) {
        return;
    }
    let identities: Vec<_> = setups
        .iter()
        .map(|setup| identities(setup, probe))
        .collect();
    let maps = maps(setups, &identities);
    for (setup, identities) in setups.iter_mut().zip(&identities) {
        let files = identities.iter().map(|file| maps.get(file).cloned());
        let files: Vec<_> = files.collect();
        if files.iter().any(Option::is_some) {
            setup.worker.generations = files;
        }
        let on_device = |kind| matches!(kind, TargetKind::Block { .. });
        if let Some(verify) = &mut setup.worker.verify {
            // A device may return anything for what was trimmed; of a file it is cut out. A job
            // that trims what it wrote is asked to look at it.
            let promised = !setup.files.iter().any(|file| on_device(file.found));
            verify.zeros_after_trim &= promised || verify.trims.is_some();
        }
    }
}

/// Returns the identities of a job's files, under whatever names it has them; none if no map tracks
/// its ops.
fn identities(setup: &JobSetup, probe: &dyn FileSystemProbe) -> Vec<FileIdentity> {
    let is_local = setup.has_local_files();
    let identity = |file: &FileSetup| match is_local {
        true => probe.identity(&file.path),
        false => FileIdentity::Named((&file.path).into()),
    };
    let files = setup.files.iter().filter(|_| is_tracked(setup));
    files.map(identity).collect()
}

/// Returns the maps of all files that a job writes and a job verifies.
fn maps<'a>(
    setups: &[JobSetup],
    identities: &'a [Vec<FileIdentity>],
) -> BTreeMap<&'a FileIdentity, Arc<GenerationMap>> {
    let mut users: BTreeMap<&FileIdentity, FileUsers> = BTreeMap::new();
    for (setup, files) in setups.iter().zip(identities) {
        for (number, file) in files.iter().enumerate() {
            users.entry(file).or_default().add(setup, number);
        }
    }
    let maps = users.into_iter();
    maps.filter_map(|(file, users)| Some((file, users.map()?)))
        .collect()
}

/// Returns whether the map of a file tracks this job's ops.
fn is_tracked(setup: &JobSetup) -> bool {
    let options = &setup.job.options;
    options.moves_data() && (setup.worker.verify.is_some() || changes(setup))
}

fn changes(setup: &JobSetup) -> bool {
    let options = &setup.job.options;
    uses(options, Direction::Write) || uses(options, Direction::Trim)
}

/// Jobs on one file.
#[derive(Default)]
struct FileUsers {
    /// Positions of the jobs in the run.
    jobs: Vec<u32>,
    /// Map for all writers so far.
    layout: Option<MapLayout>,
    /// Format of the first job that verifies.
    format: Option<Format>,
    formats_differ: bool,
    /// A job saves a state of the writes that a sync covers.
    by_sync: bool,
}

impl FileUsers {
    fn add(&mut self, setup: &JobSetup, file: usize) {
        let format = format(setup);
        let verification = &setup.job.options.verification;
        self.by_sync |= verification.by_sync && verification.saves_state;
        if !self.jobs.contains(&setup.place.number) {
            self.jobs.push(setup.place.number);
        }
        if changes(setup) {
            let interval = format.as_ref().map_or(0, |format| format.interval);
            let layout = setup.worker.map_layout(file, interval);
            self.layout = Some(self.layout.map_or(layout, |all| all.merged(&layout)));
        }
        match (&self.format, format) {
            (Some(first), Some(other)) => self.formats_differ |= *first != other,
            (None, format) => self.format = format,
            (Some(_), None) => {}
        }
    }

    /// Returns the map; `None` if there is nothing to verify, or nothing changes.
    fn map(self) -> Option<Arc<GenerationMap>> {
        let map = GenerationMap::new(self.layout.filter(|_| self.format.is_some())?);
        let map = match self.by_sync {
            true => map.with_syncs(),
            false => map,
        };
        Some(Arc::new(match self.jobs.len() {
            1 => map,
            _ => map.shared(!self.formats_differ),
        }))
    }
}

/// Format of a job's verified blocks.
#[derive(PartialEq)]
struct Format {
    config: VerifyConfig,
    /// Bytes from one header to the next.
    interval: u32,
    /// Bytes after which a pattern begins again.
    period: u32,
}

/// Returns the format of a job's verified blocks.
fn format(setup: &JobSetup) -> Option<Format> {
    let verify = setup.worker.verify.as_ref()?;
    let pattern = &setup.worker.pattern;
    let sizes = match draws_in(&setup.job.options, Direction::Write) {
        true => &pattern.sizes.write,
        false => &pattern.sizes.read,
    };
    let verifier = Verifier::new(verify, sizes, pattern.seed).ok()?;
    // What does not show in a block is the job's own affair.
    let config = VerifyConfig {
        read_back: false,
        zeros_after_trim: false,
        backlog: None,
        trims: None,
        thread: 0,
        ..verify.clone()
    };
    Some(Format {
        config,
        interval: verifier.interval(),
        period: verifier.period(),
    })
}

#[cfg(test)]
mod tests {
    use fathom_host::target_kind::HostFileSystem;

    use super::super::*;
    use crate::fixture::FakeFiles;
    use crate::testing::plan;

    /// Checks the map of each job's first file, as a number that jobs with the same map share.
    #[track_caller]
    fn check(words: &str, want: &[Option<usize>]) {
        let setups = translate(&plan(words), &FakeFiles::default(), &mut || 1).setups;
        let maps: Vec<_> = setups
            .iter()
            .map(|setup| setup.worker.generations.first().cloned().flatten())
            .collect();
        let number = |map: &_| {
            let same = |other: &Option<Arc<_>>| {
                other.as_ref().is_some_and(|other| Arc::ptr_eq(other, map))
            };
            maps.iter().position(same).unwrap()
        };
        let got: Vec<_> = maps.iter().map(|map| map.as_ref().map(number)).collect();
        assert_eq!(got, want, "{words}");
    }

    #[test]
    fn jobs_on_a_file_share_its_map_if_one_verifies() {
        let on = |rest: &str| format!("--size=1m --filename=f {rest}");
        check(&on("--name=a --rw=write"), &[None]);
        check(&on("--name=a --rw=write --verify=md5"), &[Some(0)]);
        check(&on("--name=a --rw=read --verify=md5"), &[None]);
        check(
            &on("--name=a --rw=write --verify=md5 --numjobs=2"),
            &[Some(0), Some(0)],
        );
        check(
            &on("--name=a --rw=write --verify=md5 --name=b --size=1m --filename=f --rw=randwrite"),
            &[Some(0), Some(0)],
        );
        check(
            &on("--name=a --rw=write --name=b --size=1m --filename=f --rw=read --verify=md5"),
            &[Some(0), Some(0)],
        );
        check(
            "--name=a --size=1m --filename=f --rw=write --verify=md5 \
             --name=b --size=1m --filename=g --rw=write",
            &[Some(0), None],
        );
        check(
            &on("--name=a --rw=write --verify=md5 --ioengine=null"),
            &[None],
        );
    }

    #[test]
    fn a_file_with_two_names_has_one_map() {
        let words = "--size=1m --rw=write --verify=md5 --name=a --filename=f --name=b --size=1m \
                     --rw=write --verify=md5 --filename=./f";
        let setups = translate(&plan(words), &HostFileSystem, &mut || 1).setups;
        let map = |job: usize| setups[job].worker.generations[0].as_ref().expect("a map");
        assert!(Arc::ptr_eq(map(0), map(1)));
    }
}
