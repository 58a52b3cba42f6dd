//! Every order of messages of a few ranks, lost and doubled ones too.
//!
//! A state is the conductor, the ranks, and the orders on their way. From each, every step that can
//! come next is taken: a rank goes on, a report arrives (or one from before, again), an order
//! arrives, the transport takes a rank for gone, a rank asks to stop. A message that is not taken
//! before another is a late one, one that is never taken a lost one; an order stays on its way
//! after it has arrived, so it can come again. States that were seen are not followed again.
//!
//! In each state: no rank runs while another runs a different wave, no rank lays out files before
//! all have checked, all are given the same time. And if all messages on their way were lost there,
//! the next reports would lead on: no rank hangs.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use fathom_core::Tick;
use fathom_hosts::{
    Checks, Conductor, Event, FileKey, Gate, Member, Order, Output, Rank, Report, Stage,
    StopReason, Verdict, Wave,
};

/// Run to be explored.
struct Setup {
    /// Waves of each rank.
    waves: Vec<Vec<u32>>,
    /// Rank that refuses the plan.
    refuses: Option<usize>,
    stop_together: bool,
    /// Ranks that the transport may take for gone at any time, though they are there.
    gone_max: usize,
    /// Some rank may ask to stop at any time.
    may_stop: bool,
}

impl Setup {
    fn of(waves: &[&[u32]]) -> Self {
        Self {
            waves: waves.iter().map(|waves| waves.to_vec()).collect(),
            refuses: None,
            stop_together: false,
            gone_max: 0,
            may_stop: false,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    conductor: Conductor,
    ranks: Vec<One>,
    /// Start of each wave that was sent to any rank.
    starts: BTreeMap<Wave, Tick>,
    through: bool,
    asked: bool,
    refused: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct One {
    member: Member,
    /// Stage before the current one, which is reported again.
    previous: Option<Stage>,
    orders: Vec<Order>,
    gone: bool,
    ran: Vec<Wave>,
}

impl World {
    fn new(setup: &Setup) -> Self {
        let ranks = u32::try_from(setup.waves.len()).expect("a few");
        let one = One {
            member: Member::new(Tick::ZERO),
            previous: None,
            orders: Vec::new(),
            gone: false,
            ran: Vec::new(),
        };
        let conductor = Conductor::new(Tick::ZERO, ranks, setup.stop_together);
        Self {
            conductor: conductor.expect("a few"),
            ranks: vec![one; setup.waves.len()],
            starts: BTreeMap::new(),
            through: false,
            asked: false,
            refused: false,
        }
    }

    /// Takes the next step of a rank by itself; returns whether there was one.
    fn goes_on(&mut self, setup: &Setup, rank: usize) -> bool {
        let member = &self.ranks[rank].member;
        let over = Stage::Through { code: 0 };
        let ready = |after: Option<Wave>| {
            let waves = setup.waves[rank].iter().map(|&wave| Wave::new(wave));
            let next = waves.into_iter().find(|&wave| Some(wave) > after);
            next.map_or(over.clone(), Stage::Ready)
        };
        let stops = member.stop().is_some();
        let stage = match member.stage() {
            Stage::Checking => Stage::Checked(checks(setup, rank)),
            Stage::Checked(_) => match member.verdict() {
                Some(Verdict::Refused) => over,
                _ if stops => over,
                Some(Verdict::Sound { .. }) => Stage::LaidOut,
                None => return false,
            },
            Stage::LaidOut if stops => over,
            Stage::LaidOut if member.files_ready() => ready(None),
            Stage::Ready(wave) if matches!(member.gate(*wave), Gate::Over(_)) => over,
            Stage::Running(wave) => Stage::Ended(*wave),
            Stage::Ended(wave) => match ready(Some(*wave)) {
                Stage::Ready(_) if !stops && !member.may_prepare() => return false,
                next => next,
            },
            _ => return false,
        };
        if matches!((&stage, member.stage()), (Stage::Ready(_), Stage::Ended(_))) && !stops {
            let runs = |one: &One| matches!(one.member.stage(), Stage::Running(_));
            let mut there = self.ranks.iter().filter(|one| !one.gone);
            assert!(!there.any(runs), "a wave is prepared beside another");
        }
        if stage == Stage::LaidOut {
            let checked = |one: &One| !matches!(one.member.stage(), Stage::Checking);
            assert!(self.ranks.iter().all(checked), "a file before all checks");
            assert!(setup.refuses.is_none(), "a file of a refused plan");
        }
        if matches!((&stage, member.stage()), (Stage::Ready(_), Stage::LaidOut)) {
            let laid_out = |one: &One| !matches!(one.member.stage(), Stage::Checked(_));
            let mut awaited = self.ranks.iter().filter(|one| !one.gone);
            assert!(
                awaited.all(laid_out),
                "a rank looks for files that are not there"
            );
        }
        self.enter(rank, stage);
        true
    }

    fn enter(&mut self, rank: usize, stage: Stage) {
        let one = &mut self.ranks[rank];
        one.previous = Some(one.member.stage().clone());
        one.member.enter(stage);
        let _sent = one.member.poll_report();
    }

    /// Delivers a rank's report of now, as its next regular one would be.
    fn reports(&mut self, rank: usize) {
        let mut member = self.ranks[rank].member.clone();
        member.handle_timeout(member.wake_at());
        let report = member.poll_report().expect("it is due");
        self.hears(rank, report);
    }

    fn hears(&mut self, rank: usize, report: Report) {
        let from = Rank::new(u32::try_from(rank).expect("a few"));
        self.conductor.handle_report(Tick::ZERO, from, report);
        self.send();
    }

    /// Puts the conductor's orders on their way.
    fn send(&mut self) {
        while let Some(output) = self.conductor.poll_output() {
            match output {
                Output::Send { to, order } => {
                    if let Order::Start(start) = &order {
                        let at = *self.starts.entry(start.wave).or_insert(start.at);
                        assert_eq!(at, start.at, "two times for one wave");
                    }
                    let one = &mut self.ranks[to.get() as usize];
                    // An order is sent only from when it applies, and ranks never go back: one
                    // that changes nothing now never will.
                    let mut member = one.member.clone();
                    member.handle_order(Tick::ZERO, order.clone());
                    if member != one.member && !one.orders.contains(&order) {
                        one.orders.push(order);
                        one.orders.sort_by_key(|order| format!("{order:?}"));
                    }
                }
                Output::Tell(Event::AllThrough) => {
                    assert!(!self.through, "told twice");
                    self.through = true;
                    self.conductor.leave(self.conductor.worst_code());
                }
                Output::Tell(Event::Refused { .. }) => self.refused = true,
                Output::Tell(_) => {}
            }
        }
    }

    /// Delivers an order.
    fn obeys(&mut self, rank: usize, order: Order) {
        let before = self.ranks[rank].member.stage().clone();
        let member = &mut self.ranks[rank].member;
        member.handle_order(Tick::ZERO, order);
        let _sent = member.poll_report();
        let after = member.stage().clone();
        if after != before {
            self.ranks[rank].previous = Some(before);
        }
        if let Stage::Running(wave) = after
            && self.ranks[rank].ran.last() != Some(&wave)
        {
            self.ranks[rank].ran.push(wave);
            self.check_start(wave);
        }
        let member = self.ranks[rank].member.clone();
        self.ranks[rank].orders.retain(|order| {
            let mut changed = member.clone();
            changed.handle_order(Tick::ZERO, order.clone());
            changed != member
        });
    }

    /// Checks that no rank is before or beyond a wave that starts elsewhere.
    fn check_start(&self, wave: Wave) {
        for one in self.ranks.iter().filter(|one| !one.gone) {
            let fits = match one.member.stage() {
                Stage::Checking | Stage::Checked(_) | Stage::LaidOut => false,
                Stage::Ready(other) => *other >= wave,
                Stage::Running(other) | Stage::Ended(other) => *other == wave,
                Stage::Through { .. } | Stage::Failed(_) | Stage::Left => true,
            };
            assert!(fits, "wave {wave} beside {:?}", one.member.stage());
        }
    }

    fn is_over(&self, with_gone: bool) -> bool {
        let mut awaited = self.ranks.iter().filter(|one| with_gone || !one.gone);
        self.conductor.is_over() && awaited.all(|one| *one.member.stage() == Stage::Left)
    }

    /// Checks that something goes on though all that is on its way is lost: each rank takes a step,
    /// reports, and hears the answer.
    fn check_goes_on(&self, setup: &Setup, with_gone: bool) {
        if self.is_over(with_gone) {
            return;
        }
        let mut world = self.clone();
        world.ranks.iter_mut().for_each(|one| one.orders.clear());
        let before = world.clone();
        for rank in 0..world.ranks.len() {
            if world.ranks[rank].gone && !with_gone {
                continue;
            }
            world.goes_on(setup, rank);
            world.reports(rank);
            for order in std::mem::take(&mut world.ranks[rank].orders) {
                world.obeys(rank, order);
            }
        }
        let stages: Vec<_> = world.ranks.iter().map(|one| one.member.stage()).collect();
        assert!(world != before, "all hang: {stages:?}");
    }
}

fn checks(setup: &Setup, rank: usize) -> Checks {
    let refuses = setup.refuses == Some(rank);
    let reasons = if refuses {
        vec!["no".to_owned()]
    } else {
        Vec::new()
    };
    // One file of all, and one of its own.
    let own = u64::try_from(rank).expect("a few") + 1;
    let files = vec![FileKey::new(0), FileKey::new(own)];
    Checks::new(&reasons, files).expect("two files")
}

/// Returns all worlds one step away.
fn next(setup: &Setup, world: &World) -> Vec<World> {
    let mut all = Vec::new();
    let gone = world.ranks.iter().filter(|one| one.gone).count();
    for rank in 0..world.ranks.len() {
        let step = |change: &dyn Fn(&mut World)| {
            let mut next = world.clone();
            change(&mut next);
            next
        };
        all.push(step(&|next| {
            next.goes_on(setup, rank);
        }));
        all.push(step(&|next| next.reports(rank)));
        if let Some(stage) = world.ranks[rank].previous.clone() {
            all.push(step(&|next| {
                next.hears(
                    rank,
                    Report {
                        stage: stage.clone(),
                        wants_stop: None,
                        wants_end: None,
                        progress: fathom_hosts::Progress::default(),
                    },
                );
            }));
        }
        for order in &world.ranks[rank].orders {
            all.push(step(&|next| next.obeys(rank, order.clone())));
        }
        if gone < setup.gone_max && !world.ranks[rank].gone {
            all.push(step(&|next| {
                next.ranks[rank].gone = true;
                let from = Rank::new(u32::try_from(rank).expect("a few"));
                next.conductor.handle_gone(Tick::ZERO, from);
                next.send();
            }));
        }
        if setup.may_stop && !world.asked {
            all.push(step(&|next| {
                next.asked = true;
                next.ranks[rank].member.ask_stop(StopReason::Requested);
                let _sent = next.ranks[rank].member.poll_report();
            }));
        }
    }
    all
}

/// Follows all orders; returns the number of states.
fn explore(setup: &Setup) -> usize {
    let hashers = [RandomState::new(), RandomState::new()];
    // 128 bits of each state: two of 10⁷ share them with a chance of 10⁻²⁴.
    let digest = |world: &World| hashers.each_ref().map(|hasher| hasher.hash_one(world));
    let first = World::new(setup);
    let mut seen = HashSet::from([digest(&first)]);
    let mut stack = vec![first];
    let mut finished = 0;
    while let Some(world) = stack.pop() {
        world.check_goes_on(setup, true);
        if setup.gone_max > 0 {
            world.check_goes_on(setup, false);
        }
        finished += usize::from(world.is_over(true));
        check_end(setup, &world);
        for next in next(setup, &world) {
            if seen.insert(digest(&next)) {
                stack.push(next);
            }
        }
    }
    assert!(finished > 0, "no order leads to the end");
    seen.len()
}

/// Checks that a run that ended undisturbed ran all of its waves.
fn check_end(setup: &Setup, world: &World) {
    let disturbed = world.asked || world.ranks.iter().any(|one| one.gone);
    if !world.is_over(true) || disturbed {
        return;
    }
    assert_eq!(world.refused, setup.refuses.is_some());
    for (one, waves) in world.ranks.iter().zip(&setup.waves) {
        let ran: Vec<u32> = one.ran.iter().map(|wave| wave.get()).collect();
        let want = if world.refused { &[][..] } else { &waves[..] };
        assert_eq!(ran, want);
    }
}

#[test]
fn four_ranks_in_three_waves() {
    let waves: &[u32] = &[0, 1, 2];
    assert!(explore(&Setup::of(&[waves; 4])) > 10_000);
}

#[test]
fn ranks_that_lack_waves() {
    explore(&Setup::of(&[&[0, 2], &[1, 2], &[0, 1], &[]]));
}

#[test]
fn a_rank_that_refuses_the_plan() {
    explore(&Setup {
        refuses: Some(1),
        gone_max: usize::from(is_long()),
        ..Setup::of(&[&[0], &[0], &[0]])
    });
}

#[test]
fn ranks_that_are_taken_for_gone_at_any_time() {
    explore(&Setup {
        gone_max: if is_long() { 2 } else { 1 },
        ..Setup::of(&[&[0], &[0], &[0]])
    });
}

#[test]
fn a_request_to_stop_at_any_time_beside_a_lost_rank() {
    explore(&Setup {
        gone_max: 1,
        may_stop: true,
        ..Setup::of(&[&[0, 1], &[1]])
    });
}

#[test]
fn ranks_that_end_their_waves_together() {
    let waves: &[&[u32]] = &[&[0, 1], &[0, 1], &[1]];
    explore(&Setup {
        stop_together: true,
        gone_max: 1,
        ..Setup::of(if is_long() { waves } else { &waves[1..] })
    });
}

/// Returns whether more ranks are to be tried, which takes minutes.
fn is_long() -> bool {
    std::env::var_os("FATHOM_EVERY_ORDER").is_some()
}
