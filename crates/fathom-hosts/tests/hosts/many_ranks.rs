//! A thousand ranks in virtual time.
//!
//! # Fault model
//!
//! * Links: each rank has a fixed delay per direction (10 µs to 2 ms, drawn apart) and jitter of
//!   up to as much again; one message in 2,000 is 100 ms late, so messages overtake each other.
//!   Half of the seeds lose one message in 500 and double one in 500.
//! * Clocks: each differs from rank 0's by up to an hour and drifts by up to 50 ppm; they are
//!   compared by ping-pongs over those links before the run.
//! * Ranks: in most seeds up to three die, each at any moment, in any stage; in some of them rank 0
//!   with the conductor. In a fifth of the seeds a rank asks to stop.
//!
//! A wave lasts 0.2 to 1 s on each rank. One seed gives one run. `FATHOM_SEEDS` sets the number of
//! seeds.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use fathom_core::{Nanos, Taus258, Tick, stream_seed};
use fathom_hosts::{
    Alignment, Checks, Conductor, Event, FileKey, Gate, Member, Message, Output, PingPong, Rank,
    RemoteClock, Report, Stage, Start, StopReason, Verdict, Wave,
};

/// Waves of the run; a tenth of the ranks lacks the second.
const WAVES: u32 = 3;

/// Another clock: offset and drift against the true time, which is rank 0's clock.
#[derive(Clone, Copy)]
struct Clock {
    offset_ns: i64,
    drift_ppb: i64,
}

impl Clock {
    fn reading(self, truth: u64) -> u64 {
        let drift = i128::from(truth) * i128::from(self.drift_ppb);
        let ns = i128::from(truth) + i128::from(self.offset_ns) + drift.div_euclid(1_000_000_000);
        u64::try_from(ns).expect("two hours after the origin")
    }

    /// Returns the first true time at which the clock reads `reading` or more.
    fn truth(self, reading: u64) -> u64 {
        let mut truth = reading.saturating_add_signed(-self.offset_ns);
        for _ in 0..3 {
            let error = i128::from(reading) - i128::from(self.reading(truth));
            let moved = i128::from(truth) + error;
            truth = u64::try_from(moved).expect("two hours after the origin");
        }
        while self.reading(truth) < reading {
            truth += 1;
        }
        truth
    }
}

struct Host {
    member: Member,
    clock: Clock,
    there_ns: u64,
    back_ns: u64,
    dead: bool,
    /// Wave that runs, with its end in true time.
    running: Option<(Wave, u64)>,
    ran: Vec<Wave>,
    left: bool,
    /// Next moment at which it looks at its member.
    looks_at: u64,
}

enum Happening {
    Look(usize),
    ToConductor(usize, Vec<u8>),
    ToRank(usize, Vec<u8>),
    ConductorLooks,
    Dies(usize),
    AsksToStop(usize),
}

struct Simulation {
    random: Taus258,
    now: u64,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: std::collections::HashMap<u64, Happening>,
    next_id: u64,
    conductor: Conductor,
    conductor_dead: bool,
    hosts: Vec<Host>,
    seed: u64,
    lossy: bool,
    told_lost: BTreeSet<u32>,
    through_at: Option<u64>,
}

impl Simulation {
    fn new(ranks: u32, seed: u64) -> Self {
        let mut random = Taus258::new(stream_seed(seed, 0));
        let mut conductor = Conductor::new(Tick::new(BEGIN), ranks, false).expect("a limit");
        let hosts: Vec<Host> = (0..ranks).map(|rank| host(rank, &mut random)).collect();
        for (rank, host) in (1..ranks).zip(&hosts[1..]) {
            let mut clock = RemoteClock::ours();
            clock.align(compare(host, &mut random));
            conductor.set_clock(Tick::new(BEGIN), Rank::new(rank), clock);
        }
        let mut simulation = Self {
            random,
            now: BEGIN,
            heap: BinaryHeap::new(),
            happenings: std::collections::HashMap::new(),
            next_id: 0,
            conductor,
            conductor_dead: false,
            hosts,
            seed,
            lossy: seed % 2 == 1,
            told_lost: BTreeSet::new(),
            through_at: None,
        };
        simulation.plan_faults(ranks, seed);
        for rank in 0..ranks as usize {
            simulation.at(BEGIN, Happening::Look(rank));
        }
        simulation.at(BEGIN, Happening::ConductorLooks);
        simulation
    }

    fn plan_faults(&mut self, ranks: u32, seed: u64) {
        for _ in 0..seed % 4 {
            let when = BEGIN + self.random.below(4_000_000_000);
            // Rank 0 in one of ten.
            let any = self.random.below(u64::from(ranks) * 10 / 9);
            let rank = if any < u64::from(ranks) { any } else { 0 };
            let rank = usize::try_from(rank).expect("a rank");
            self.at(when, Happening::Dies(rank));
        }
        if seed % 5 == 4 {
            let when = BEGIN + self.random.below(3_000_000_000);
            let rank = self.random.below(u64::from(ranks));
            let rank = usize::try_from(rank).expect("a rank");
            self.at(when, Happening::AsksToStop(rank));
        }
    }

    fn at(&mut self, when: u64, what: Happening) {
        self.heap.push(Reverse((when, self.next_id)));
        self.happenings.insert(self.next_id, what);
        self.next_id += 1;
    }

    /// Runs until nothing happens any more.
    fn run(&mut self) {
        while let Some(Reverse((when, id))) = self.heap.pop() {
            self.now = when;
            assert!(
                when < BEGIN + 60_000_000_000,
                "seed {}: {}",
                self.seed,
                self.stuck()
            );
            match self.happenings.remove(&id).expect("pushed with its number") {
                Happening::Look(rank) if self.hosts[rank].looks_at <= when => self.looks(rank),
                Happening::ToConductor(rank, bytes) if !self.conductor_dead => {
                    let Ok(Message::Report(report)) = Message::decode(&bytes) else {
                        panic!("{bytes:?}");
                    };
                    self.reports(rank, report);
                }
                Happening::ToRank(rank, bytes) if !self.hosts[rank].dead => {
                    let Ok(Message::Order(order)) = Message::decode(&bytes) else {
                        panic!("{bytes:?}");
                    };
                    let now = self.local(rank);
                    self.hosts[rank].member.handle_order(now, order);
                    self.looks(rank);
                }
                Happening::ConductorLooks if !self.conductor_dead => {
                    self.conductor.handle_timeout(Tick::new(when));
                    self.drain();
                    if !self.conductor.is_over() {
                        self.at(self.conductor.wake_at().get(), Happening::ConductorLooks);
                    }
                }
                Happening::Dies(rank) => {
                    self.hosts[rank].dead = true;
                    self.hosts[rank].running = None;
                    self.conductor_dead |= rank == 0;
                }
                Happening::AsksToStop(rank) if !self.hosts[rank].dead => {
                    self.hosts[rank].member.ask_stop(StopReason::Requested);
                    self.looks(rank);
                }
                _ => {}
            }
        }
    }

    /// Describes a run that does not end.
    fn stuck(&self) -> String {
        let ranks = self.hosts.iter().enumerate().filter(|(_, host)| !host.left);
        let ranks: Vec<_> = ranks
            .map(|(rank, host)| (rank, host.dead, host.member.stage(), host.member.stop()))
            .collect();
        let over = self.conductor.is_over();
        format!(
            "it hangs: conductor over: {over}, dead: {}, {ranks:?}",
            self.conductor_dead
        )
    }

    fn local(&self, rank: usize) -> Tick {
        Tick::new(self.hosts[rank].clock.reading(self.now))
    }

    fn reports(&mut self, rank: usize, report: Report) {
        let from = Rank::new(u32::try_from(rank).expect("a rank"));
        let now = Tick::new(self.now);
        self.conductor.handle_report(now, from, report);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.conductor.poll_output() {
            match output {
                Output::Send { to, order } => {
                    let rank = to.get() as usize;
                    let delay = self.hosts[rank].there_ns;
                    self.sends(rank, Message::Order(order), delay);
                }
                Output::Tell(Event::RankLost { rank, silent }) => {
                    assert!(
                        self.hosts[rank.get() as usize].dead,
                        "rank {rank} was there"
                    );
                    assert!(silent < Nanos::from_secs(12), "rank {rank}: {silent}");
                    self.told_lost.insert(rank.get());
                }
                Output::Tell(Event::AllThrough) => {
                    self.through_at = Some(self.now);
                    self.conductor.leave(self.conductor.worst_code());
                }
                Output::Tell(_) => {}
            }
        }
    }

    /// Puts a message on its link.
    fn sends(&mut self, rank: usize, message: Message, delay: u64) {
        let copies = match self.random.below(500) {
            // Rank 0's messages stay in its process.
            _ if !self.lossy || rank == 0 => 1,
            0 => 0,
            1 => 2,
            _ => 1,
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        for _ in 0..copies {
            let slow = if self.random.below(2_000) == 0 {
                100_000_000
            } else {
                0
            };
            let arrives = self.now + delay + self.random.below(delay + 1) + slow;
            let arrives = if rank == 0 { self.now } else { arrives };
            let bytes = bytes.clone();
            self.at(
                arrives,
                match message {
                    Message::Report(_) => Happening::ToConductor(rank, bytes),
                    _ => Happening::ToRank(rank, bytes),
                },
            );
        }
    }

    /// Lets a rank do what it can, and plans its next look.
    fn looks(&mut self, rank: usize) {
        let now = self.local(rank);
        let host = &mut self.hosts[rank];
        if host.dead || host.left {
            return;
        }
        if now >= host.member.wake_at() {
            host.member.handle_timeout(now);
        }
        while self.goes_on(rank) {}
        while let Some(report) = self.hosts[rank].member.poll_report() {
            let delay = self.hosts[rank].back_ns;
            self.sends(rank, Message::Report(report), delay);
        }
        let host = &mut self.hosts[rank];
        if host.member.may_leave().is_some() {
            host.left = true;
            return;
        }
        let wakes_at = host.clock.truth(host.member.wake_at().get());
        let ends_at = host.running.map_or(u64::MAX, |(_, end)| end);
        host.looks_at = wakes_at.min(ends_at).max(self.now + 1);
        self.at(self.hosts[rank].looks_at, Happening::Look(rank));
    }

    /// Takes a step of a rank; returns whether there was one.
    fn goes_on(&mut self, rank: usize) -> bool {
        let over = Stage::Through { code: 0 };
        let host = &self.hosts[rank];
        let stops = host.member.stop().is_some();
        let stage = match host.member.stage() {
            Stage::Checking => Stage::Checked(checks(rank)),
            Stage::Checked(_) if stops => over,
            Stage::Checked(_) => match host.member.verdict() {
                Some(Verdict::Sound { others }) => {
                    // The first file is everybody's, so rank 0's, dead or not.
                    assert_eq!(others.contains(&0), rank != 0);
                    Stage::LaidOut
                }
                _ => return false,
            },
            Stage::LaidOut if stops => over,
            Stage::LaidOut if host.member.files_ready() => next_wave(rank, None),
            Stage::Ready(wave) if matches!(host.member.gate(*wave), Gate::Over(_)) => over,
            &Stage::Running(wave) => match (host.running, host.member.gate(wave)) {
                (None, Gate::At(start)) => {
                    self.starts(rank, start);
                    return false;
                }
                (Some((_, end)), _) if end > self.now && !host.member.ends(wave) => return false,
                _ => Stage::Ended(wave),
            },
            Stage::Ended(wave) => match next_wave(rank, Some(*wave)) {
                Stage::Ready(_) if !stops && !host.member.may_prepare() => return false,
                next => next,
            },
            _ => return false,
        };
        self.hosts[rank].running = None;
        self.hosts[rank].member.enter(stage);
        true
    }

    /// Starts a wave on a rank at the agreed time, or now if the order came too late.
    fn starts(&mut self, rank: usize, start: Start) {
        let agreed = self.hosts[rank].clock.truth(start.at.get());
        let begins = agreed.max(self.now);
        for other in self.hosts.iter().filter(|other| !other.dead && !other.left) {
            let fits = match other.member.stage() {
                Stage::Ready(wave) => *wave >= start.wave,
                Stage::Running(wave) | Stage::Ended(wave) => *wave == start.wave,
                Stage::Through { .. } | Stage::Failed(_) | Stage::Left => true,
                _ => false,
            };
            assert!(
                fits,
                "wave {} beside {:?}",
                start.wave,
                other.member.stage()
            );
        }
        if let Some(told) = self.agreed(start.wave) {
            let error = agreed.abs_diff(told);
            assert!(
                error <= start.bound.get() + 1,
                "{error} ns, not {}",
                start.bound
            );
        }
        let lasts = 200_000_000 + self.random.below(800_000_000);
        let host = &mut self.hosts[rank];
        host.ran.push(start.wave);
        host.running = Some((start.wave, begins + lasts));
    }

    /// Returns the start of a wave on rank 0, whose clock is the truth.
    fn agreed(&self, wave: Wave) -> Option<u64> {
        match self.hosts[0].member.gate(wave) {
            Gate::At(start) => Some(start.at.get()),
            _ => None,
        }
    }
}

/// Time of the beginning: no clock is more than an hour behind.
const BEGIN: u64 = 7_200_000_000_000;

fn host(rank: u32, random: &mut Taus258) -> Host {
    let hour = 3_600_000_000_000;
    let mut between = |low: i64, high: i64| {
        let span = high.abs_diff(low);
        low.saturating_add_unsigned(random.below(span + 1))
    };
    let clock = match rank {
        0 => Clock {
            offset_ns: 0,
            drift_ppb: 0,
        },
        _ => Clock {
            offset_ns: between(-hour, hour),
            drift_ppb: between(-50_000, 50_000),
        },
    };
    Host {
        member: Member::new(Tick::new(clock.reading(BEGIN))),
        clock,
        there_ns: between(10_000, 2_000_000).unsigned_abs(),
        back_ns: between(10_000, 2_000_000).unsigned_abs(),
        dead: false,
        running: None,
        ran: Vec::new(),
        left: false,
        looks_at: BEGIN,
    }
}

/// Compares a clock with rank 0's by ten ping-pongs over its links.
fn compare(host: &Host, random: &mut Taus258) -> Alignment {
    let mut sent = BEGIN;
    let series = (0..10).map(|_| {
        let arrived = sent + host.there_ns + random.below(host.there_ns);
        let received = arrived + host.back_ns + random.below(host.back_ns);
        let trip = PingPong {
            sent: Tick::new(sent),
            remote: Tick::new(host.clock.reading(arrived)),
            received: Tick::new(received),
        };
        sent = received;
        trip
    });
    Alignment::of(series).expect("ten")
}

fn checks(rank: usize) -> Checks {
    let own = u64::try_from(rank).expect("a rank") + 1;
    Checks::new(&[], vec![FileKey::new(0), FileKey::new(own)]).expect("two files")
}

fn waves(rank: usize) -> impl Iterator<Item = Wave> {
    (0..WAVES)
        .filter(move |&wave| wave != 1 || rank % 10 != 3)
        .map(Wave::new)
}

fn next_wave(rank: usize, after: Option<Wave>) -> Stage {
    let next = waves(rank).find(|&wave| Some(wave) > after);
    next.map_or(Stage::Through { code: 0 }, Stage::Ready)
}

/// Runs a seed and checks how it ended.
fn check(ranks: u32, seed: u64) {
    let mut simulation = Simulation::new(ranks, seed);
    simulation.run();
    let died: BTreeSet<u32> = (0..ranks)
        .filter(|&rank| simulation.hosts[rank as usize].dead)
        .collect();
    for (rank, host) in simulation.hosts.iter().enumerate() {
        assert!(host.left || host.dead, "seed {seed}: rank {rank} hangs");
    }
    if simulation.conductor_dead {
        return;
    }
    assert!(simulation.conductor.is_over(), "seed {seed}");
    assert!(simulation.through_at.is_some(), "seed {seed}");
    // Those that died before they were through are named, and nobody else.
    assert!(simulation.told_lost.is_subset(&died), "seed {seed}");
    for &rank in died.difference(&simulation.told_lost) {
        let stage = simulation.hosts[rank as usize].member.stage();
        let is_through = matches!(stage, Stage::Through { .. } | Stage::Left);
        assert!(
            is_through,
            "seed {seed}: nobody told of rank {rank}: {stage:?}"
        );
    }
    if died.is_empty() && seed % 5 != 4 {
        for (rank, host) in simulation.hosts.iter().enumerate() {
            let want: Vec<Wave> = waves(rank).collect();
            assert_eq!(host.ran, want, "seed {seed}: rank {rank}");
        }
    }
}

#[test]
fn nobody_hangs_starts_early_or_dies_unnoticed() {
    let seeds = std::env::var("FATHOM_SEEDS").ok();
    let seeds = seeds.map_or(200, |seeds| seeds.parse().expect("a number"));
    for seed in 0..seeds {
        check(1_000, seed);
    }
}

#[test]
fn few_ranks_with_many_seeds() {
    for seed in 0..300 {
        check(8, seed);
    }
}
