//! One device for several threads: it stays at its home, and commands and completions travel.
//!
//! ```text
//!  thread 1: RemoteDevice ──┐ commands                  ┌─► device
//!  thread 2: RemoteDevice ──┼──────────► HomeDevice ────┤   (thread 0)
//!                           └◄────────── completions ◄──┘
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fathom_core::{BlockDevice, Command, CommandData, Finished, Geometry, Tick};

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Meeting point of the threads that use one device.
///
/// Made for devices whose state cannot be in two places, such as a modelled disk: layers, engines
/// and models need not be `Send`, so a mutex around the device would not do.
pub struct Exchange {
    /// Commands for the home.
    commands: Mutex<VecDeque<Sent>>,
    /// Completions for each thread.
    finished: Box<[Mutex<VecDeque<Finished>>]>,
    rouse: Rouse,
}

/// Function that wakes a thread: its `completed` is due.
pub type Rouse = Arc<dyn Fn(u32) + Send + Sync>;

/// Command of another thread.
#[derive(Debug)]
struct Sent {
    thread: u32,
    command: Command,
    data: CommandData,
}

/// Device at its home thread.
///
/// # Cost
/// For a thread's own commands a table entry; for those of others a lock, a wake-up each way, and
/// whatever time the two threads take to turn.
#[derive(Debug)]
pub struct HomeDevice {
    exchange: Arc<Exchange>,
    thread: u32,
    device: Box<dyn BlockDevice>,
    geometry: Geometry,
    /// Thread, its tag, and the buffer that the device did not take, by the device's tag.
    owners: Vec<Owner>,
    free: Vec<u32>,
    /// Completions of this thread that a turn for others has collected.
    ready: VecDeque<Finished>,
}

#[derive(Debug, Default)]
struct Owner {
    thread: u32,
    tag: u32,
    /// A remote command's buffer, while the device lets the driver keep it.
    data: CommandData,
}

/// Device as another thread sees it.
#[derive(Debug)]
pub struct RemoteDevice {
    exchange: Arc<Exchange>,
    home: u32,
    thread: u32,
    geometry: Geometry,
}

impl Exchange {
    /// Creates the exchange of threads 0 to `threads`.
    #[must_use]
    pub fn new(threads: u32, rouse: Rouse) -> Arc<Self> {
        Arc::new(Self {
            commands: Mutex::new(VecDeque::new()),
            finished: (0..threads).map(|_| Mutex::default()).collect(),
            rouse,
        })
    }

    fn commands(&self) -> MutexGuard<'_, VecDeque<Sent>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finished(&self, thread: u32) -> MutexGuard<'_, VecDeque<Finished>> {
        let queue = &self.finished[thread as usize];
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share(&self, geometry: Geometry) -> Geometry {
        let threads = u32::try_from(self.finished.len()).unwrap_or(u32::MAX);
        Geometry {
            in_flight_max: (geometry.in_flight_max / threads).max(1),
            ..geometry
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exchange({} threads)", self.finished.len())
    }
}

impl HomeDevice {
    /// Makes `thread` the home of a device. Each thread has an equal share of the commands that it
    /// takes at once.
    ///
    /// # Panics
    /// If the device takes fewer commands than there are threads.
    #[must_use]
    pub fn new(exchange: Arc<Exchange>, thread: u32, device: Box<dyn BlockDevice>) -> Self {
        let geometry = device.geometry();
        let takes_all = geometry.in_flight_max as usize >= exchange.finished.len();
        assert!(takes_all, "each thread has commands in flight");
        Self {
            geometry: exchange.share(geometry),
            exchange,
            thread,
            device,
            owners: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    fn start_for(
        &mut self,
        mut owner: Owner,
        command: &Command,
        data: &mut CommandData,
        now: Tick,
    ) {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.owners.push(Owner::default());
            u32::try_from(self.owners.len() - 1).unwrap_or(u32::MAX)
        });
        self.device.start(&Command { tag, ..*command }, data, now);
        if owner.thread != self.thread {
            owner.data = data.take();
        }
        self.owners[tag as usize] = owner;
    }

    fn start_remote(&mut self, now: Tick) {
        loop {
            let Some(sent) = self.exchange.commands().pop_front() else {
                return;
            };
            let owner = Owner {
                thread: sent.thread,
                tag: sent.command.tag,
                data: None,
            };
            let mut data = sent.data;
            self.start_for(owner, &sent.command, &mut data, now);
        }
    }
}

impl BlockDevice for HomeDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        let owner = Owner {
            thread: self.thread,
            tag: command.tag,
            data: None,
        };
        self.start_for(owner, command, data, now);
    }

    fn next(&self) -> Option<Tick> {
        let ready = self.ready.front().map(|finished| finished.at);
        let sent = (!self.exchange.commands().is_empty()).then_some(Tick::ZERO);
        let next = self.device.next().into_iter();
        next.chain(ready).chain(sent).min()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        if let Some(finished) = self.ready.pop_front() {
            return Some(finished);
        }
        self.start_remote(now);
        while let Some(mut finished) = self.device.completed(now) {
            self.free.push(finished.tag);
            let owner = std::mem::take(&mut self.owners[finished.tag as usize]);
            finished.tag = owner.tag;
            if owner.thread == self.thread {
                return Some(finished);
            }
            finished.data = finished.data.or(owner.data);
            self.exchange.finished(owner.thread).push_back(finished);
            (self.exchange.rouse)(owner.thread);
        }
        None
    }

    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        self.device.descriptors(add);
    }
}

impl RemoteDevice {
    /// Creates the view of `thread` on the device whose home is thread `home` and whose geometry,
    /// undivided, is `geometry`.
    #[must_use]
    pub fn new(exchange: Arc<Exchange>, home: u32, thread: u32, geometry: Geometry) -> Self {
        Self {
            geometry: exchange.share(geometry),
            exchange,
            home,
            thread,
        }
    }
}

impl BlockDevice for RemoteDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Sends the command, with its buffer, to the device's home.
    fn start(&mut self, command: &Command, data: &mut CommandData, _now: Tick) {
        let sent = Sent {
            thread: self.thread,
            command: *command,
            data: data.take(),
        };
        let mut commands = self.exchange.commands();
        let was_empty = commands.is_empty();
        commands.push_back(sent);
        drop(commands);
        // A home that has not taken the earlier ones has a wake-up under way.
        if was_empty {
            (self.exchange.rouse)(self.home);
        }
    }

    fn next(&self) -> Option<Tick> {
        let finished = self.exchange.finished(self.thread);
        finished.front().map(|finished| finished.at)
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        let mut finished = self.exchange.finished(self.thread).pop_front()?;
        // The clocks of two threads are read at different times.
        finished.at = finished.at.min(now);
        Some(finished)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use fathom_core::{DataBuffer, Direction, OpKind};

    use super::*;
    use crate::SharedMemory;

    fn start(
        device: &mut dyn BlockDevice,
        tag: u32,
        direction: Direction,
        fill: u8,
    ) -> CommandData {
        let mut buffer = Box::new(DataBuffer::new(4096));
        buffer.bytes_mut().fill(fill);
        let mut data = Some(buffer);
        let command = Command {
            tag,
            kind: OpKind::Data(direction),
            offset: 8192,
            length: 4096,
        };
        device.start(&command, &mut data, Tick::new(5));
        data
    }

    #[test]
    fn commands_of_two_threads_meet_at_the_home() {
        let roused: Arc<[AtomicU32; 2]> = Arc::default();
        let rouse = Arc::clone(&roused);
        let rouse = move |thread: u32| {
            rouse[thread as usize].fetch_add(1, Ordering::Relaxed);
        };
        let exchange = Exchange::new(2, Arc::new(rouse));
        let memory = SharedMemory::new(1 << 20);
        let geometry = memory.geometry();
        let mut home = HomeDevice::new(Arc::clone(&exchange), 0, Box::new(memory));
        let mut remote = RemoteDevice::new(exchange, 0, 1, geometry);
        assert_eq!(home.geometry(), remote.geometry());

        let sent = start(&mut remote, 3, Direction::Write, 7);
        assert_eq!(sent, None, "the buffer travels with the command");
        assert_eq!(remote.next(), None);
        assert_eq!(roused[0].load(Ordering::Relaxed), 1);
        assert_eq!(home.next(), Some(Tick::ZERO));
        assert_eq!(home.completed(Tick::new(6)), None, "it is the other one's");
        assert_eq!(roused[1].load(Ordering::Relaxed), 1);
        let finished = remote.completed(Tick::new(6)).expect("completed");
        assert_eq!((finished.tag, finished.result), (3, 4096));
        assert!(finished.data.is_some());

        // Equal tags of two threads are two commands.
        let mut kept = start(&mut home, 3, Direction::Read, 0);
        start(&mut remote, 3, Direction::Read, 0);
        let own = home.completed(Tick::new(7)).expect("completed");
        assert_eq!((own.tag, own.data), (3, None));
        assert_eq!(kept.take().map(|data| data.bytes()[0]), Some(7));
        assert_eq!(home.completed(Tick::new(7)), None);
        let other = remote.completed(Tick::new(7)).expect("completed");
        assert_eq!(other.data.map(|data| data.bytes()[0]), Some(7));
        assert_eq!(remote.next(), None);
        assert_eq!(home.next(), None);
    }
}
