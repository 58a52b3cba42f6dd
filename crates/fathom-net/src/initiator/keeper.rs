//! Thread that keeps a controller connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use fathom_core::{Nanos, Tick};
use fathom_nvme::ControllerFacts;
use fathom_sys::epoll::{Epoll, Events, Interest, Waker};

use crate::initiator::admin::{Admin, QueueNeeds, Terms};
use crate::initiator::error::LinkError;
use crate::initiator::link::Link;

/// Handle of a keeper, on the job's thread.
#[derive(Debug)]
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    news: Receiver<News>,
    thread: Option<JoinHandle<()>>,
}

/// Change of a controller's state.
#[derive(Debug)]
pub(crate) enum News {
    /// It is connected.
    Up(Connected),
    /// It is lost; the keeper tries to connect again.
    Down,
    /// It cannot be reached, and the keeper has given up.
    Failed(LinkError),
}

/// A controller that is connected.
#[derive(Debug)]
pub(crate) struct Connected {
    /// Number of the connection, counted from 1.
    pub(crate) number: u32,
    pub(crate) facts: ControllerFacts,
    /// I/O queues.
    pub(crate) links: Vec<Link>,
}

/// State that both threads see.
#[derive(Debug)]
struct Shared {
    /// Wakes the keeper.
    waker: Waker,
    /// Wakes the job.
    job: Arc<Waker>,
    /// There are news that the job has not seen.
    has_news: AtomicBool,
    /// The job wants the controller to be shut down.
    is_stopped: AtomicBool,
    /// Number of the last connection of which the job has lost an I/O queue. A number, so that a
    /// late report of an old connection does not end its successor.
    lost: AtomicU32,
    /// Number of the last connection that was of use to the job.
    of_use: AtomicU32,
}

impl Keeper {
    /// Starts a thread that connects to a controller; its news wake the job by `job`.
    pub(crate) fn start(
        terms: Terms,
        needs: QueueNeeds,
        job: Arc<Waker>,
    ) -> Result<Self, LinkError> {
        let waker = Waker::new().map_err(|error| LinkError::Socket("eventfd", error))?;
        let shared = Arc::new(Shared {
            waker,
            job,
            has_news: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            lost: AtomicU32::new(0),
            of_use: AtomicU32::new(0),
        });
        let (sender, news) = channel();
        let body = Body {
            terms,
            needs,
            shared: Arc::clone(&shared),
            news: sender,
        };
        let thread = thread::Builder::new().name("nvme-keeper".into());
        let thread = thread.spawn(move || body.run());
        let thread = thread.map_err(|error| LinkError::Socket("clone", error))?;
        Ok(Self {
            shared,
            news,
            thread: Some(thread),
        })
    }

    /// Returns the next change, if there is one. Costs a load where there is none.
    #[inline]
    pub(crate) fn news(&self) -> Option<News> {
        // Acquire: pairs with the release in `Body::tell`, so that the channel has the news.
        if !self.shared.has_news.load(Ordering::Acquire) {
            return None;
        }
        let next = self.news.try_recv().ok();
        if next.is_none() {
            // Cleared before the second look: news after it set the flag again.
            self.shared.has_news.store(false, Ordering::Release);
            return self.news.try_recv().ok();
        }
        next
    }

    /// Waits for the next change. `None` if the keeper has ended.
    pub(crate) fn wait_for_news(&self) -> Option<News> {
        self.news.recv().ok()
    }

    /// Reports that a connection was of use: an op has completed on it, or none has waited for it.
    /// A controller that connects, but ends each connection before, is given up like one that
    /// cannot be reached.
    pub(crate) fn was_of_use(&self, number: u32) {
        // Release: pairs with the acquire in `Body`.
        self.shared.of_use.store(number, Ordering::Release);
    }

    /// Reports that an I/O queue is lost: the controller is to be reconnected.
    pub(crate) fn lost(&self, number: u32) {
        // Release: pairs with the acquire in `Body`.
        self.shared.lost.store(number, Ordering::Release);
        self.shared.waker.wake();
    }
}

impl Drop for Keeper {
    /// Shuts the controller down and waits for the thread.
    fn drop(&mut self) {
        // Release: pairs with the acquire in `Body`.
        self.shared.is_stopped.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _it_panicked = thread.join();
        }
    }
}

/// The thread's side.
struct Body {
    terms: Terms,
    needs: QueueNeeds,
    shared: Arc<Shared>,
    news: Sender<News>,
}

impl Body {
    fn run(self) {
        // The first attempt fails at once; later ones are repeated for a while.
        let mut give_up_at = Tick::ZERO;
        let mut pause = PAUSE_MIN;
        let reconnect = self.terms.options.reconnect;
        let mut number = 1;
        while !self.is_stopped() {
            match self.connect() {
                Ok((admin, links)) => {
                    self.tell(News::Up(Connected {
                        number,
                        facts: admin.facts().clone(),
                        links,
                    }));
                    let Some(error) = self.keep(admin, number) else {
                        return;
                    };
                    let now = self.terms.clock.now();
                    let was_of_use = self.shared.of_use.load(Ordering::Acquire) == number;
                    if number == 1 || was_of_use {
                        give_up_at = now + reconnect;
                        pause = PAUSE_MIN;
                    } else {
                        self.pause(pause);
                        pause = PAUSE_MAX.min(pause + pause);
                    }
                    if now >= give_up_at {
                        return self.tell(News::Failed(error));
                    }
                    self.tell(News::Down);
                    number += 1;
                }
                Err(error) if self.terms.clock.now() >= give_up_at => {
                    return self.tell(News::Failed(error));
                }
                Err(_tried_again) => {
                    self.pause(pause);
                    pause = PAUSE_MAX.min(pause + pause);
                }
            }
        }
    }

    fn connect(&self) -> Result<(Admin, Vec<Link>), LinkError> {
        let mut admin = Admin::connect(&self.terms)?;
        let links = admin.connect_queues(&self.terms, self.needs)?;
        Ok((admin, links))
    }

    /// Keeps the controller alive until it is lost, and returns the reason; `None` if it was shut
    /// down instead.
    fn keep(&self, mut admin: Admin, number: u32) -> Option<LinkError> {
        let is_lost = || self.shared.lost.load(Ordering::Acquire) == number;
        match admin.keep(&self.shared.waker, || self.is_stopped() || is_lost()) {
            Err(error) => Some(error),
            // Abandoned, not shut down: it may not answer.
            Ok(()) if is_lost() => Some(LinkError::Closed),
            Ok(()) => {
                admin.shut_down();
                None
            }
        }
    }

    /// Sleeps unless it is woken.
    fn pause(&self, span: Nanos) {
        let waited = Epoll::new().and_then(|epoll| {
            epoll.add(&self.shared.waker, 0, Interest::Readable)?;
            epoll.wait(&mut Events::new(1), Some(span))
        });
        if waited.is_err() {
            fathom_sys::clock::sleep(span);
        }
        if !self.is_stopped() {
            self.shared.waker.clear();
        }
    }

    fn tell(&self, news: News) {
        // Fails if the job has gone, which then waits for this thread to end.
        let _heard = self.news.send(news);
        // Release: pairs with the acquire in `Keeper::news`.
        self.shared.has_news.store(true, Ordering::Release);
        self.shared.job.wake();
    }

    fn is_stopped(&self) -> bool {
        self.shared.is_stopped.load(Ordering::Acquire)
    }
}

/// Pauses between attempts to connect again.
const PAUSE_MIN: Nanos = Nanos::from_millis(50);
const PAUSE_MAX: Nanos = Nanos::from_millis(1000);
