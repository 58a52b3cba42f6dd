//! The view on the terminal: a thread of its own, so that a terminal that is slow or stopped
//! (Ctrl-S) delays nothing but the view.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use crossterm::event::{self, Event};
use fathom_sys::signals;
use fathom_sys::terminal::{TakenTerminal, interrupt_self};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use super::draw::{Glyphs, draw, job_rows};
use super::keys::{Request, ViewState};
use crate::failure::with_hint;
use crate::held_output;
use crate::live::Hub;
use crate::output::{self, StandardStream};

/// View on the terminal of standard error, which leaves standard output to the report.
pub(crate) struct Screen {
    hub: Arc<Hub>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// It was shown, or could not be.
    tried: bool,
}

impl Screen {
    /// Checks that there is a terminal; nothing is shown yet.
    pub(crate) fn open(hub: &Arc<Hub>) -> Result<Self> {
        let why = if !io::stderr().is_terminal() {
            "standard error is not a terminal"
        } else if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            "the terminal that TERM names cannot position text"
        } else {
            return Ok(Self {
                hub: Arc::clone(hub),
                ends: Arc::default(),
                thread: None,
                tried: false,
            });
        };
        let hint = "run it in a terminal, or use `--serve 0`, which has the same figures for a \
                    browser";
        Err(with_hint(format!("--live: {why}"), Some(hint)))
    }

    /// Takes the terminal over, if that was not done yet.
    pub(crate) fn show(&mut self) {
        if std::mem::replace(&mut self.tried, true) {
            return;
        }
        held_output::hold();
        let started = TakenTerminal::take(io::stderr().as_fd()).and_then(|taken| {
            let (hub, ends) = (Arc::clone(&self.hub), Arc::clone(&self.ends));
            // If there is no thread, the terminal is given back as `taken` is dropped.
            Builder::new().name("live".into()).spawn(move || {
                // The watcher's threads take signals: here their handlers would wait for the end of
                // the frame that they interrupt.
                signals::block_all_in_this_thread()?;
                run(&taken, &hub, &ends)
            })
        });
        match started {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                output::print_held();
                let text = format!("fathom: warning: --live: cannot take the terminal: {error}\n");
                output::print(StandardStream::Error, &text);
            }
        }
    }

    /// Gives the terminal back, and prints what was held back meanwhile.
    pub(crate) fn leave(mut self) {
        // Relaxed: the flag guards no other memory.
        self.ends.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        output::print_held();
        // A panic of the thread has been reported by the hook.
        if let Some(Ok(Err(error))) = ended {
            let text = format!("fathom: warning: --live: the view ended before the run: {error}\n");
            output::print(StandardStream::Error, &text);
        }
    }
}

/// Draws until the run ends or the terminal is given back.
fn run(taken: &TakenTerminal, hub: &Hub, ends: &AtomicBool) -> io::Result<()> {
    let glyphs = Glyphs::of_locale();
    let mut terminal = Frames::of(taken)?;
    let mut view = ViewState::default();
    let (mut seen, mut figures) = hub.latest();
    let (mut resumed, mut stale) = (taken.resumed(), true);
    while !ends.load(Ordering::Relaxed) && taken.is_held() {
        let latest = hub.latest();
        if latest.0 != seen && !view.paused {
            (seen, figures) = latest;
            stale = true;
        }
        if std::mem::replace(&mut resumed, taken.resumed()) != resumed {
            // The screen is empty again, and so is what a new one believes to be there.
            terminal = Frames::of(taken)?;
            stale = true;
        }
        if taken.is_shown() && std::mem::take(&mut stale) {
            terminal.draw(|frame| draw(frame.buffer_mut(), &figures, &view, glyphs))?;
        }
        if !event::poll(KEY_WAIT)? {
            continue;
        }
        stale = true;
        if let Event::Key(key) = event::read()?
            && view.press(&key, figures.tracks.len(), job_rows(&figures, &view)) == Request::Stop
        {
            interrupt_self()?;
        }
    }
    Ok(())
}

/// Frames on their way to the terminal, each written as one, or not at all once it is given back.
struct Frames<'a> {
    taken: &'a TakenTerminal,
    frame: Vec<u8>,
}

impl<'a> Frames<'a> {
    fn of(taken: &'a TakenTerminal) -> io::Result<Terminal<CrosstermBackend<Self>>> {
        let frame = Vec::new();
        Terminal::new(CrosstermBackend::new(Self { taken, frame }))
    }
}

impl Write for Frames<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.frame.write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        let written = self.taken.while_shown(|| io::stderr().write_all(&frame));
        written.unwrap_or(Ok(()))
    }
}

/// Wait for a key, after which the figures are looked at: shorter than a change of theirs.
const KEY_WAIT: Duration = Duration::from_millis(100);
