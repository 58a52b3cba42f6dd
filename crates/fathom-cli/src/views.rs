//! Views of a run in progress: the terminal (`--live`) and the page (`--serve`).

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use fathom_core::Nanos;
use fathom_job::{Plan, Settings};
use fathom_setup::RunEvent;

use crate::failure::with_hint;
use crate::live::{Hub, INTERVAL, LiveState, RunPhase};
use crate::output::{self, StandardStream};
use crate::screen::Screen;
use crate::serve::Server;

/// Views of a run, and the figures that they show.
///
/// [`open`](Self::open) them before the run, so that a port in use or a missing terminal ends it
/// before a job starts; pass every event to [`hear`](Self::hear); [`end`](Self::end) them before
/// the report.
pub(crate) struct Views(Option<OpenViews>);

/// Views of which there is at least one.
struct OpenViews {
    state: LiveState,
    hub: Arc<Hub>,
    server: Option<Server>,
    screen: Option<Screen>,
}

impl Views {
    /// Opens the views that the settings ask for.
    pub(crate) fn open(plan: &Plan, settings: &Settings) -> Result<Self> {
        if !settings.is_viewed() {
            return Ok(Self(None));
        }
        let hub = Arc::new(Hub::default());
        let screen = settings.live.then(|| Screen::open(&hub)).transpose()?;
        let server = settings.serve.map(|address| serve(address, &hub));
        Ok(Self(Some(OpenViews {
            state: LiveState::new(plan),
            server: server.transpose()?,
            screen,
            hub,
        })))
    }

    /// Returns the interval at which they take progress.
    pub(crate) fn interval(&self) -> Option<Nanos> {
        self.0.as_ref().map(|_| INTERVAL)
    }

    /// Takes an event of the run into the figures.
    pub(crate) fn hear(&mut self, event: &RunEvent<'_>) {
        if let Self(Some(views)) = self {
            views.hear(event);
        }
    }

    /// Shows the last figures, and closes the views.
    pub(crate) fn end(self) {
        if let Self(Some(views)) = self {
            views.end();
        }
    }
}

impl OpenViews {
    fn hear(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Planned(jobs) => self.state.planned(jobs),
            RunEvent::Warning(warning) | RunEvent::Lost(warning) => self.state.warn(warning),
            RunEvent::Progress(snapshot) => {
                self.state.sample(snapshot);
                self.publish();
                if let Some(screen) = &mut self.screen {
                    screen.show();
                }
                return;
            }
            RunEvent::Stopping => self.state.turns(RunPhase::Stopping),
            _ => return,
        }
        self.publish();
    }

    fn end(mut self) {
        self.state.turns(RunPhase::Ended);
        self.publish();
        if let Some(screen) = self.screen.take() {
            screen.leave();
        }
        if let Some(server) = self.server.take() {
            server.finish();
        }
    }

    fn publish(&self) {
        self.hub.publish(Arc::new(self.state.figures()));
    }
}

/// Starts the server and prints its address.
fn serve(address: SocketAddr, hub: &Arc<Hub>) -> Result<Server> {
    let server = Server::start(address, Arc::clone(hub)).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => Some("choose another port; 0 takes a free one"),
            ErrorKind::AddrNotAvailable => Some("use an address of this machine: `ip address`"),
            ErrorKind::PermissionDenied => Some("use a port from 1024"),
            _ => None,
        };
        with_hint(
            format!("--serve: cannot listen on {address}: {error}"),
            hint,
        )
    })?;
    let address = server.address();
    let mut text = format!("fathom: serving http://{address}/ until the run ends\n");
    if !address.ip().is_loopback() {
        text += "fathom: warning: --serve-any-host: whoever reaches this address can read the \
                 figures of this run\n";
    }
    output::print(StandardStream::Error, &text);
    Ok(server)
}
