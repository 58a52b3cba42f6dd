//! Ways to wait for a socket.

use std::hint;
use std::io;
use std::net::TcpStream;

use anyhow::{Result, bail};
use fathom_sys::epoll::{Epoll, Events, Interest};

/// Way to wait, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sleep in reads and writes.
    Block,
    /// Sleep in epoll.
    Epoll,
    /// Try again at once.
    Poll,
}

impl Kind {
    pub(crate) fn parse(word: &str) -> Result<Self> {
        Ok(match word {
            "block" => Self::Block,
            "epoll" => Self::Epoll,
            "poll" => Self::Poll,
            other => bail!("no way to wait `{other}`: block, epoll or poll"),
        })
    }
}

/// Way to wait for one socket.
#[derive(Debug)]
pub(crate) struct Wait(Option<(Epoll, Events)>);

impl Wait {
    /// Prepares a socket.
    pub(crate) fn new(stream: &TcpStream, kind: Kind) -> io::Result<Self> {
        stream.set_nonblocking(kind != Kind::Block)?;
        if kind != Kind::Epoll {
            return Ok(Self(None));
        }
        let epoll = Epoll::new()?;
        epoll.add(stream, 0, Interest::Changes)?;
        Ok(Self(Some((epoll, Events::new(1)))))
    }

    /// Waits after the socket has refused to block.
    pub(crate) fn pause(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Some((epoll, events)) => epoll.wait(events, None),
            None => {
                hint::spin_loop();
                Ok(())
            }
        }
    }
}
