//! Ranks over a modelled network, in virtual time: messages take 10 to 40 µs, clocks differ by
//! minutes and drift. Each rank polls as the run does: after its patience, and every 50 ms while
//! its jobs run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use fathom_core::{Nanos, Taus258, Tick};
use fathom_hosts::{
    Checks, Event, Gate, Link, LinkError, Rank, Ranks, RanksOptions, StopReason, Verdict, Wave,
};

/// Sender, receiver and message.
type Sent = (Rank, Rank, Vec<u8>);

/// Messages on their way, by arrival and number.
#[derive(Default)]
struct Network {
    now: Cell<u64>,
    random: RefCell<Option<Taus258>>,
    on_way: RefCell<BTreeMap<(u64, u64), Sent>>,
    sent: Cell<u64>,
    /// Rank whose process has ended.
    gone: Cell<Option<Rank>>,
}

struct ModelledLink {
    network: Rc<Network>,
    rank: Rank,
    ranks: u32,
}

impl Link for ModelledLink {
    fn send(&mut self, to: Rank, message: &[u8]) -> Result<(), LinkError> {
        if self.network.gone.get() == Some(to) {
            return Err(LinkError::Gone(to));
        }
        let mut random = self.network.random.borrow_mut();
        let random = random.get_or_insert_with(|| Taus258::new(7));
        let arrives = self.network.now.get() + 10_000 + random.below(30_000);
        self.network.sent.set(self.network.sent.get() + 1);
        let key = (arrives, self.network.sent.get());
        let message = (self.rank, to, message.to_vec());
        self.network.on_way.borrow_mut().insert(key, message);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(Rank, Vec<u8>)>, LinkError> {
        let mut on_way = self.network.on_way.borrow_mut();
        let now = self.network.now.get();
        let mut arrived = on_way.range(..=(now, u64::MAX));
        let next = arrived.find(|(_, (_, to, _))| *to == self.rank);
        let Some(key) = next.map(|(&key, _)| key) else {
            return Ok(None);
        };
        Ok(on_way.remove(&key).map(|(from, _, bytes)| (from, bytes)))
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }
}

/// One rank with its jobs: each wave lasts `lasts_ms`.
struct Host {
    ranks: Ranks<ModelledLink>,
    offset_ns: u64,
    drift_ppm: i64,
    waves: Vec<(u32, u64)>,
    running: Option<(Wave, u64)>,
    polls_at: u64,
    /// Starts in true time.
    starts: BTreeMap<u32, u64>,
    /// Ends in true time.
    ends: BTreeMap<u32, u64>,
    left: Option<u8>,
}

const BEGIN: u64 = 60_000_000_000;

/// Returns the reading of a clock at a true time.
fn reading(truth: u64, offset_ns: u64, drift_ppm: i64) -> u64 {
    let since = i64::try_from(truth - BEGIN).expect("minutes");
    (truth + offset_ns).saturating_add_signed(since * drift_ppm / 1_000_000)
}

struct World {
    network: Rc<Network>,
    hosts: Vec<Host>,
    events: Rc<RefCell<Vec<Event>>>,
}

impl World {
    /// Creates ranks with these waves, each of a number and a length in ms.
    fn new(waves: &[Vec<(u32, u64)>], stop_together: bool) -> Self {
        let network = Rc::new(Network::default());
        network.now.set(BEGIN);
        let ranks = u32::try_from(waves.len()).expect("a few");
        let events = Rc::new(RefCell::new(Vec::new()));
        let hosts = (0..ranks).zip(waves).map(|(rank, waves)| {
            let (offset_ns, drift_ppm) = match rank {
                0 => (0, 0),
                _ => (
                    u64::from(rank) * 77_000_000_123,
                    i64::from(rank % 5) * 20 - 40,
                ),
            };
            let (time, told) = (Rc::clone(&network), Rc::clone(&events));
            let options = RanksOptions {
                clock: Box::new(move || Tick::new(reading(time.now.get(), offset_ns, drift_ppm))),
                // All wall clocks are 1,000 s ahead of the clocks.
                wall_origin_ns: 1_000_000_000_000,
                host_ranks: 1,
                stop_together,
                tell: Box::new(move |event| told.borrow_mut().push(event.clone())),
            };
            let link = ModelledLink {
                network: Rc::clone(&network),
                rank: Rank::new(rank),
                ranks,
            };
            Host {
                ranks: Ranks::new(link, options).expect("a few ranks"),
                offset_ns,
                drift_ppm,
                waves: waves.iter().rev().copied().collect(),
                running: None,
                polls_at: BEGIN,
                starts: BTreeMap::new(),
                ends: BTreeMap::new(),
                left: None,
            }
        });
        Self {
            hosts: hosts.collect(),
            network,
            events,
        }
    }

    /// Runs until all have left, but for `gone`; `happens` sees every moment.
    fn run(&mut self, mut happens: impl FnMut(u64, &mut [Host])) {
        let gone = || self.network.gone.get();
        for host in &mut self.hosts {
            host.ranks
                .checked(Checks::new(&[], Vec::new()).expect("no files"));
        }
        loop {
            let there =
                |host: &&mut Host| host.left.is_none() && gone() != Some(host.ranks.place().0);
            let next = self
                .hosts
                .iter_mut()
                .filter(there)
                .min_by_key(|host| host.polls_at);
            let Some(host) = next else {
                return;
            };
            let now = host.polls_at;
            assert!(now < BEGIN + 200_000_000_000, "it hangs");
            self.network.now.set(now);
            host.looks(now);
            happens(now, &mut self.hosts);
        }
    }

    /// Returns the largest difference between the starts of a wave, in true time.
    #[track_caller]
    fn spread_ns(&self, wave: u32) -> u64 {
        let starts = self.hosts.iter().filter_map(|host| host.starts.get(&wave));
        let (min, max) = (starts.clone().min(), starts.max());
        max.expect("a start") - min.expect("a start")
    }

    fn codes(&self) -> Vec<Option<u8>> {
        self.hosts.iter().map(|host| host.left).collect()
    }
}

impl Host {
    /// Does what a run does at one moment.
    fn looks(&mut self, now: u64) {
        self.ranks.poll(self.running.is_none());
        self.goes_on(now);
        if self.ranks.is_all_through() {
            let code = self
                .ranks
                .conductor()
                .map_or(2, |conductor| conductor.worst_code());
            self.ranks.leave(code);
        }
        self.left = self.ranks.may_leave();
        let nap = self.ranks.patience().get().clamp(1_000, 50_000_000);
        let ends_at = self.running.map_or(u64::MAX, |(_, end)| end.max(now + 1));
        self.polls_at = (now + nap).min(ends_at);
    }

    fn goes_on(&mut self, now: u64) {
        match self.running {
            Some((wave, end)) if now >= end || self.ranks.ends(wave) => {
                self.ends.insert(wave.get(), now);
                self.ranks.ended(wave, Some(0));
                self.running = None;
                self.waves.pop();
            }
            Some(_) => return,
            None => {}
        }
        if matches!(self.ranks.verdict(), Some(Verdict::Sound { .. })) {
            self.ranks.laid_out();
        }
        if !self.ranks.files_ready() {
            return;
        }
        let Some(&(wave, lasts_ms)) = self.waves.last() else {
            self.ranks.through(0);
            return;
        };
        if !self.ranks.may_prepare() && self.ranks.stop().is_none() {
            return;
        }
        let wave = Wave::new(wave);
        self.ranks.ready(wave);
        match self.ranks.gate(wave) {
            Gate::Wait => {}
            Gate::Over(_) => {
                self.waves.clear();
                self.ranks.through(0);
            }
            Gate::At(start) => {
                let own = reading(now, self.offset_ns, self.drift_ppm);
                assert!(own <= start.at.get(), "too late: {own}, {:?}", start.at);
                // The drift in 20 ms is below 1 µs.
                let starts = now + (start.at.get() - own);
                self.starts.insert(wave.get(), starts);
                self.running = Some((wave, starts + lasts_ms * 1_000_000));
            }
        }
    }
}

#[test]
fn waves_start_together_and_clocks_are_known() {
    let waves: Vec<_> = (0..16)
        .map(|rank| match rank {
            // One lacks the first wave, one the second.
            3 => vec![(1, 500), (2, 100)],
            4 => vec![(0, 40_000), (2, 100)],
            _ => vec![(0, 40_000), (1, 300), (2, 100)],
        })
        .collect();
    let mut world = World::new(&waves, false);
    world.run(|_, _| {});
    assert_eq!(world.codes(), [Some(0); 16]);
    let first = world.hosts[0].starts[&0] - BEGIN;
    assert!(
        first <= 50_000_000 + 20_000_000,
        "compared and started within {first} ns"
    );
    for (wave, ranks, spread_ns) in [(0, 15, 40_000), (1, 15, 100_000), (2, 16, 100_000)] {
        let started = world
            .hosts
            .iter()
            .filter(|host| host.starts.contains_key(&wave));
        assert_eq!(started.count(), ranks, "wave {wave}");
        let spread = world.spread_ns(wave);
        assert!(spread <= spread_ns, "wave {wave}: {spread} ns");
    }
    for host in &world.hosts[1..] {
        let known = host.ranks.comparison().expect("compared");
        let first = *host.starts.values().next().expect("a wave");
        let own = reading(first, host.offset_ns, host.drift_ppm);
        let truth = i64::try_from(own - first).expect("minutes");
        // Rounding apart, and the moment of the start is the agreed one within the bound.
        let error = known.offset_ns.abs_diff(truth);
        assert!(
            error <= known.bound.get() + 1_000,
            "{error} of {}",
            known.bound
        );
        let drift = known.drift_ppb.expect("compared again beside the jobs");
        assert!(drift.abs_diff(host.drift_ppm * 1_000) < 30_000, "{drift}");
        let spans = host.ranks.waves();
        assert_eq!(spans.len(), host.starts.len());
        assert!(
            spans
                .iter()
                .all(|span| span.end_ns > span.start_ns && span.bound.get() < 200_000)
        );
    }
    let started = world
        .events
        .borrow()
        .iter()
        .filter(|event| matches!(event, Event::WaveStarts { .. }))
        .count();
    assert_eq!(started, 3);
}

#[test]
fn a_refusal_reaches_all() {
    let mut world = World::new(&vec![vec![(0, 10)]; 3], false);
    let refusal = Checks::new(&["no space".to_owned()], Vec::new()).expect("no files");
    world.hosts[2].ranks.checked(refusal);
    world.run(|_, hosts| {
        for host in hosts.iter_mut() {
            if host.ranks.verdict() == Some(&Verdict::Refused) {
                host.ranks.through(2);
            }
        }
    });
    assert_eq!(world.codes(), [Some(2); 3]);
    assert!(world.hosts.iter().all(|host| host.starts.is_empty()));
}

/// Runs four ranks for 10 s, has one of them do something after 1 s, and returns the latest end.
fn end_after(act: impl Fn(&mut Host)) -> u64 {
    let mut world = World::new(&vec![vec![(0, 10_000), (1, 5_000)]; 4], false);
    let mut done = false;
    world.run(|now, hosts| {
        if !done && now >= BEGIN + 1_000_000_000 {
            act(&mut hosts[2]);
            done = true;
        }
    });
    assert_eq!(world.codes(), [Some(0); 4]);
    let ends = world.hosts.iter().map(|host| host.ends[&0]);
    ends.max().expect("a few") - (BEGIN + 1_000_000_000)
}

#[test]
fn a_request_to_stop_reaches_all_within_two_looks() {
    let stopped = end_after(|host| host.ranks.ask_stop(StopReason::Requested));
    assert!(stopped <= 150_000_000, "{stopped} ns");
    let ended = end_after(|host| host.ranks.ask_end(Wave::new(0)));
    assert!(ended <= 150_000_000, "{ended} ns");
}

#[test]
fn together_means_that_the_first_ends_the_wave() {
    for (together, want_ms) in [(true, 1_150), (false, 3_100)] {
        let waves = [vec![(0, 3_000)], vec![(0, 1_000)], vec![(0, 2_000)]];
        let mut world = World::new(&waves, together);
        world.run(|_, _| {});
        let ran = world.hosts[0].ends[&0] - world.hosts[0].starts[&0];
        assert!(
            ran / 1_000_000 <= want_ms && ran / 1_000_000 + 150 >= want_ms,
            "{ran}"
        );
    }
}

/// Takes a rank away while the first of two waves runs.
fn lose(rank: u32) -> World {
    let mut world = World::new(&vec![vec![(0, 10_000), (1, 100)]; 3], false);
    let network = Rc::clone(&world.network);
    world.run(move |now, _| {
        if now >= BEGIN + 1_000_000_000 {
            network.gone.set(Some(Rank::new(rank)));
        }
    });
    world
}

#[test]
fn without_a_rank_the_wave_ends_and_no_other_starts() {
    let world = lose(2);
    assert_eq!(world.codes(), [Some(2), Some(2), None]);
    for host in &world.hosts[..2] {
        assert!(host.ends[&0] - host.starts[&0] >= 10_000_000_000);
        assert!(!host.starts.contains_key(&1));
    }
    let lost = Event::RankLost {
        rank: Rank::new(2),
        silent: Nanos::ZERO,
    };
    let events = world.events.borrow();
    let same = |event: &&Event| std::mem::discriminant(*event) == std::mem::discriminant(&lost);
    assert_eq!(events.iter().filter(same).count(), 1);
}

#[test]
fn without_rank_0_the_others_end_their_wave_and_leave() {
    let world = lose(0);
    assert_eq!(world.codes(), [None, Some(2), Some(2)]);
    for host in &world.hosts[1..] {
        assert!(host.ends[&0] - host.starts[&0] >= 10_000_000_000);
        assert!(!host.starts.contains_key(&1));
    }
}
