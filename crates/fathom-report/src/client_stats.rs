//! JSON report of several hosts in the schema of fio's client.
//!
//! Its keys, their order and number types are those that `fio --client --output-format=json` was
//! seen to print: the jobs of each host with its name and port, and at last their sum. fio prints
//! notes before the document and merges the global options of clients into one object, which then
//! has keys twice; here they are a list, one object a host, as fio's documentation of later
//! versions has it. Beyond fio's, the sum has percentiles, and the jobs' options include bare
//! flags.

use std::borrow::Cow;

use fathom_record::{HostRecord, JobRecord, Record};

use crate::document::{Frame, disk_objects, job, options};
use crate::group::{ReportedJob, reported_jobs};
use crate::json::{Object, Value};
use crate::rate::GroupRates;
use crate::{FIO_VERSION, extensions, unified};

/// Report of several hosts in the schema of fio's client.
///
/// [`add`](Self::add) the record of each host, in the order of the report, and take the document
/// with [`document`](Self::document). Of each host it keeps what it prints, some 10 KiB a job, and
/// of all together one set of histograms.
pub struct ClientStats {
    plus: bool,
    jobs: Vec<Object>,
    global_options: Vec<Object>,
    sum: Option<(JobRecord, u32)>,
    last: (String, u16),
}

impl ClientStats {
    /// Creates a report without hosts; with `plus`, it has histogram bins (`json+`).
    #[must_use]
    pub fn new(plus: bool) -> Self {
        Self {
            plus,
            jobs: Vec::new(),
            global_options: Vec::new(),
            sum: None,
            last: (String::new(), FIO_PORT),
        }
    }

    /// Adds the record of a host.
    pub fn add(&mut self, record: &Record) {
        self.last = record.hosts.first().map_or_else(
            || ("localhost".to_owned(), FIO_PORT),
            |host| (name_of(host).to_owned(), host.port.unwrap_or(FIO_PORT)),
        );
        self.global_options.push(options(&record.global_options));
        if let Some(options) = self.global_options.last_mut() {
            set_client(options, &self.last);
        }
        let entries = reported_jobs(record);
        let rates = GroupRates::of_groups(&entries);
        for entry in &entries {
            let rates = &rates[&entry.job.group_id];
            let mut out = job(Frame::Client, rates, entry, self.plus);
            set_client(&mut out, &self.last);
            out.set("fathom", extensions::job(entry, self.plus));
            self.jobs.push(out);
        }
        for job in record.jobs.iter().filter(|job| !job.display.hidden) {
            match &mut self.sum {
                None => self.sum = Some((job.clone(), 1)),
                Some((sum, members)) => {
                    sum.add(job);
                    sum.group_id = job.group_id;
                    *members += 1;
                }
            }
        }
    }

    /// Returns the document; `sum` is the sum of the records, for their time, disks and hosts.
    #[must_use]
    pub fn document(mut self, sum: &Record) -> String {
        let mut document = Object::new();
        document.set("fio version", FIO_VERSION);
        document.set("timestamp", sum.timestamp_ms / 1000);
        document.set("time", sum.time.as_str());
        match self.global_options.len() {
            1 => document.set("global options", options(&sum.global_options)),
            _ => document.set("global options", self.global_options),
        }
        if self.jobs.len() > 1
            && let Some((all, members)) = self.sum
        {
            self.jobs
                .push(all_clients(all, members, self.plus, &self.last));
        }
        document.set("client_stats", self.jobs);
        document.set("disk_util", disk_objects(sum));
        document.set("fathom", extensions::run(sum, self.plus));
        document.into_document()
    }
}

/// Returns the name by which the user has called a host, or its own.
fn name_of(host: &HostRecord) -> &str {
    host.client.as_deref().unwrap_or(&host.name)
}

fn set_client(out: &mut Object, (name, port): &(String, u16)) {
    out.set("hostname", name.as_str());
    out.set("port", Value::Integer((*port).into()));
}

/// Returns the element of the sum of all jobs. As in fio, it ends with the last host.
fn all_clients(mut sum: JobRecord, members: u32, plus: bool, last: &(String, u16)) -> Object {
    sum.name = "All clients".to_owned();
    sum.options.clear();
    sum.description = None;
    sum.block_lives = None;
    sum.steady_state = None;
    let mut entry = ReportedJob {
        job: Cow::Owned(sum),
        members,
        mixed: None,
    };
    unified::unify(&mut entry);
    let entries = [entry];
    let rates = GroupRates::of_groups(&entries);
    let [entry] = &entries;
    let mut out = job(Frame::AllClients, &rates[&entry.job.group_id], entry, plus);
    set_client(&mut out, last);
    out.set("fathom", extensions::job(entry, plus));
    out
}

/// Port of fio's server, for hosts that were reached otherwise.
const FIO_PORT: u16 = 8765;
