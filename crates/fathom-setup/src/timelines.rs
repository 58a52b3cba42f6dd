//! Timelines of the reporting groups: shared by their jobs before a run, recorded after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_core::{Direction, Tick};
use fathom_record::TimelineRecord;
use fathom_workload::{GroupTimeline, WorkerConfig};

use crate::translate::JobSetup;

/// Gives the jobs of each reporting group a timeline; of many groups, all jobs share one.
pub(crate) fn share(setups: &mut [JobSetup]) {
    let mut members: BTreeMap<u32, Vec<&WorkerConfig>> = BTreeMap::new();
    for setup in setups.iter().filter(|setup| has_timeline(setup)) {
        let group = members.entry(setup.place.group).or_default();
        group.push(&setup.worker);
    }
    let timelines: BTreeMap<u32, Arc<GroupTimeline>> = if members.len() > GROUPS_MAX {
        let all: Vec<&WorkerConfig> = members.values().flatten().copied().collect();
        let all = Arc::new(GroupTimeline::new(&all));
        members
            .keys()
            .map(|group| (*group, Arc::clone(&all)))
            .collect()
    } else {
        let own = |jobs: &Vec<&WorkerConfig>| Arc::new(GroupTimeline::new(jobs));
        members
            .iter()
            .map(|(group, jobs)| (*group, own(jobs)))
            .collect()
    };
    for setup in setups.iter_mut().filter(|setup| has_timeline(setup)) {
        setup.worker.timeline = timelines.get(&setup.place.group).cloned();
    }
}

/// Returns the timelines of a run that has ended: those of directions with ops.
#[must_use]
pub fn recorded(setups: &[JobSetup]) -> Vec<TimelineRecord> {
    let mut timelines: Vec<(Option<u32>, &GroupTimeline)> = Vec::new();
    for setup in setups {
        let Some(timeline) = setup.worker.timeline.as_deref() else {
            continue;
        };
        match timelines
            .iter_mut()
            .find(|(_, known)| std::ptr::eq(*known, timeline))
        {
            Some((group, _)) if *group != Some(setup.place.group) => *group = None,
            Some(_) => {}
            None => timelines.push((Some(setup.place.group), timeline)),
        }
    }
    let began = timelines
        .iter()
        .filter_map(|(_, timeline)| timeline.began());
    let began = began.min().unwrap_or(Tick::ZERO);
    let groups = timelines.iter();
    groups
        .flat_map(|(group, timeline)| of_group(*group, timeline, began))
        .collect()
}

/// Returns the timelines of a group in a run that began to measure at `began`.
fn of_group(group: Option<u32>, timeline: &GroupTimeline, began: Tick) -> Vec<TimelineRecord> {
    let of_direction = |direction| {
        let windows = timeline.windows(direction)?;
        let latency = timeline.latency(direction);
        (!windows.windows.is_empty()).then(|| TimelineRecord {
            group_id: group,
            direction: Direction::name(direction).to_owned(),
            latency: latency.map(|latency| latency.name().to_owned()),
            start_ns: (timeline.began().unwrap_or(began) - began).get(),
            windows,
        })
    };
    Direction::ALL
        .into_iter()
        .filter_map(of_direction)
        .collect()
}

/// Returns whether a job's ops are counted in the sums of its group.
fn has_timeline(setup: &JobSetup) -> bool {
    let options = &setup.job.options;
    options.stats && options.engine.performs_io() && setup.early_end.is_none()
}

/// Groups that have timelines of their own: with two directions, they take 224 MiB at most.
const GROUPS_MAX: usize = 16;
