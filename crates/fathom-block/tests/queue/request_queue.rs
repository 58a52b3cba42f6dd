//! The request queue against a naive list of submitted bios: every byte reaches the device exactly
//! once, no other byte does, no limit is exceeded, and every waiter is served.

use std::collections::{BTreeMap, VecDeque};

use fathom_block::{
    Bio, Class, DeadlineConfig, DonePiece, Limits, Policy, Progress, QueueConfig, RequestQueue,
    SchedulerConfig, WaiterId,
};
use fathom_core::{Command, Direction, Nanos, OpKind, SyncKind, Tick};
use proptest::prelude::*;

const SUBMITTERS: u32 = 12;

/// A queue, its submitters, and a device that completes on demand.
struct World {
    queue: RequestQueue,
    config: QueueConfig,
    now: Tick,
    /// Bio of each submitter that is not yet fully queued.
    going_on: BTreeMap<u32, Bio>,
    may_ask: VecDeque<u32>,
    in_device: Vec<Command>,
    /// Outstanding bytes of each bio, and its range on the device.
    open: BTreeMap<u32, (Bio, u64)>,
    bios: u32,
    done: Vec<DonePiece>,
}

impl World {
    fn new(config: QueueConfig) -> Self {
        Self {
            queue: RequestQueue::new(config, SUBMITTERS),
            config,
            now: Tick::ZERO,
            going_on: BTreeMap::new(),
            may_ask: VecDeque::new(),
            in_device: Vec::new(),
            open: BTreeMap::new(),
            bios: 0,
            done: Vec::new(),
        }
    }

    fn begin(&mut self, who: u32, kind: OpKind, page: u64, length: u32) {
        if self.going_on.contains_key(&who) {
            return;
        }
        let length = if matches!(kind, OpKind::Sync(_)) {
            0
        } else {
            length
        };
        let bio = Bio {
            kind,
            offset: page * 4096,
            length,
            class: [Class::RealTime, Class::BestEffort, Class::Idle][self.bios as usize % 3],
            owner: self.bios,
        };
        self.bios += 1;
        self.open.insert(bio.owner, (bio, u64::from(length.max(1))));
        self.going_on.insert(who, bio);
        self.queue.begin(WaiterId::new(who), bio);
        self.may_ask.push_back(who);
    }

    fn ask(&mut self, pick: usize) {
        if self.may_ask.is_empty() {
            return;
        }
        let place = pick % self.may_ask.len();
        let who = self.may_ask.remove(place).expect("in range");
        match self.queue.ask(WaiterId::new(who), self.now) {
            Progress::Whole => {
                self.queue.unplug(WaiterId::new(who), self.now);
                self.going_on.remove(&who);
            }
            Progress::More => self.may_ask.push_back(who),
            Progress::Waits => assert!(!self.queue.is_plugged(WaiterId::new(who))),
        }
        self.settle();
    }

    fn complete(&mut self, pick: usize) {
        if self.in_device.is_empty() {
            return;
        }
        let command = self.in_device.remove(pick % self.in_device.len());
        let moved = command.length.cast_signed();
        self.queue.complete(command.tag, moved, &mut self.done);
        for piece in self.done.drain(..) {
            assert_eq!(piece.result.unsigned_abs(), piece.length);
            let (_, left) = self.open.get_mut(&piece.owner).expect("done twice");
            *left -= u64::from(piece.length.max(1));
            if *left == 0 {
                self.open.remove(&piece.owner);
            }
        }
        self.settle();
    }

    /// Lets woken submitters queue their bios, and dispatches what the device can take.
    fn settle(&mut self) {
        self.may_ask.extend(
            self.queue
                .woken()
                .map(|who| u32::try_from(who.index()).expect("few")),
        );
        let before = self.in_device.len();
        self.queue.dispatch(self.now, &mut self.in_device);
        assert!(
            self.in_device.len() <= self.config.queue_depth as usize,
            "too deep"
        );
        for command in &self.in_device[before..] {
            self.was_asked_for(command);
            let alike = self
                .in_device
                .iter()
                .filter(|other| other.tag == command.tag);
            assert_eq!(alike.count(), 1, "a tag given twice");
        }
    }

    fn was_asked_for(&self, command: &Command) {
        if !matches!(command.kind, OpKind::Data(_)) {
            return;
        }
        let data = matches!(
            command.kind,
            OpKind::Data(Direction::Read | Direction::Write)
        );
        assert!(
            !data || command.length <= self.config.limits.bytes(),
            "too large"
        );
        for page in 0..u64::from(command.length).div_ceil(4096) {
            let at = command.offset + page * 4096;
            let mut open = self.open.values().map(|(bio, _)| bio);
            let holds = |bio: &Bio| {
                bio.kind == command.kind
                    && (bio.offset..bio.offset + u64::from(bio.length)).contains(&at)
            };
            assert!(open.any(holds), "nobody asked for {command:?}");
        }
    }

    /// Runs all submitters until every bio has completed.
    fn drain(&mut self) {
        while !self.may_ask.is_empty() || !self.in_device.is_empty() {
            if self.may_ask.is_empty() {
                self.complete(0);
            } else {
                self.ask(0);
            }
        }
        assert!(self.going_on.is_empty(), "forgotten: {:?}", self.going_on);
        assert!(self.open.is_empty(), "never done: {:?}", self.open);
    }
}

fn kind(number: u8) -> OpKind {
    match number {
        0..=3 => OpKind::Data(Direction::Write),
        4..=7 => OpKind::Data(Direction::Read),
        8 => OpKind::Data(Direction::Trim),
        _ => OpKind::Sync(SyncKind::Full),
    }
}

prop_compose! {
    fn config()(
        policy in prop::sample::select(vec![
            Policy::Plain, Policy::Fair, Policy::FairRoundRobin, Policy::Elastic,
        ]),
        nr_requests in 1..40_u32,
        queue_depth in 1..12_u32,
        max_bytes in 1..9_u32,
        flags in any::<[bool; 3]>(),
        hardware_queues in 1..4_u32,
    ) -> QueueConfig {
        let [together, plug, none] = flags;
        let scheduler = if none {
            SchedulerConfig::None
        } else {
            SchedulerConfig::Deadline(DeadlineConfig { fifo_batch: 3, ..DeadlineConfig::default() })
        };
        QueueConfig {
            limits: Limits { max_bytes: max_bytes * 4096, max_segments: 6 },
            scheduler,
            nr_requests,
            queue_depth,
            policy,
            together,
            plug,
            hardware_queues,
        }
    }
}

proptest! {
    #[test]
    fn every_bio_is_done_once_and_nobody_is_forgotten(
        config in config(),
        steps in prop::collection::vec((0..6_u8, any::<u8>(), 0..64_u64, 1..20_u32), 1..300),
    ) {
        let mut world = World::new(config);
        for (step, number, page, pages) in steps {
            world.now += Nanos::from_millis(u64::from(number));
            match step {
                0 | 1 => {
                    let who = u32::from(number) % SUBMITTERS;
                    world.begin(who, kind(number % 10), page, pages * 4096);
                }
                2 | 3 => world.ask(usize::from(number)),
                _ => world.complete(usize::from(number)),
            }
        }
        world.drain();
    }
}

fn queue(max_bytes: u32, plug: bool) -> World {
    World::new(QueueConfig {
        limits: Limits {
            max_bytes,
            max_segments: 64,
        },
        scheduler: SchedulerConfig::Deadline(DeadlineConfig::default()),
        nr_requests: 8,
        queue_depth: 1,
        policy: Policy::Plain,
        together: true,
        plug,
        hardware_queues: 1,
    })
}

/// Checks the requests that the device gets for one-page writes queued behind a first one.
#[track_caller]
fn check_merge(max_bytes: u32, pages: &[u64], want: &[(u64, u32)]) {
    let mut world = queue(max_bytes, false);
    let write = OpKind::Data(Direction::Write);
    for (who, page) in (0..).zip([1000].iter().chain(pages)) {
        world.begin(who, write, *page, 4096);
        world.bios = 3 * (who + 1);
        world.ask(0);
    }
    let merged = world.queue.seeks().merged();
    assert_eq!(merged, (pages.len() - want.len()) as u64);
    let mut seen = Vec::new();
    while !world.in_device.is_empty() {
        world.complete(0);
        let commands = world.in_device.iter();
        seen.extend(commands.map(|command| (command.offset / 4096, command.length / 4096)));
    }
    assert_eq!(seen, want);
    world.drain();
}

#[test]
fn what_follows_or_comes_before_a_queued_request_becomes_part_of_it() {
    check_merge(65_536, &[5, 6], &[(5, 2)]);
    check_merge(65_536, &[6, 5], &[(5, 2)]);
    check_merge(65_536, &[5, 7], &[(5, 1), (7, 1)]);
    check_merge(65_536, &[5, 7, 6], &[(5, 2), (7, 1)]);
}

#[test]
fn a_request_is_not_merged_past_its_limit() {
    check_merge(8192, &[5, 6, 7], &[(5, 2), (7, 1)]);
    check_merge(8192, &[7, 6, 5], &[(6, 2), (5, 1)]);
}

#[test]
fn a_plug_holds_back_until_it_is_pulled() {
    let mut world = queue(65_536, true);
    let write = OpKind::Data(Direction::Write);
    for page in [3, 4, 9] {
        let bio = Bio {
            kind: write,
            offset: page * 4096,
            length: 4096,
            class: Class::BestEffort,
            owner: 0,
        };
        world.queue.begin(WaiterId::new(0), bio);
        let progress = world.queue.ask(WaiterId::new(0), world.now);
        assert_eq!(progress, Progress::Whole);
    }
    world.open.insert(
        0,
        (
            Bio {
                kind: write,
                offset: 0,
                length: 65_536,
                class: Class::BestEffort,
                owner: 0,
            },
            3 * 4096,
        ),
    );
    world.settle();
    assert!(world.in_device.is_empty());
    world.queue.unplug(WaiterId::new(0), world.now);
    world.settle();
    assert_eq!(world.in_device[0].length, 8192);
    world.drain();
}
