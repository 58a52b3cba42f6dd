//! The figures as server-sent events.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use fathom_target::{Client, Reply};

use crate::live::{Hub, RunPhase};

/// Returns the reply without events, for `HEAD`.
pub(super) fn head() -> Reply {
    Reply::ok("text/event-stream", "")
}

/// Sends the figures whenever they change, until the run or the connection ends.
///
/// # Errors
/// That of the socket; `TimedOut` if the client reads nothing for a second.
pub(super) fn send(
    client: &mut Client<TcpStream>,
    hub: &Hub,
    ends: &dyn Fn() -> bool,
) -> io::Result<()> {
    client.renew();
    client.write_all(head().endless_head().as_bytes())?;
    // A browser that has lost the connection tries again after this time.
    client.write_all(b"retry: 2000\n\n")?;
    let mut seen = 0;
    loop {
        let next = hub.next(seen, PATIENCE);
        client.renew();
        match next {
            Some((version, figures)) => {
                seen = version;
                client.write_all(b"data: ")?;
                client.write_all(figures.json().as_bytes())?;
                client.write_all(b"\n\n")?;
                if figures.phase == RunPhase::Ended {
                    return Ok(());
                }
            }
            None if ends() => return Ok(()),
            // Finds out that a client has gone.
            None => client.write_all(b": still here\n\n")?,
        }
    }
}

/// Longest time without a word: before the first job starts there is nothing to tell.
const PATIENCE: Duration = Duration::from_secs(1);
