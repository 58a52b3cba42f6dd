//! Sums of jobs: of a reporting group, and of the same job on several hosts.
//!
//! Counts, sums, extremes and histograms add exactly, in any order. Names and texts depend on the
//! order of the jobs, and so do the statistics of bandwidth and IOPS samples in their last digits.

use fathom_stats::Latency;

use crate::{
    CpuRecord, DirectionRecord, Display, JobRecord, LogRecord, PriorityRecord, StallRecord,
    SyncRecord, Tolerated, VerifyRecord,
};

impl JobRecord {
    /// Adds another job, as fio does for a group: counts are summed, a direction's runtime is the
    /// longest, the error is the first one; name, pid and units are those of the first job, options
    /// of the last, depth and latency target of the last job that ran.
    pub fn add(&mut self, job: &Self) {
        self.options.clone_from(&job.options);
        if job.depth_level.iter().any(|&ops| ops > 0) {
            self.iodepth = job.iodepth;
            self.latency_target = job.latency_target;
        }
        if self.description.is_none() {
            self.description.clone_from(&job.description);
        }
        self.add_errors(job);
        add_logs(&mut self.log, job.log);
        match (&mut self.scheduling, &job.scheduling) {
            (Some(own), Some(job)) => own.merge(job),
            (own @ None, Some(job)) => *own = Some(*job),
            (_, None) => {}
        }
        match (&mut self.block_lives, &job.block_lives) {
            (Some(own), Some(job)) => own.merge(job),
            (None, Some(job)) => self.block_lives = Some(job.clone()),
            (_, None) => {}
        }
        self.own_cost = self.own_cost.or(job.own_cost);
        add_stalls(&mut self.stalls, &job.stalls);
        self.asynchronous |= job.asynchronous;
        self.add_directions(job);
        add_syncs(&mut self.sync, &job.sync);
        self.runtime_ms = self.runtime_ms.saturating_add(job.runtime_ms);
        add_cpu(&mut self.cpu, &job.cpu);
        add_all(self.depth_level.each_mut(), job.depth_level);
        add_all(self.depth_submit.each_mut(), job.depth_submit);
        add_all(self.depth_complete.each_mut(), job.depth_complete);
        self.submissions = self.submissions.saturating_add(job.submissions);
        self.reapings = self.reapings.saturating_add(job.reapings);
        let repeated = self.repeated_requests.saturating_add(job.repeated_requests);
        self.repeated_requests = repeated;
        if let Some(resets) = job.zone_resets {
            let own = self.zone_resets.get_or_insert(0);
            *own = own.saturating_add(resets);
        }
    }

    fn add_errors(&mut self, job: &Self) {
        if self.error == 0 {
            self.error = job.error;
            self.error_text.clone_from(&job.error_text);
        }
        add_tolerated(&mut self.tolerated, job.tolerated);
        add_verify(&mut self.verify, job.verify.as_ref());
    }

    fn add_directions(&mut self, job: &Self) {
        let (own, others) = (&mut self.directions, &job.directions);
        for (own, other) in [
            (&mut own.read, &others.read),
            (&mut own.write, &others.write),
            (&mut own.trim, &others.trim),
        ] {
            own.add(self.priority, (other, job.priority), &self.display);
        }
    }
}

impl DirectionRecord {
    /// Adds the ops of another direction. Each comes with the I/O priority of its job's thread,
    /// which is that of its ops if they have none of their own.
    pub fn add(&mut self, priority: u16, (other, others): (&Self, u16), display: &Display) {
        // Before the latencies, from which ops without a priority of their own are taken.
        add_priorities((self, priority), (other, others), display.lat_percentiles);
        add_all(
            [
                &mut self.bytes,
                &mut self.ios,
                &mut self.short_ios,
                &mut self.dropped_ios,
            ],
            [other.bytes, other.ios, other.short_ios, other.dropped_ios],
        );
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        add_latency(&mut self.slat, other.slat.as_ref());
        add_latency(&mut self.clat, other.clat.as_ref());
        add_latency(&mut self.lat, other.lat.as_ref());
        add_latency(&mut self.lag, other.lag.as_ref());
        add_latency(&mut self.resp, other.resp.as_ref());
        add_latency(&mut self.queued, other.queued.as_ref());
        self.bandwidth.add_group(&other.bandwidth);
        self.iops.add_group(&other.iops);
    }
}

/// Adds the priorities of ops; those of a job without any have that of its thread.
fn add_priorities(group: (&mut DirectionRecord, u16), job: (&DirectionRecord, u16), lat: bool) {
    let (group, group_priority) = group;
    let (job, job_priority) = job;
    let have_any = !(group.priorities.is_empty() && job.priorities.is_empty());
    if !have_any && group_priority == job_priority {
        return;
    }
    if group.priorities.is_empty() {
        group.priorities = all_ops(group, group_priority, lat);
    }
    let of_job = match job.priorities.is_empty() {
        true => all_ops(job, job_priority, lat),
        false => job.priorities.clone(),
    };
    for entry in of_job {
        let own = group.priorities.iter_mut();
        match own.into_iter().find(|own| own.priority == entry.priority) {
            Some(own) => own.latency.merge(&entry.latency),
            None => group.priorities.push(entry),
        }
    }
}

/// Returns all ops of a direction as one entry of this priority.
fn all_ops(direction: &DirectionRecord, priority: u16, lat: bool) -> Vec<PriorityRecord> {
    let kept: Option<&Latency> = match lat {
        true => direction.lat.as_ref(),
        false => direction.clat.as_ref(),
    };
    let record = |latency: &Latency| PriorityRecord {
        priority,
        latency: latency.clone(),
    };
    kept.map(record).into_iter().collect()
}

fn add_latency(own: &mut Option<Latency>, job: Option<&Latency>) {
    match (own, job) {
        (Some(own), Some(job)) => own.merge(job),
        (own @ None, Some(job)) => *own = Some(job.clone()),
        (_, None) => {}
    }
}

fn add_syncs(own: &mut SyncRecord, job: &SyncRecord) {
    own.ios = own.ios.saturating_add(job.ios);
    own.lat.merge(&job.lat);
}

fn add_cpu(own: &mut CpuRecord, job: &CpuRecord) {
    add_all(
        [
            &mut own.user_us,
            &mut own.system_us,
            &mut own.wall_us,
            &mut own.context_switches,
            &mut own.major_faults,
            &mut own.minor_faults,
        ],
        [
            job.user_us,
            job.system_us,
            job.wall_us,
            job.context_switches,
            job.major_faults,
            job.minor_faults,
        ],
    );
}

fn add_verify(own: &mut Option<VerifyRecord>, job: Option<&VerifyRecord>) {
    let Some(job) = job else {
        return;
    };
    let own = own.get_or_insert_default();
    own.mismatches = own.mismatches.saturating_add(job.mismatches);
    own.compared = own.compared.saturating_add(job.compared);
    own.unknown = own.unknown.saturating_add(job.unknown);
    own.first.extend_from_slice(&job.first);
}

fn add_tolerated(own: &mut Option<Tolerated>, job: Option<Tolerated>) {
    match (own, job) {
        (Some(own), Some(job)) => {
            own.total = own.total.saturating_add(job.total);
            if own.first == 0 {
                own.first = job.first;
            }
        }
        (own @ None, job) => *own = job,
        (_, None) => {}
    }
}

fn add_logs(own: &mut Option<LogRecord>, job: Option<LogRecord>) {
    if let (Some(own), Some(job)) = (own.as_mut(), job) {
        add_all(
            [&mut own.lines_kept, &mut own.lines_dropped],
            [job.lines_kept, job.lines_dropped],
        );
    } else {
        *own = own.or(job);
    }
}

/// Adds stalls, in order of time.
fn add_stalls(own: &mut Vec<StallRecord>, job: &[StallRecord]) {
    own.extend_from_slice(job);
    own.sort_by_key(|stall| (stall.at_ns, stall.number));
}

fn add_all<const N: usize>(own: [&mut u64; N], add: [u64; N]) {
    for (own, add) in own.into_iter().zip(add) {
        *own = own.saturating_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LatencyTargetRecord;

    fn latency(values: &[u64]) -> Latency {
        let mut latency = Latency::new(true);
        latency.record_all(values);
        latency
    }

    fn direction(priorities: &[(u16, &[u64])]) -> DirectionRecord {
        let record = |&(priority, values): &(u16, &[u64])| PriorityRecord {
            priority,
            latency: latency(values),
        };
        DirectionRecord {
            priorities: priorities.iter().map(record).collect(),
            ..DirectionRecord::default()
        }
    }

    fn job(name: &str) -> JobRecord {
        let mut job = JobRecord {
            name: name.to_owned(),
            ..JobRecord::default()
        };
        job.directions.read.bytes = 1000;
        job.directions.read.runtime_ms = 10;
        job.runtime_ms = 10;
        job
    }

    #[test]
    fn the_rules_of_adding() {
        let mut first = job("a");
        first.pid = 1;
        let mut second = job("b");
        second.pid = 2;
        second.error = 5;
        second.description = Some("later".to_owned());
        second.options = vec![("rw".to_owned(), "read".to_owned())];
        second.directions.read.runtime_ms = 30;
        second.runtime_ms = 30;
        second.directions.read.bandwidth.record(7);
        second.tolerated = Some(Tolerated { total: 3, first: 5 });
        second.directions.read.clat = Some(latency(&[9]));
        second.depth_level[6] = 4;
        second.iodepth = 8;
        second.latency_target = Some(LatencyTargetRecord::default());
        first.add(&second);
        assert_eq!(
            (first.iodepth, first.latency_target),
            (8, second.latency_target)
        );
        assert_eq!((first.name.as_str(), first.pid, first.error), ("a", 1, 5));
        assert_eq!(first.options, second.options);
        assert_eq!(first.description, second.description);
        let read = &first.directions.read;
        assert_eq!(
            (read.bytes, read.runtime_ms, first.runtime_ms),
            (2000, 30, 40)
        );
        assert_eq!(read.clat.as_ref().map(|clat| clat.summary.count()), Some(1));
        assert_eq!((read.bandwidth.min(), first.depth_level[6]), (7, 4));
        assert_eq!(first.tolerated.map(|tolerated| tolerated.total), Some(3));
        first.add(&job("not run"));
        assert_eq!(first.iodepth, 8, "that of the last one that ran");
    }

    #[track_caller]
    fn check_merge(left: (&[(u16, &[u64])], u16), right: (&[(u16, &[u64])], u16), want: &str) {
        let mut group = direction(left.0);
        group.clat = Some(latency(&[5, 5]));
        let mut job = direction(right.0);
        job.clat = Some(latency(&[7]));
        group.add(left.1, (&job, right.1), &Display::default());
        let spell = |entry: &PriorityRecord| {
            let count = entry.latency.summary.count();
            format!("{:x}:{count}", entry.priority)
        };
        let got: Vec<String> = group.priorities.iter().map(spell).collect();
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn a_group_has_the_priorities_of_all_its_jobs() {
        check_merge((&[], 0), (&[], 0), "");
        check_merge((&[], 0x4000), (&[], 0x4000), "");
        check_merge((&[], 0x4000), (&[], 0x2003), "4000:2 2003:1");
        check_merge(
            (&[(0, &[1]), (0x2000, &[1, 2, 3])], 0),
            (&[], 0),
            "0:2 2000:3",
        );
        check_merge((&[], 0), (&[(0, &[1]), (0x2000, &[1])], 0), "0:3 2000:1");
        check_merge(
            (&[(0, &[1]), (1, &[1])], 0),
            (&[(0, &[1]), (2, &[1])], 0),
            "0:2 1:1 2:1",
        );
    }
}
