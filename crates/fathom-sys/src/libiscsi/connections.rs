//! Connections of the files: connecting, logging in and out, serving, and their loss.

use std::ffi::{c_int, c_void};
use std::io;

use fathom_core::{Errno, Nanos};

use super::abi::{Context, REDIRECT};
use super::callbacks::returned;
use super::session::{IscsiPortal, Session};
use super::{Iscsi, IscsiLogin, Link, NO_PLACE, reasons};
use crate::library::{LibraryError, c_text};

impl Iscsi {
    /// Connects a file to a portal, over TCP.
    ///
    /// # Errors
    /// The library's words, or that the host did not answer in time.
    ///
    /// # Panics
    /// If the file is connected.
    pub fn connect(
        &mut self,
        file: u32,
        portal: &IscsiPortal,
        timeout: Nanos,
    ) -> Result<(), LibraryError> {
        let address = c_text(&portal.address)?;
        match &self.sessions[file as usize] {
            Link::Open(_) => panic!("the file is connected"),
            Link::Lost(errno, text) => return Err(lost(*errno, text)),
            Link::Closed => {}
        }
        let session = Session::create(self.functions, portal)?;
        self.sessions[file as usize] = Link::Open(session);
        self.perform(file, timeout, |own, context, private| {
            // SAFETY: the context exists, the text ends with a zero and is copied, and `private` is
            // the call of the callback.
            unsafe {
                (own.functions.iscsi_connect_async)(context, address.as_ptr(), returned, private)
            }
        })?;
        Ok(())
    }

    /// Logs a connected file in.
    ///
    /// # Errors
    /// The library's words, with the target's reason, or that it did not answer in time.
    pub fn login(&mut self, file: u32, timeout: Nanos) -> Result<IscsiLogin, LibraryError> {
        let status = self.perform(file, timeout, |own, context, private| {
            // SAFETY: the context exists, and `private` is the call of the callback.
            unsafe { (own.functions.iscsi_login_async)(context, returned, private) }
        })?;
        match &mut self.sessions[file as usize] {
            Link::Open(session) if status == REDIRECT => {
                Ok(IscsiLogin::Elsewhere(session.address()))
            }
            Link::Open(session) => {
                session.is_logged_in = true;
                Ok(IscsiLogin::Done)
            }
            Link::Lost(errno, text) => Err(lost(*errno, text)),
            Link::Closed => Err(lost(Errno::EBADF, "")),
        }
    }

    /// Ends a session, unless its connection is lost. The target closes the connection.
    ///
    /// # Errors
    /// The target did not answer in time.
    pub fn logout(&mut self, file: u32, timeout: Nanos) -> Result<(), LibraryError> {
        match &mut self.sessions[file as usize] {
            Link::Open(session) if session.is_logged_in => session.is_logged_in = false,
            _ => return Ok(()),
        }
        let ended = self.perform(file, timeout, |own, context, private| {
            // SAFETY: the context exists, and `private` is the call of the callback.
            unsafe { (own.functions.iscsi_logout_async)(context, returned, private) }
        });
        self.end(file, Link::Closed, Errno::ECANCELED);
        match ended {
            Err(LibraryError::Silent(timeout)) => Err(LibraryError::Silent(timeout)),
            _ => Ok(()),
        }
    }

    /// Ends the connection of a file; its ops in flight fail.
    pub fn disconnect(&mut self, file: u32) {
        let before = self.end(file, Link::Closed, Errno::ECANCELED);
        if let Link::Lost(..) = before {
            self.sessions[file as usize] = before;
        }
        self.settle();
    }

    /// Returns whether a file has a session that takes commands.
    #[must_use]
    pub fn is_open(&self, file: u32) -> bool {
        self.session(file)
            .is_some_and(|session| session.is_logged_in)
    }

    /// Gives up the connections with commands in flight: these fail, and so do later ones.
    #[cold]
    pub fn abandon(&mut self, errno: Errno, text: &str) {
        for file in 0..self.sessions.len() {
            // Cannot be cut: files are numbered by 32 bits.
            let file = u32::try_from(file).unwrap_or(u32::MAX);
            if self.is_busy(file) {
                let text = format!("{}: {text}, with commands in flight", self.peer(file));
                self.lose(file, errno, text);
            }
        }
        self.settle();
    }

    /// Starts the call of a connection or login, and waits until it has ended; returns its status.
    fn perform(
        &mut self,
        file: u32,
        timeout: Nanos,
        start: impl FnOnce(&Self, *mut Context, *mut c_void) -> c_int,
    ) -> Result<i32, LibraryError> {
        self.perform_as(self.calls.waiting(), file, timeout, start)
    }

    /// Starts a call and waits until it has ended; returns its status.
    pub(super) fn perform_as(
        &mut self,
        number: u32,
        file: u32,
        timeout: Nanos,
        start: impl FnOnce(&Self, *mut Context, *mut c_void) -> c_int,
    ) -> Result<i32, LibraryError> {
        let (context, is_logged_in) = match &self.sessions[file as usize] {
            Link::Open(session) => (session.context(), session.is_logged_in),
            Link::Lost(errno, text) => return Err(lost(*errno, text)),
            Link::Closed => return Err(lost(Errno::EBADF, "")),
        };
        self.free_task(number);
        self.calls.call(number).extra.borrow_mut().file = file;
        let private = self.calls.begin(number, NO_PLACE);
        if start(self, context, private) < 0 {
            self.calls.end(number, Errno::EIO.result());
        }
        let end = crate::clock::monotonic_ns().saturating_add(timeout.get());
        while self.calls.is_in_flight(number) {
            let left = end.saturating_sub(crate::clock::monotonic_ns());
            if left == 0 {
                let error = LibraryError::Silent(timeout);
                let text = format!("{}: {error}", self.peer(file));
                self.lose(file, Errno::ETIMEDOUT, text);
                self.settle();
                return Err(error);
            }
            // The library may change its socket on the way.
            self.serve_once(Some(Nanos::new(left).min(STEP)));
        }
        let mut own = 0;
        while let Some((other, status)) = self.calls.next() {
            match other == number {
                true => own = status,
                false => self.complete(other, status),
            }
        }
        match &self.sessions[file as usize] {
            // Its text has the reason; there may have been no connection yet.
            Link::Lost(_, text) if !is_logged_in => Err(LibraryError::Call {
                errno: None,
                text: text.clone(),
            }),
            Link::Lost(errno, text) => Err(lost(*errno, text)),
            _ if (0..=0xff).contains(&own) || own == REDIRECT => Ok(own),
            _ => Err(LibraryError::Call {
                errno: None,
                text: self.error_text(file),
            }),
        }
    }

    pub(super) fn serve_once(&mut self, timeout: Option<Nanos>) -> bool {
        self.sockets.clear();
        self.served.clear();
        for (file, link) in (0..).zip(&self.sessions) {
            if let Link::Open(session) = link {
                let (descriptor, events) = session.socket();
                self.sockets.add(descriptor, events);
                self.served.push(file);
            }
        }
        self.sockets.wait(timeout);
        let mut happened = false;
        for place in 0..self.served.len() {
            let (file, events) = (self.served[place], self.sockets.events(place));
            let Some(session) = self.session(file) else {
                continue;
            };
            let nothing = events.of_library == 0 && !events.is_closed;
            if nothing {
                continue;
            }
            happened = true;
            // The library's message about an error of its socket is lost by what it does next.
            if let Some(errno) = self.sockets.take_error(place) {
                self.lose_connection(file, Some(errno));
                continue;
            }
            let failed = session.service(events.of_library);
            // Before the login, the callback reports the end of a connection.
            if failed || events.is_closed && session.is_logged_in {
                self.lose_connection(file, None);
            }
        }
        happened
    }

    fn is_busy(&self, file: u32) -> bool {
        (0..self.depth).any(|number| {
            let is_of_file = self.calls.call(number).extra.borrow().file == file;
            is_of_file && self.calls.is_in_flight(number)
        })
    }

    /// Gives up a connection that has ended, by an error or without one.
    #[cold]
    pub(super) fn lose_connection(&mut self, file: u32, errno: Option<Errno>) {
        let reason = match (errno, self.error_text(file)) {
            (Some(errno), _) => io::Error::from(errno).to_string(),
            (None, text) => reasons::of_loss(&text),
        };
        let peer = self.peer(file);
        let text = match (self.is_open(file), self.is_busy(file)) {
            (true, true) => {
                format!("{peer}: no connection to the target: {reason}, with commands in flight")
            }
            (true, false) => format!("{peer}: no connection to the target: {reason}"),
            // What connects or logs in names the target.
            (false, _) => format!("no connection to the target: {reason}"),
        };
        self.lose(file, errno.unwrap_or(Errno::ECONNRESET), text);
    }

    /// Gives up the connection of a file: its calls end with an errno, and so do later ones.
    #[cold]
    pub(super) fn lose(&mut self, file: u32, errno: Errno, text: String) {
        if self.session(file).is_some() {
            self.calls.explain(errno, text.clone());
            self.end(file, Link::Lost(errno, text), errno);
        }
    }

    /// Ends the session of a file and its calls; returns what was there.
    pub(super) fn end(&mut self, file: u32, link: Link, errno: Errno) -> Link {
        let calls = &self.calls;
        let of_file =
            (0..=calls.waiting()).filter(|number| calls.call(*number).extra.borrow().file == file);
        let numbers: Vec<u32> = of_file.collect();
        // Callbacks of the library as it ends the session find their calls ended.
        for number in &numbers {
            calls.end(*number, errno.result());
        }
        let mut before = std::mem::replace(&mut self.sessions[file as usize], link);
        if let Link::Open(_) = before {
            before = Link::Closed;
        }
        for number in numbers {
            self.free_task(number);
        }
        before
    }

    /// Returns the address of a file's target, for messages.
    pub(super) fn peer(&self, file: u32) -> &str {
        self.session(file).map_or("", |session| &session.peer)
    }

    /// Returns the library's message about the latest failure of a session.
    #[cold]
    pub(super) fn error_text(&self, file: u32) -> String {
        self.session(file).map(Session::error).unwrap_or_default()
    }
}

fn lost(errno: Errno, text: &str) -> LibraryError {
    LibraryError::Call {
        errno: Some(errno),
        text: text.into(),
    }
}

/// Longest wait for one socket during a call that may use several.
const STEP: Nanos = Nanos::from_millis(20);
