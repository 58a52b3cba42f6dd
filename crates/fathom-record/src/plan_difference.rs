//! Comparison of the plans of ranks.

use crate::{HostRecord, JobRecord, Record};

/// Returns the first difference between the plan of a sum and that of another rank, in words. Jobs
/// are compared by number; one may lack what it leaves to other ranks.
pub(crate) fn difference(sum: &Record, record: &Record) -> Option<String> {
    if let Some(what) = option_difference(&sum.global_options, &record.global_options) {
        return Some(format!("[global]: {what}"));
    }
    let own = record.hosts.first()?;
    let common = |job: &JobRecord| Some(&sum.jobs[position(&sum.jobs, job.number).ok()?]);
    for job in &record.jobs {
        let what = match common(job) {
            Some(sum) => job_difference(sum, job),
            // All before must know of it.
            None if is_left_out(&sum.hosts, &job.name) => None,
            None => Some(unknown_job(sum, record, job)),
        };
        if what.is_some() {
            return what;
        }
    }
    let mut others = sum.jobs.iter();
    let lacks = |job: &&JobRecord| {
        position(&record.jobs, job.number).is_err() && !own.left_out.contains(&job.name)
    };
    others.find(lacks).map(|job| unknown_job(sum, record, job))
}

/// Returns whether all hosts say that other ranks have a job.
pub(crate) fn is_left_out(hosts: &[HostRecord], job: &String) -> bool {
    hosts.iter().all(|host| host.left_out.contains(job))
}

/// Returns the place of the job of a number among jobs, which are in order of theirs.
pub(crate) fn position(jobs: &[JobRecord], number: u32) -> Result<usize, usize> {
    jobs.binary_search_by_key(&number, |job| job.number)
}

/// Names a job that one of two plans lacks.
fn unknown_job(sum: &Record, record: &Record, job: &JobRecord) -> String {
    let (own, others) = (record.jobs.len(), sum.jobs.len());
    match own == others {
        true => format!("job `{}` is not in both", job.name),
        false => format!("{own} jobs instead of {others}"),
    }
}

/// Returns the first difference between two jobs of one number.
fn job_difference(sum: &JobRecord, job: &JobRecord) -> Option<String> {
    if sum.name != job.name {
        return Some(format!("job `{}` instead of `{}`", job.name, sum.name));
    }
    let what = option_difference(&sum.options, &job.options);
    if let Some(what) = what {
        return Some(format!("job `{}`: {what}", job.name));
    }
    let place = |job: &JobRecord| (job.group_id, job.group_reporting);
    let same = place(sum) == place(job) && sum.rw == job.rw && sum.engine == job.engine;
    (!same).then(|| format!("job `{}` does other work", job.name))
}

/// Options as typed.
type Typed = [(String, String)];

fn option_difference(sum: &Typed, own: &Typed) -> Option<String> {
    if sum == own {
        return None;
    }
    let spelled = |option: Option<&(String, String)>| match option {
        Some((name, value)) if value.is_empty() => format!("`{name}`"),
        Some((name, value)) => format!("`{name}={value}`"),
        None => "nothing".to_owned(),
    };
    let longest = sum.len().max(own.len());
    let at = (0..longest).find(|&at| sum.get(at) != own.get(at))?;
    Some(format!(
        "{} instead of {}",
        spelled(own.get(at)),
        spelled(sum.get(at))
    ))
}
