//! Random plans on real engines: every sum in the record, the report and the logs equals the sum
//! over the ops. `FATHOM_PLANS` sets their number; a plan that fails is printed as a job file with
//! its seed, and `FATHOM_PLAN_SEED` runs that one alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use fathom_core::{OutputFormat, Xoshiro256};
use fathom_engine::Registry;
use fathom_job::{Plan, Settings};
use fathom_record::{DirectionRecord, JobRecord, Record};
use fathom_report::render;
use fathom_run::run;
use fathom_setup::Session;
use fathom_setup::fixture;
use fathom_stats::Latency;
use serde_json::Value;

/// Parses a command line of jobs with the built-in engines.
#[track_caller]
fn run_of(words: &str) -> (Plan, Settings) {
    fixture::run_of(words, Registry::built_in().infos())
}

#[test]
fn every_sum_is_what_the_ops_make_it() {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse::<u64>().unwrap());
    let seeds = match number("FATHOM_PLAN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FATHOM_PLANS").unwrap_or(500),
    };
    let has_uring = has_uring();
    // Plans with rates wait, so that one at a time would leave processors idle.
    let threads = 2 * thread::available_parallelism().unwrap().get();
    let share = |first: usize| {
        let seeds = seeds.clone().skip(first).step_by(threads);
        seeds.filter(|seed| !holds(*seed, has_uring)).collect()
    };
    let failed: Vec<u64> = thread::scope(|scope| {
        let share = &share;
        let workers = (0..threads).map(|first| scope.spawn(move || share(first)));
        let workers: Vec<thread::ScopedJoinHandle<'_, Vec<u64>>> = workers.collect();
        let failed = workers.into_iter().map(|worker| worker.join().unwrap());
        failed.flatten().collect()
    });
    assert_eq!(failed, [0_u64; 0], "see above what these seeds expand to");
}

#[test]
fn sums_hold_with_a_clock_that_stands_still_between_ops() {
    let folder = Folder::new(u64::MAX - 1);
    for more in [
        ("rw", "randread"),
        ("bsrange", "1k-8k"),
        ("iodepth_batch", "4"),
    ] {
        let mut options = vec![
            ("clocksource", "gettimeofday".to_owned()),
            ("ioengine", "null".to_owned()),
            ("size", "1m".to_owned()),
            ("iodepth", "4".to_owned()),
            ("write_lat_log", folder.0.join("s").display().to_string()),
        ];
        options.push((more.0, more.1.to_owned()));
        let section = Section {
            name: "s".to_owned(),
            options,
            fixed_bytes: None,
            expected_bytes: Some(1 << 20),
        };
        check(&[section], &folder.0);
    }
}

/// Returns whether a seed's plan keeps every rule; prints the plan if not.
#[expect(clippy::print_stderr, reason = "a seed prints all it expands to")]
fn holds(seed: u64, has_uring: bool) -> bool {
    let folder = Folder::new(seed);
    let sections = Dice(Xoshiro256::new(seed)).plan(&folder.0, has_uring);
    let checked = catch_unwind(|| check(&sections, &folder.0));
    if checked.is_err() {
        let mut text = String::new();
        for section in &sections {
            writeln!(text, "[{}]", section.name).unwrap();
            for (option, value) in &section.options {
                writeln!(text, "{option}={value}").unwrap();
            }
        }
        eprintln!("seed {seed}:\n{text}");
    }
    checked.is_ok()
}

fn check(sections: &[Section], folder: &Path) {
    let words: Vec<String> = sections.iter().map(Section::words).collect();
    let record = run_line(&words.join(" "));
    for job in &record.jobs {
        let section = sections.iter().find(|it| it.name == job.name).unwrap();
        assert_eq!(job.error, 0, "{}: {:?}", job.name, job.error_text);
        for (index, direction) in job.directions.each().into_iter().enumerate() {
            let of_what = format!("{} {index}", job.name);
            latencies(&of_what, section, direction, job.asynchronous);
        }
        totals(section, job);
        logs(section, job, folder);
    }
    timelines(&record);
    report(&record);
}

/// Checks that the windows of each group add up to its jobs.
fn timelines(record: &Record) {
    let groups: BTreeSet<u32> = record.jobs.iter().map(|job| job.group_id).collect();
    for group in groups {
        for (index, name) in ["read", "write", "trim"].into_iter().enumerate() {
            let jobs = record.jobs.iter().filter(|job| job.group_id == group);
            let parts: Vec<_> = jobs.map(|job| job.directions.each()[index]).collect();
            let timeline = record
                .timelines
                .iter()
                .find(|timeline| timeline.group_id == Some(group) && timeline.direction == name);
            let of = format!("windows of group {group}, {name}");
            let total = timeline.map(|timeline| timeline.windows.total());
            let total = total.unwrap_or_default();
            let ios: u64 = parts.iter().map(|part| part.ios).sum();
            let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
            assert_eq!((total.ios, total.bytes), (ios, bytes), "{of}");
            let Some(timeline) = timeline else { continue };
            let Some(kind) = timeline.latency.as_deref() else {
                continue;
            };
            let latencies = parts.iter().filter_map(|part| match kind {
                "resp" => part.resp.as_ref(),
                "clat" => part.clat.as_ref(),
                _ => part.lat.as_ref(),
            });
            let mut all = Latency::new(true);
            latencies.for_each(|latency| all.merge(latency));
            assert_eq!(Some(timeline.windows.histogram()), all.histogram, "{of}");
            let bounds = (all.summary.min(), all.summary.max());
            assert_eq!((total.min_ns, total.max_ns), bounds, "{of}: bounds");
        }
    }
}

/// Checks that latencies count every op once, and that their parts add up.
fn latencies(of: &str, section: &Section, direction: &DirectionRecord, asynchronous: bool) {
    let ios = direction.ios;
    let ramped = section.has("ramp_time");
    for (name, latency) in [("clat", &direction.clat), ("lat", &direction.lat)] {
        let Some(latency) = latency else { continue };
        assert_eq!(latency.summary.count(), ios, "{of}: {name}");
    }
    for latency in [&direction.slat, &direction.clat, &direction.lat] {
        let Some(latency) = latency else { continue };
        let Some(histogram) = &latency.histogram else {
            continue;
        };
        assert_eq!(histogram.count(), latency.summary.count(), "{of}: buckets");
        let bins: u64 = histogram.bins().map(|(_, count)| count).sum();
        assert_eq!(bins, histogram.count(), "{of}: bins");
    }
    if let (Some(slat), true) = (&direction.slat, asynchronous) {
        let counted = slat.summary.count();
        assert!(counted <= ios && (ramped || counted == ios), "{of}: slat");
    }
    if let (Some(slat), Some(clat), Some(lat)) = (&direction.slat, &direction.clat, &direction.lat)
        && asynchronous
        && !ramped
    {
        assert_eq!(sum(lat), sum(slat) + sum(clat), "{of}: lat = slat + clat");
    }
    let by_priority: u64 = (direction.priorities.iter())
        .map(|each| each.latency.summary.count())
        .sum();
    // Without `lat_percentiles`, which no plan has beside `disable_clat`, clat decides.
    if !direction.priorities.is_empty() && direction.clat.is_some() {
        assert_eq!(by_priority, ios, "{of}: priorities");
    }
    if let Some(queued) = &direction.queued {
        assert!(ramped || queued.summary.count() == ios, "{of}: queued");
    }
}

/// Checks bytes and ops of all directions.
fn totals(section: &Section, job: &JobRecord) {
    let name = &job.name;
    let each = job.directions.each();
    let (ios, bytes) = each.iter().fold((0, 0), |(ios, bytes), direction| {
        (ios + direction.ios, bytes + direction.bytes)
    });
    let again: u64 = each.iter().map(|direction| direction.short_ios).sum();
    let issued: u64 = job.depth_level.iter().sum();
    if !section.has("ramp_time") {
        assert_eq!(issued, ios + again + job.sync.ios, "{name}: ops by depth");
    }
    let sync = &job.sync;
    assert_eq!(sync.lat.summary.count(), sync.ios, "{name}: syncs");
    if let Some(size) = section.fixed_bytes {
        assert_eq!(bytes, ios * size, "{name}: bytes of ops of one size");
    }
    if let Some(expected) = section.expected_bytes {
        assert_eq!(bytes, expected, "{name}: bytes of the whole job");
    }
}

/// Checks that log lines of single ops add up to the record.
fn logs(section: &Section, job: &JobRecord, folder: &Path) {
    let Some(log) = job.log else { return };
    // As in fio this leaves nothing to be logged.
    let is_silent = section.has("gtod_reduce");
    assert_eq!(
        log.lines_dropped, 0,
        "{}: the job waits for its log",
        job.name
    );
    let mut lines = 0;
    for kind in ["bw", "iops", "lat", "clat", "slat"] {
        let file = folder.join(format!("{}_{kind}.{}.log", job.name, job.number));
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        lines += text.lines().count() as u64;
        for (index, direction) in job.directions.each().into_iter().enumerate() {
            let rows = text.lines().map(|line| {
                let columns = line
                    .split(", ")
                    .take(4)
                    .map(|column| column.parse().unwrap());
                columns.collect::<Vec<u64>>()
            });
            let rows: Vec<_> = rows.filter(|row| row[2] == index as u64).collect();
            let of = format!("{}_{kind} {index}", job.name);
            // Nothing is submitted by itself with a synchronous engine, nor after a ramp if before.
            let all = kind != "slat" || job.asynchronous && !section.has("ramp_time");
            if all && !is_silent {
                assert_eq!(rows.len() as u64, direction.ios, "{of}: lines");
                let bytes: u64 = rows.iter().map(|row| row[3]).sum();
                assert_eq!(bytes, direction.bytes, "{of}: bytes");
            }
            let latency = match kind {
                "lat" => &direction.lat,
                "clat" => &direction.clat,
                "slat" => &direction.slat,
                _ => continue,
            };
            if let Some(latency) = latency {
                let logged: u64 = rows.iter().map(|row| row[1]).sum();
                assert_eq!(logged, sum(latency), "{of}: values");
            }
        }
    }
    assert_eq!(log.lines_kept, lines, "{}: lines kept", job.name);
}

/// Checks that the jobs in JSON, grouped or unified, add up to the record's.
fn report(record: &Record) {
    let json = render(record, OutputFormat::JsonPlus, 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    let mut shown: BTreeMap<&str, u64> = BTreeMap::new();
    for job in json["jobs"].as_array().unwrap() {
        let each = ["read", "write", "trim"].map(|direction| &job[direction]);
        let are_shown = !each[0].is_null();
        let mixed = &job["mixed"];
        if are_shown && !mixed.is_null() {
            for key in ["io_bytes", "total_ios", "short_ios", "drop_ios"] {
                let sum: u64 = each.iter().map(|direction| number(&direction[key])).sum();
                assert_eq!(number(&mixed[key]), sum, "mixed {key}");
            }
        }
        let blocks = if are_shown {
            each.to_vec()
        } else {
            vec![mixed]
        };
        for block in blocks {
            for key in ["io_bytes", "total_ios", "short_ios"] {
                *shown.entry(key).or_default() += number(&block[key]);
            }
            *shown.entry("clat").or_default() += number(&block["clat_ns"]["N"]);
            assert_eq!(
                number(&block["io_kbytes"]),
                number(&block["io_bytes"]) >> 10
            );
            for latency in ["slat_ns", "clat_ns", "lat_ns"] {
                let Some(bins) = block[latency]["bins"].as_object() else {
                    continue;
                };
                let sum: u64 = bins.values().map(number).sum();
                assert_eq!(sum, number(&block[latency]["N"]), "{latency}: bins");
            }
        }
    }
    let all = |figure: fn(&DirectionRecord) -> u64| -> u64 {
        let jobs = record.jobs.iter();
        jobs.flat_map(|job| job.directions.each().map(figure)).sum()
    };
    let clat = |direction: &DirectionRecord| {
        let clat = direction.clat.as_ref();
        clat.map_or(0, |clat| clat.summary.count())
    };
    let want = [
        ("clat", all(clat)),
        ("io_bytes", all(|direction| direction.bytes)),
        ("short_ios", all(|direction| direction.short_ios)),
        ("total_ios", all(|direction| direction.ios)),
    ];
    assert_eq!(shown, BTreeMap::from(want), "the report's sums");
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Exact below 2⁵¹ ns: the mean is rounded once.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "see above"
)]
fn sum(latency: &Latency) -> u64 {
    let summary = latency.summary;
    (summary.mean() * summary.count() as f64).round() as u64
}

fn run_line(line: &str) -> Record {
    let (plan, settings) = run_of(line);
    let mut session = Session {
        tell: &mut |_| {},
        stops: &|| 0,
        report_every: None,
        reports_asked: &|| 0,
        progress: None,
        jobs_fail_alone: false,
    };
    match run(&plan, &settings, &Registry::built_in(), &mut session) {
        Ok(record) => record,
        Err(error) => panic!("{error}"),
    }
}

#[expect(clippy::print_stderr, reason = "it says what is left out")]
fn has_uring() -> bool {
    let folder = Folder::new(u64::MAX);
    let at = folder.0.display();
    let words = format!("--name=t --ioengine=io_uring --size=4k --rw=read --directory={at}");
    let (plan, settings) = run_of(&words);
    let mut session = Session {
        tell: &mut |_| {},
        stops: &|| 0,
        report_every: None,
        reports_asked: &|| 0,
        progress: None,
        jobs_fail_alone: false,
    };
    let record = run(&plan, &settings, &Registry::built_in(), &mut session);
    let has = record.is_ok_and(|record| record.jobs[0].error == 0);
    if !has {
        eprintln!("skipped: plans with io_uring, which this kernel does not offer");
    }
    has
}

/// A folder that is removed when the plan has run.
struct Folder(PathBuf);

impl Folder {
    fn new(seed: u64) -> Self {
        let name = format!("fathom-accounting-{}-{seed}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone_is_fine = fs::remove_dir_all(&self.0);
    }
}

/// One section of a job file.
struct Section {
    name: String,
    options: Vec<(&'static str, String)>,
    /// Size of all ops, if they have one size.
    fixed_bytes: Option<u64>,
    /// Bytes that each clone moves, if known.
    expected_bytes: Option<u64>,
}

impl Section {
    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(known, _)| *known == option)
    }

    /// Disables a latency in some plans.
    fn disable(&mut self, dice: &mut Dice) {
        let options = ["disable_slat", "disable_clat", "disable_lat", "gtod_reduce"];
        if let Some(option) = options.get(usize::try_from(dice.below(30)).unwrap()) {
            self.options.push((option, "1".into()));
        }
    }

    fn words(&self) -> String {
        let mut words = format!("--name={}", self.name);
        for (option, value) in &self.options {
            write!(words, " --{option}={value}").unwrap();
        }
        words
    }
}

/// Draws plans.
struct Dice(Xoshiro256);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(words.len() as u64)).unwrap()]
    }

    fn plan(&mut self, folder: &Path, has_uring: bool) -> Vec<Section> {
        let grouped = self.one_in(3);
        let unified = self.of(&["", "", "mixed", "both"]);
        // Jobs that are reported as one must have the same percentiles.
        let percentiles = self.one_in(4);
        let sections = 1 + self.below(3);
        let sections = (0..sections).map(|number| {
            let mut section = self.section(number, folder, has_uring);
            if percentiles {
                section.options.push(("lat_percentiles", "1".into()));
                section.options.push(("slat_percentiles", "1".into()));
            } else {
                section.disable(self);
            }
            if grouped {
                section.options.push(("group_reporting", "1".into()));
            }
            if !unified.is_empty() {
                section
                    .options
                    .push(("unified_rw_reporting", unified.into()));
            }
            section
        });
        sections.collect()
    }

    fn section(&mut self, number: u64, folder: &Path, has_uring: bool) -> Section {
        let name = format!("s{number}");
        let engines = [
            "null", "psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "libaio",
        ];
        let engine = match self.below(10) {
            0..3 if has_uring => "io_uring",
            _ => self.of(&engines),
        };
        let mut directions = vec!["read", "write", "randread", "randwrite", "rw", "randrw"];
        if engine == "null" {
            directions.extend(["trim", "randtrim", "trimwrite"]);
        }
        let rw = self.of(&directions);
        let mut options = vec![
            ("ioengine", engine.to_owned()),
            ("rw", rw.to_owned()),
            ("directory", folder.display().to_string()),
        ];
        let (fixed, size) = self.sizes(&mut options);
        let ends = self.ends(&mut options);
        if self.one_in(2) {
            options.push(("iodepth", self.of(&["2", "4", "16"]).into()));
            if self.one_in(3) {
                options.push(("iodepth_batch", "4".into()));
                options.push(("iodepth_batch_complete_max", "4".into()));
            }
        }
        self.rest(&mut options, engine, rw);
        self.logs(&mut options, &folder.join(&name));
        Section {
            // Such a job trims each block and then writes it.
            expected_bytes: fixed.filter(|_| ends && rw != "trimwrite").map(|_| size),
            fixed_bytes: fixed,
            name,
            options,
        }
    }

    /// Draws sizes of ops and files; returns the size of all ops, if they have one, and the bytes
    /// of a pass.
    fn sizes(&mut self, options: &mut Vec<(&'static str, String)>) -> (Option<u64>, u64) {
        // Each of four files has room for the largest op.
        let kib = 32 * (1 + self.below(8));
        options.push(("size", format!("{kib}k")));
        if self.one_in(4) {
            options.push(("nrfiles", self.of(&["2", "4"]).into()));
        }
        let fixed = match self.below(6) {
            0 => {
                options.push(("bsrange", "1k-8k".into()));
                None
            }
            1 => {
                options.push(("bssplit", "1k/30:4k/50:8k/20".into()));
                None
            }
            2 => {
                options.push(("bs", "4k,8k,2k".into()));
                None
            }
            3 => {
                options.push(("bs", "512".into()));
                Some(512)
            }
            _ => {
                options.push(("bs", "4k".into()));
                Some(4096)
            }
        };
        (fixed, kib << 10)
    }

    /// Draws what ends a job, and returns whether that is its size alone.
    fn ends(&mut self, options: &mut Vec<(&'static str, String)>) -> bool {
        match self.below(6) {
            0 => options.push(("number_ios", (1 + self.below(40)).to_string())),
            1 => options.push(("io_size", format!("{}k", 4 + self.below(300)))),
            2 => {
                options.push(("time_based", "1".into()));
                options.push(("runtime", "4ms".into()));
                if self.one_in(2) {
                    options.push(("ramp_time", "2ms".into()));
                }
            }
            3 => options.push(("loops", "2".into())),
            _ => return true,
        }
        false
    }

    fn rest(&mut self, options: &mut Vec<(&'static str, String)>, engine: &str, rw: &str) {
        let clones = self.below(3) + 1;
        options.push(("numjobs", clones.to_string()));
        if self.one_in(4) {
            options.push(("rate_iops", (20_000 + self.below(80_000)).to_string()));
        }
        if self.one_in(5) {
            options.push(("io_submit_mode", "offload".into()));
        }
        if rw.contains("write") && self.one_in(4) {
            options.push(("fsync", self.of(&["1", "3", "7"]).into()));
        }
        if ["libaio", "io_uring"].contains(&engine) && self.one_in(4) {
            options.push(("cmdprio_percentage", "50".into()));
            options.push(("cmdprio_class", "2".into()));
            options.push(("cmdprio", "3".into()));
        }
        if self.one_in(6) {
            options.push(("thinktime", "100us".into()));
            options.push(("thinktime_blocks", "8".into()));
        }
    }

    fn logs(&mut self, options: &mut Vec<(&'static str, String)>, prefix: &Path) {
        if !self.one_in(2) {
            return;
        }
        for option in ["write_lat_log", "write_bw_log", "write_iops_log"] {
            if self.one_in(2) {
                options.push((option, prefix.display().to_string()));
            }
        }
        options.push(("log_full", "wait".into()));
        if self.one_in(3) {
            options.push(("log_offset", "1".into()));
        }
    }
}
