//! Model of a target in virtual time: threads that turn, devices with latencies, a link, and a
//! cache that buffers with data share.
//!
//! ```text
//!  host ─► arrivals ─► Admission ─► device ─► processor: copy, send ─► link ─► release ─► host
//! ```
//!
//! A turn takes everything that has arrived or completed, as a target's loop does. Data are in the
//! cache from their device's completion until they are sent; what exceeds the cache is fetched
//! from memory, which takes the processor longer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use fathom_block::{
    Admission, AdmissionClass, AutoStatistics, BufferConfig, BufferPool, PacingConfig, Sharing,
    Wanted,
};
use fathom_core::{DataBuffer, Nanos, SplitMix64, Tick};

/// Model of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) threads: u32,
    /// Latency of each device.
    pub(crate) devices: Vec<Nanos>,
    /// Bytes of cache that all threads share.
    pub(crate) cache_bytes: u64,
    /// Processor time per turn, per request, and per KiB in the cache and out of it.
    pub(crate) turn_ns: f64,
    pub(crate) op_ns: f64,
    pub(crate) hit_ns: f64,
    pub(crate) miss_ns: f64,
    /// Nanoseconds per KiB on the link that all threads share.
    pub(crate) link_ns: f64,
    /// Relative noise of a request, and of a slice of 10 ms.
    pub(crate) noise: f64,
    pub(crate) slice_noise: f64,
    pub(crate) seed: u64,
}

/// Host that keeps `depth` requests in flight, from time to time.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) devices: std::ops::Range<u32>,
    pub(crate) depth: u32,
    pub(crate) bytes: u32,
    pub(crate) from: Tick,
    pub(crate) until: Tick,
    /// Time between an answer and the next request.
    pub(crate) think: Nanos,
}

/// Running model.
pub(crate) struct Target {
    machine: Machine,
    jobs: Vec<Job>,
    threads: Vec<Thread>,
    requests: Vec<Request>,
    random: SplitMix64,
    link_free: f64,
    /// Bytes in the cache.
    cached: u64,
    slice: (u64, f64),
    /// Bytes per job that have been sent.
    pub(crate) sent: Vec<u64>,
}

struct Thread {
    admission: Admission,
    now: f64,
    is_woken: bool,
    events: BinaryHeap<Reverse<(u64, u64, What)>>,
    order: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrival(usize),
    Served(usize),
    Sent(usize),
}

struct Request {
    job: usize,
    device: u32,
    bytes: u32,
    thread: usize,
    started: f64,
    buffer: Option<Box<DataBuffer>>,
}

impl Target {
    pub(crate) fn new(
        machine: Machine,
        jobs: Vec<Job>,
        count: Option<u32>,
        pacing: PacingConfig,
    ) -> Self {
        let config = BufferConfig {
            count,
            // The model moves no bytes; buffers are small to be made quickly.
            bytes: 1,
            cache: 8,
        };
        let devices = u32::try_from(machine.devices.len()).expect("few");
        let sharing = Sharing {
            threads: machine.threads,
            devices,
        };
        let pool = BufferPool::new(config, sharing);
        let thread = |index| Thread {
            admission: Admission::new(Arc::clone(&pool), &pacing, index),
            now: 0.0,
            is_woken: false,
            events: BinaryHeap::new(),
            order: 0,
        };
        let mut target = Self {
            threads: (0..machine.threads).map(thread).collect(),
            random: SplitMix64::new(machine.seed),
            sent: vec![0; jobs.len()],
            requests: Vec::new(),
            link_free: 0.0,
            cached: 0,
            slice: (u64::MAX, 1.0),
            machine,
            jobs,
        };
        target.start_jobs();
        target
    }

    fn start_jobs(&mut self) {
        for job in 0..self.jobs.len() {
            let Job {
                depth, from, bytes, ..
            } = self.jobs[job];
            for index in 0..depth {
                let thread = index as usize % self.threads.len();
                let id = self.requests.len();
                self.requests.push(Request {
                    job,
                    device: 0,
                    bytes,
                    thread,
                    started: 0.0,
                    buffer: None,
                });
                let at = from.get() as f64 + f64::from(index) * 100.0;
                self.threads[thread].add(at, What::Arrival(id));
            }
        }
    }

    /// Runs until `end`.
    pub(crate) fn run(&mut self, end: Tick) {
        let end = end.get() as f64;
        loop {
            let times = self.threads.iter().map(Thread::next);
            let (index, at) = times
                .enumerate()
                .min_by(|one, other| one.1.total_cmp(&other.1))
                .expect("a thread");
            if at > end {
                return;
            }
            self.turn(index, at);
        }
    }

    fn turn(&mut self, index: usize, at: f64) {
        let now = at;
        let mut busy = self.machine.turn_ns;
        self.threads[index].is_woken = false;
        let mut served = Vec::new();
        while let Some(what) = self.threads[index].due(now) {
            match what {
                What::Arrival(id) => self.arrive(index, id, now),
                What::Served(id) => served.push(id),
                What::Sent(id) => self.sent(index, id, now),
            }
        }
        self.grant(index, now);
        // Commands of devices without latency have completed meanwhile.
        while let Some(what) = self.threads[index].due(now) {
            let What::Served(id) = what else {
                unreachable!("only commands begin and end in a turn")
            };
            served.push(id);
        }
        let arrived: u64 = served
            .iter()
            .map(|id| u64::from(self.requests[*id].bytes))
            .sum();
        self.cached += arrived;
        for id in served {
            self.send(index, id, now, &mut busy);
        }
        while let Some(woken) = self.threads[index].admission.wake() {
            self.threads[woken as usize].is_woken = true;
        }
        self.threads[index].now = now + busy;
    }

    fn arrive(&mut self, index: usize, id: usize, now: f64) {
        let job = &self.jobs[self.requests[id].job];
        if now >= job.until.get() as f64 {
            return;
        }
        let devices = u64::from(job.devices.end - job.devices.start);
        let device =
            job.devices.start + u32::try_from(self.random.next_u64() % devices).expect("few");
        self.requests[id].device = device;
        let wanted = Wanted {
            id: id as u64,
            device,
            bytes: self.requests[id].bytes,
            class: AdmissionClass::Paced,
        };
        let granted = self.threads[index].admission.request(wanted, tick(now));
        if let Some(buffer) = granted {
            self.start(index, id, buffer, now);
        }
    }

    fn grant(&mut self, index: usize, now: f64) {
        while let Some((id, buffer)) = self.threads[index].admission.granted(tick(now)) {
            self.start(index, usize::try_from(id).expect("small"), buffer, now);
        }
    }

    fn start(&mut self, index: usize, id: usize, buffer: Box<DataBuffer>, now: f64) {
        let noise = self.noise();
        let request = &mut self.requests[id];
        request.buffer = Some(buffer);
        request.started = now;
        let latency = self.machine.devices[request.device as usize].get() as f64;
        self.threads[index].add(now + latency * noise, What::Served(id));
    }

    fn send(&mut self, index: usize, id: usize, now: f64, busy: &mut f64) {
        let noise = self.noise() * self.slice_noise(now);
        let (machine, request) = (&self.machine, &self.requests[id]);
        let took = Nanos::new((now - request.started) as u64);
        let kib = f64::from(request.bytes) / 1024.0;
        let hit = (machine.cache_bytes as f64 / self.cached.max(1) as f64).min(1.0);
        let per_kib = machine.hit_ns * hit + machine.miss_ns * (1.0 - hit);
        *busy += (machine.op_ns + kib * per_kib) * noise;
        let ready = now + *busy;
        self.link_free = self.link_free.max(ready) + kib * machine.link_ns;
        let device = request.device;
        self.threads[index].admission.served(device, took);
        self.threads[index].add(self.link_free, What::Sent(id));
    }

    fn sent(&mut self, index: usize, id: usize, now: f64) {
        let request = &mut self.requests[id];
        let buffer = request.buffer.take().expect("in flight");
        let (device, bytes) = (request.device, request.bytes);
        self.cached -= u64::from(bytes);
        self.sent[request.job] += u64::from(bytes);
        let think = self.jobs[request.job].think.get() as f64;
        let thread = request.thread;
        assert_eq!(thread, index);
        let admission = &mut self.threads[index].admission;
        admission.release(buffer, device, bytes, tick(now));
        let at = now + think * self.noise();
        self.threads[index].add(at, What::Arrival(id));
    }

    /// Returns a factor around one.
    fn noise(&mut self) -> f64 {
        let unit = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + (unit - 0.5) * 2.0 * self.machine.noise
    }

    fn slice_noise(&mut self, now: f64) -> f64 {
        let slice = (now / 1e7) as u64;
        if self.slice.0 != slice {
            // Sum of uniform numbers: about normal.
            let sum: f64 = (0..4)
                .map(|_| (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5)
                .sum();
            self.slice = (slice, 1.0 + sum * 1.7 * self.machine.slice_noise);
        }
        self.slice.1
    }

    pub(crate) fn auto(&self) -> Option<AutoStatistics> {
        self.threads[0].admission.statistics().auto
    }
}

impl Thread {
    fn add(&mut self, at: f64, what: What) {
        self.order += 1;
        self.events.push(Reverse((at as u64, self.order, what)));
    }

    fn next(&self) -> f64 {
        let event = self.events.peek().map(|Reverse((at, _, _))| *at as f64);
        let admission = self.admission.next().map(|at| at.get() as f64);
        let woken = self.is_woken.then_some(self.now);
        let next = event.into_iter().chain(admission).chain(woken);
        next.fold(f64::INFINITY, f64::min).max(self.now)
    }

    fn due(&mut self, now: f64) -> Option<What> {
        let Reverse((at, _, _)) = self.events.peek()?;
        if *at as f64 > now {
            return None;
        }
        self.events.pop().map(|Reverse((_, _, what))| what)
    }
}

fn tick(at: f64) -> Tick {
    Tick::new(at as u64)
}
