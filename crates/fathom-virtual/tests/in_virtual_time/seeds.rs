//! Random plans on random machines with random faults, some ended early: each ends, accounts for
//! every op once, and repeats exactly. `FATHOM_SIM_SEEDS` sets their number; a seed that fails
//! prints its expansion.

use std::cell::Cell;
use std::fmt::Write as _;
use std::panic::catch_unwind;

use crate::common::on_watched;
use fathom_core::Xoshiro256;
use fathom_record::{JobRecord, Record};

#[test]
fn every_seed_ends_accounts_for_all_ops_and_repeats() {
    let seeds = std::env::var("FATHOM_SIM_SEEDS").map_or(200, |text| text.parse().unwrap());
    let failed: Vec<u64> = (0..seeds).filter(|seed| !holds(*seed)).collect();
    assert_eq!(failed, [0_u64; 0], "see above what these seeds expand to");
}

/// Returns true if a seed holds; prints its plan if not.
#[expect(clippy::print_stderr, reason = "a seed prints all it expands to")]
fn holds(seed: u64) -> bool {
    let mut dice = Dice(Xoshiro256::new(seed));
    let (machine, words) = (dice.machine(), dice.plan());
    let looks = if dice.one_in(8) {
        dice.below(6)
    } else {
        u64::MAX
    };
    let checked = catch_unwind(|| check(&machine, &words, looks));
    if checked.is_err() {
        let ended = match looks {
            u64::MAX => String::new(),
            looks => format!("told to stop when it had looked around {looks} times\n"),
        };
        eprintln!("seed {seed}:\n{machine}\nfathom run --machine … {words}\n{ended}");
    }
    checked.is_ok()
}

fn check(machine: &str, words: &str, looks: u64) {
    let first = run(machine, words, looks);
    for job in &first.jobs {
        accounts(job, words.contains("--ramp_time"));
    }
    let again = run(machine, words, looks);
    let [first, again] = [first, again].map(|it| serde_json::to_string(&it).unwrap());
    assert_eq!(first, again);
}

/// Runs a plan that is told to stop after a number of checks.
fn run(machine: &str, words: &str, looks: u64) -> Record {
    let looked = Cell::new(0);
    let stops = || u32::from(looked.replace(looked.get() + 1) >= looks);
    on_watched(machine, words, &mut |_| {}, &stops)
}

/// Checks that the ops issued are those reported, done or failed. The simulation itself asserts
/// that each completes once.
fn accounts(job: &JobRecord, ramped: bool) {
    let done: u64 = job.directions.each().iter().map(|each| each.ios).sum();
    let tolerated = job.tolerated.map_or(0, |tolerated| tolerated.total);
    let issued: u64 = job.depth_level.iter().sum();
    let named = format!(
        "{}: {issued} issued, {done} done, {tolerated} gone past",
        job.name
    );
    // What was in flight when a ramp ended was issued before anything counted.
    let before = if ramped { u64::from(job.iodepth) } else { 0 };
    assert!(done <= issued + before, "{named}");
    // What was in flight beside the op that ended a job is counted too; rests of short transfers
    // are issued again.
    let again: u64 = job
        .directions
        .each()
        .iter()
        .map(|each| each.short_ios)
        .sum();
    let failed = u64::from(job.iodepth) * u64::from(job.error != 0);
    let slack = tolerated + again + failed + job.sync.ios;
    assert!(issued <= done + slack, "{named}, {slack} may differ");
}

/// Draws plans and machines.
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

    fn machine(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(3) {
            text += "[host]\npiece_us = 20\nwake_us = 5\nwake_each_us = 1\nwake_spread_us = 40\n";
        }
        text += "[[device]]\nnames = [\"*\"]\ncapacity_gib = 1\n";
        let model = self.of(&["constant", "distribution", "hdd", "ssd", "array"]);
        writeln!(text, "model = \"{model}\"\n[device.{model}]").unwrap();
        if model == "array" {
            text += "members = 3\nchunk_kib = 64\nmodel = \"ssd\"\n[device.array.ssd]\n";
        }
        text += match model {
            "constant" => "latency_us = 50\n",
            "distribution" => {
                "read = { latency_ns = [900, 70000, 4000000], count = [5, 90, 1] }\n\
                 write = { latency_ns = [20000, 30000], count = [1, 1] }\n\
                 trim = { latency_ns = [1000], count = [1] }\n"
            }
            "hdd" => {
                "rpm = 7200\nouter_mb_per_s = 200\ninner_mb_per_s = 100\nsettle_ms = 0.5\n\
                 seek_root_ms = 4\nseek_linear_ms = 3\nlooks_at = 8\n"
            }
            _ => {
                "channels = 2\ndies_per_channel = 2\npage_kib = 16\npages_per_block = 64\n\
                 read_us = 40\nprogram_us = 200\nerase_us = 2000\nchannel_mb_per_s = 800\n\
                 link_mb_per_s = 3500\ncommand_us = 5\nbuffer_kib = 256\nspare_percent = 7\n"
            }
        };
        match model {
            "hdd" if self.one_in(2) => {
                text += "write_cache = { size_mib = 1, writes = 16, fill_mb_per_s = 300 }\n";
            }
            "ssd" if self.one_in(2) => text += "worn = true\n",
            "ssd" if self.one_in(2) => text += "slow_die = { die = 1, times = 20 }\n",
            _ => {}
        }
        if self.one_in(2) {
            text += &self.queue();
        }
        text + &self.faults()
    }

    fn queue(&mut self) -> String {
        let scheduler = self.of(&["none", "mq-deadline"]);
        let policy = self.of(&["plain", "fair", "fair-roundrobin", "elastic"]);
        let (requests, depth) = (1 + self.below(32), 1 + self.below(32));
        let (kb, plug, queues) = (4 << self.below(6), self.one_in(2), 1 + self.below(4));
        format!(
            "[device.queue]\nscheduler = \"{scheduler}\"\npolicy = \"{policy}\"\n\
             nr_requests = {requests}\nqueue_depth = {depth}\nmax_sectors_kb = {kb}\n\
             plug = {plug}\nhardware_queues = {queues}\n"
        )
    }

    fn faults(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(3) {
            let (at, length) = (self.below(50), 1 + self.below(200));
            writeln!(text, "[[device.stall]]\nat_ms = {at}\nfor_ms = {length}").unwrap();
        }
        if self.one_in(2) {
            text += "[device.faults]\n";
            for key in [
                "read_errors_ppm",
                "write_errors_ppm",
                "trim_errors_ppm",
                "short_ppm",
                "lost_ppm",
            ] {
                if self.one_in(2) {
                    writeln!(text, "{key} = {}", self.below(50_000)).unwrap();
                }
            }
            writeln!(
                text,
                "timeout_ms = {}\nseed = {}",
                1 + self.below(100),
                self.below(99)
            )
            .unwrap();
        }
        text
    }

    fn plan(&mut self) -> String {
        let jobs: Vec<String> = (0..=self.below(3)).map(|number| self.job(number)).collect();
        jobs.join(" ")
    }

    fn job(&mut self, number: u64) -> String {
        let rw = self.of(&[
            "read",
            "write",
            "rw",
            "randread",
            "randwrite",
            "randrw",
            "randtrim",
            "trimwrite",
        ]);
        let engine = self.of(&["psync", "libaio", "io_uring"]);
        let (depth, kib) = (1 + self.below(32), 64 << self.below(5));
        let block = self.of(&["512", "4k", "16k", "64k"]);
        let mut words = format!(
            "--name=j{number} --direct=1 --ioengine={engine} --iodepth={depth} --rw={rw} \
             --bs={block} --size={kib}k --numjobs={}",
            1 + self.below(3)
        );
        let mut may = |chance, word: String| {
            if self.one_in(chance) {
                words += " ";
                words += &word;
            }
        };
        may(3, "--filename=/dev/m0".into());
        may(3, "--continue_on_error=all".into());
        may(6, "--ignore_error=EIO:ETIMEDOUT,EIO:ETIMEDOUT".into());
        may(4, "--io_submit_mode=offload".into());
        may(5, "--rate_iops=2000".into());
        may(9, "--rate_iops=3000 --rate_process=poisson".into());
        may(9, "--rate_iops_min=10".into());
        may(5, "--thinktime=100us --thinktime_blocks=4".into());
        may(9, "--thinktime=1ms --thinktime_iotime=3ms".into());
        may(6, "--ramp_time=5ms".into());
        may(6, "--iodepth_batch=4 --iodepth_batch_complete_max=8".into());
        may(9, "--max_latency=80ms".into());
        may(9, "--exitall_on_error".into());
        may(9, "--flow=2".into());
        may(9, "--serialize_overlap=1".into());
        may(5, "--startdelay=10ms".into());
        may(5, "--loops=2".into());
        may(5, "--stonewall".into());
        may(5, "--fsync=8".into());
        may(6, "--time_based --runtime=300ms".into());
        may(6, "--runtime=50ms".into());
        if rw.ends_with("write") && !rw.starts_with("trim") && self.one_in(3) {
            words += " --verify=crc32c";
            if words.contains("--time_based") {
                // Content is what a simulation takes long for.
                words += " --runtime=30ms";
            }
        }
        words
    }
}
