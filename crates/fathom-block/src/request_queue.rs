//! Request queue: turns submissions into commands for a device, and completions back.
//!
//! ```text
//! begin ─► ask ─► split ─► merge? ─► tag ─► plug ─► scheduler ─► dispatch ─► device
//!           ▲                         │                                        │
//!           └── woken ◄── who waits ◄─┘◄──────────────── complete ◄────────────┘
//! ```
//!
//! Nothing here blocks or takes time: [`RequestQueue::ask`] performs one step of a submission and
//! returns whether another one follows or the submitter must wait. The caller decides how long a
//! step takes and when a woken submitter runs, and thereby which submitter gets which tag.
//!
//! Not modelled: merging two queued requests when the gap between them closes, and merging into
//! requests that wait without a scheduler.

use std::collections::VecDeque;

use fathom_core::{Command, Direction, OpKind, SplitMix64, Tick};

use crate::bio::{Bio, Class, Limits};
use crate::deadline::Queued;
use crate::pieces::{Part, Pieces};
use crate::scheduler::{Scheduler, SchedulerConfig};
use crate::seeks::{SeekCounts, moves_data};
use crate::tag_set::{Policy, TagSet, TagSetConfig};
use crate::tag_words::{Hint, Tag};
use crate::wait_queues::WaiterId;

/// Configuration of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Size limits of one request.
    pub limits: Limits,
    /// Scheduler, which orders requests.
    pub scheduler: SchedulerConfig,
    /// Tags of the scheduler: limit of requests that are queued or with the device. Without a
    /// scheduler, requests take the device's tags, of which no more than these are in use.
    pub nr_requests: u32,
    /// Tags of the device: limit of requests that are with it.
    pub queue_depth: u32,
    /// Policy for a tag that is freed while others wait.
    pub policy: Policy,
    /// The pieces of a split can get their tags at once, if the policy supports it.
    pub together: bool,
    /// Submitters plug: they hold requests back until they wait or have finished.
    pub plug: bool,
    /// Hardware queues of the host. Requests dispatched at the same time go queue by queue; a woken
    /// submitter continues in any of them, as its thread does on any core.
    pub hardware_queues: u32,
}

/// Result of one step of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// The submission is queued completely.
    Whole,
    /// A part is queued; call again for the rest.
    More,
    /// No tags: call again once [`RequestQueue::woken`] has returned the submitter.
    Waits,
}

/// Completed piece of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DonePiece {
    /// Owner of its bio.
    pub owner: u32,
    /// Bytes requested.
    pub length: u32,
    /// Bytes moved, or a negated errno.
    pub result: i32,
}

/// The queue of one device.
#[derive(Debug)]
pub struct RequestQueue {
    config: QueueConfig,
    tags: TagSet,
    scheduler: Scheduler,
    /// Syncs, which bypass the scheduler.
    syncs: VecDeque<u32>,
    /// Requests, by the number of their tag.
    requests: Box<[Option<Request>]>,
    pieces: Pieces,
    submitters: Box<[Submitter]>,
    free_device_tags: Vec<u32>,
    /// Request of each device tag.
    in_device: Box<[Option<u32>]>,
    seeks: SeekCounts,
    random: SplitMix64,
    woken: Vec<WaiterId>,
    got: Vec<Tag>,
    round: Vec<u32>,
}

#[derive(Debug)]
struct Request {
    tag: Tag,
    kind: OpKind,
    class: Class,
    offset: u64,
    length: u32,
    hardware_queue: u32,
    /// Submitters of its data, in the order of sectors.
    part: Part,
}

#[derive(Debug)]
struct Submitter {
    hint: Hint,
    /// Remainder not yet queued.
    rest: Option<Bio>,
    waits: bool,
    hardware_queue: u32,
    /// Requests held back.
    plug: Vec<u32>,
}

impl RequestQueue {
    /// Creates an empty queue for this many submitters.
    ///
    /// # Panics
    /// If there are no tags of one kind, or more than 2²⁴.
    #[must_use]
    pub fn new(config: QueueConfig, submitters: u32) -> Self {
        assert!(
            config.queue_depth > 0,
            "a device takes at least one command"
        );
        let tags = TagSet::new(TagSetConfig {
            tags: match config.scheduler {
                SchedulerConfig::None => config.queue_depth.min(config.nr_requests),
                SchedulerConfig::Deadline(_) => config.nr_requests,
            },
            waiters: submitters,
            policy: config.policy,
            together: config.together,
        });
        let submitter = |number: u32| Submitter {
            hint: tags.hint(number as usize),
            rest: None,
            waits: false,
            hardware_queue: number % config.hardware_queues.max(1),
            plug: Vec::new(),
        };
        Self {
            scheduler: Scheduler::new(config.scheduler, tags.capacity()),
            syncs: VecDeque::new(),
            requests: (0..tags.capacity()).map(|_| None).collect(),
            pieces: Pieces::default(),
            submitters: (0..submitters).map(submitter).collect(),
            free_device_tags: (0..config.queue_depth).rev().collect(),
            in_device: vec![None; config.queue_depth as usize].into_boxed_slice(),
            seeks: SeekCounts::new(),
            random: SplitMix64::new(SEED),
            woken: Vec::new(),
            got: Vec::new(),
            round: Vec::new(),
            config,
            tags,
        }
    }

    /// Starts a submission. Nothing is queued before the first call of [`ask`](Self::ask).
    ///
    /// # Panics
    /// If the submitter has not finished its previous one.
    pub fn begin(&mut self, who: WaiterId, bio: Bio) {
        let submitter = &mut self.submitters[who.index()];
        assert!(submitter.rest.is_none(), "{who:?} is not done yet");
        submitter.rest = Some(bio);
    }

    /// Performs one step of a submission: queues as many pieces as get tags at once.
    pub fn ask(&mut self, who: WaiterId, now: Tick) -> Progress {
        if !self.submitters[who.index()].waits {
            self.merge_first_pieces(who);
        }
        let submitter = &mut self.submitters[who.index()];
        let Some(bio) = submitter.rest else {
            return Progress::Whole;
        };
        let need = self.config.limits.pieces(&bio);
        let asked = self.tags.get(&mut submitter.hint, who, need, &mut self.got);
        self.woken.extend_from_slice(asked.wake.waiters());
        if asked.waits {
            submitter.waits = true;
            // Unplug before waiting, or others might wait for the requests held back.
            self.unplug(who, now);
            return Progress::Waits;
        }
        if submitter.waits {
            submitter.waits = false;
            let queues = u64::from(self.config.hardware_queues.max(1));
            let queue = self.random.next_u64() % queues;
            submitter.hardware_queue = u32::try_from(queue).unwrap_or(0);
        }
        let mut got = std::mem::take(&mut self.got);
        for tag in got.drain(..) {
            self.queue_piece(who, tag, now);
        }
        self.got = got;
        match self.submitters[who.index()].rest {
            Some(_) => Progress::More,
            None => Progress::Whole,
        }
    }

    /// Unplugs a submitter: its requests go to the scheduler.
    pub fn unplug(&mut self, who: WaiterId, now: Tick) {
        let mut plug = std::mem::take(&mut self.submitters[who.index()].plug);
        for id in plug.drain(..) {
            self.schedule(id, now);
        }
        self.submitters[who.index()].plug = plug;
    }

    /// Returns whether a submitter is plugged with requests.
    #[must_use]
    pub fn is_plugged(&self, who: WaiterId) -> bool {
        !self.submitters[who.index()].plug.is_empty()
    }

    /// Dispatches requests to the device, in order.
    pub fn dispatch(&mut self, now: Tick, out: &mut Vec<Command>) {
        while self.round.len() < self.free_device_tags.len() {
            let next = self.syncs.pop_front().or_else(|| self.scheduler.take(now));
            let Some(id) = next else { break };
            self.round.push(id);
        }
        if self.config.hardware_queues > 1 {
            let requests = &self.requests;
            let queue = |id: &u32| requests[*id as usize].as_ref().map(|it| it.hardware_queue);
            self.round.sort_by_key(queue);
        }
        let mut round = std::mem::take(&mut self.round);
        for id in round.drain(..) {
            out.extend(self.give_to_device(id));
        }
        self.round = round;
    }

    /// Completes a command of the device and appends its pieces to `done`.
    pub fn complete(&mut self, tag: u32, result: i32, done: &mut Vec<DonePiece>) {
        let id = self.in_device[tag as usize].take();
        let request = id.and_then(|id| self.requests[id as usize].take());
        let Some(request) = request else { return };
        self.free_device_tags.push(tag);
        self.pieces.finish(request.part, result, done);
        let wake = self.tags.put(request.tag);
        self.woken.extend_from_slice(wake.waiters());
    }

    /// Returns the submitters to resume, in wake-up order.
    pub fn woken(&mut self) -> impl Iterator<Item = WaiterId> + '_ {
        self.woken.drain(..)
    }

    /// Returns the statistics of dispatched requests.
    #[must_use]
    pub const fn seeks(&self) -> &SeekCounts {
        &self.seeks
    }

    /// Resets the statistics at the end of a ramp.
    pub const fn restart_seeks(&mut self) {
        self.seeks.restart();
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// Merges leading pieces into queued requests; they need no tags.
    fn merge_first_pieces(&mut self, who: WaiterId) {
        while let Some(bio) = self.submitters[who.index()].rest {
            let length = self.config.limits.piece(&bio);
            if !self.merges(who, &bio, length) {
                return;
            }
            if moves_data(bio.kind) {
                self.seeks.merge();
            }
            self.submitters[who.index()].rest = cut(bio, length);
        }
    }

    fn merges(&mut self, who: WaiterId, bio: &Bio, length: u32) -> bool {
        let OpKind::Data(direction) = bio.kind else {
            return false;
        };
        // Full pieces, which are most of a large bio, cannot be merged.
        if length >= self.config.limits.bytes() {
            return false;
        }
        let (class, writes) = (bio.class, direction != Direction::Read);
        let plugged = self.submitters[who.index()].plug.last().copied();
        let behind = plugged.or_else(|| self.scheduler.before(class, writes, bio.offset));
        if behind.is_some_and(|id| self.merge_behind(id, bio, length)) {
            return true;
        }
        let end = bio.offset + u64::from(length);
        let front = self.scheduler.at(class, writes, end);
        front.is_some_and(|id| self.merge_in_front(id, bio, length))
    }

    fn merge_behind(&mut self, id: u32, bio: &Bio, length: u32) -> bool {
        let Some(request) = self.requests[id as usize].as_mut() else {
            return false;
        };
        let follows = request.offset + u64::from(request.length) == bio.offset;
        if !follows || !fits(request, bio, length, &self.config.limits) {
            return false;
        }
        self.pieces.append(&mut request.part, bio.owner, length);
        request.length += length;
        true
    }

    fn merge_in_front(&mut self, id: u32, bio: &Bio, length: u32) -> bool {
        let Some(request) = self.requests[id as usize].as_mut() else {
            return false;
        };
        if !fits(request, bio, length, &self.config.limits) {
            return false;
        }
        self.pieces.prepend(&mut request.part, bio.owner, length);
        request.length += length;
        request.offset = bio.offset;
        self.scheduler.begins_at(id, bio.offset);
        true
    }

    fn queue_piece(&mut self, who: WaiterId, tag: Tag, now: Tick) {
        let submitter = &mut self.submitters[who.index()];
        let Some(bio) = submitter.rest else {
            // There are as many tags as pieces.
            let wake = self.tags.put(tag);
            self.woken.extend_from_slice(wake.waiters());
            return;
        };
        let length = self.config.limits.piece(&bio);
        submitter.rest = cut(bio, length);
        let id = u32::try_from(tag.index()).unwrap_or(u32::MAX);
        self.requests[id as usize] = Some(Request {
            tag,
            kind: bio.kind,
            class: bio.class,
            offset: bio.offset,
            length,
            hardware_queue: submitter.hardware_queue,
            part: self.pieces.one(bio.owner, length),
        });
        if self.config.plug {
            submitter.plug.push(id);
            if submitter.plug.len() >= PLUGGED_MAX {
                self.unplug(who, now);
            }
        } else {
            self.schedule(id, now);
        }
    }

    fn schedule(&mut self, id: u32, now: Tick) {
        let Some(request) = &self.requests[id as usize] else {
            return;
        };
        let OpKind::Data(direction) = request.kind else {
            self.syncs.push_back(id);
            return;
        };
        let queued = Queued {
            class: request.class,
            writes: direction != Direction::Read,
            offset: request.offset,
            since: now,
        };
        self.scheduler.insert(id, queued);
    }

    fn give_to_device(&mut self, id: u32) -> Option<Command> {
        let request = self.requests[id as usize].as_ref()?;
        let tag = self.free_device_tags.pop()?;
        self.in_device[tag as usize] = Some(id);
        if moves_data(request.kind) {
            let length = u64::from(request.length);
            self.seeks.dispatch(request.offset, length);
        }
        Some(Command {
            tag,
            kind: request.kind,
            offset: request.offset,
            length: request.length,
        })
    }
}

/// Returns the remainder after the first `length` bytes.
fn cut(bio: Bio, length: u32) -> Option<Bio> {
    (bio.length > length).then(|| Bio {
        offset: bio.offset + u64::from(length),
        length: bio.length - length,
        ..bio
    })
}

fn fits(request: &Request, bio: &Bio, length: u32, limits: &Limits) -> bool {
    let alike = (request.kind, request.class) == (bio.kind, bio.class);
    alike && u64::from(request.length) + u64::from(length) <= u64::from(limits.bytes())
}

/// Requests at which the kernel flushes a plug.
const PLUGGED_MAX: usize = 32;
/// Random stream of the only draw here: the queue in which a woken thread continues.
const SEED: u64 = 0x5eed;
