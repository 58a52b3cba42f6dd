//! A session with a target: one connection, and the unit whose commands it carries.

use std::ffi::{CString, c_int};
use std::fmt;
use std::process;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::abi::{Context, DIGEST_OF_TARGET, Functions, SESSION_NORMAL};
use crate::library::{self, LibraryError, c_text};

/// Target to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IscsiPortal {
    /// `HOST:PORT`; an IPv6 address in brackets.
    pub address: String,
    /// Name of the target.
    pub target: String,
    /// Logical unit.
    pub unit: u16,
    /// Name of the initiator.
    pub initiator: String,
    /// User and password of this side (CHAP).
    pub user: Option<(String, IscsiSecret)>,
    /// User and password by which the target proves itself (mutual CHAP).
    pub target_user: Option<(String, IscsiSecret)>,
}

/// Password, which no message contains.
#[derive(Clone, PartialEq, Eq)]
pub struct IscsiSecret(String);

impl IscsiSecret {
    /// Takes a password.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for IscsiSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Session of a file.
pub(super) struct Session {
    functions: Functions,
    context: NonNull<Context>,
    /// Address, for messages.
    pub(super) peer: String,
    pub(super) unit: c_int,
    pub(super) is_logged_in: bool,
}

impl Session {
    /// Creates a session that is not connected.
    pub(super) fn create(functions: Functions, portal: &IscsiPortal) -> Result<Self, LibraryError> {
        let initiator = c_text(&portal.initiator)?;
        let target = c_text(&portal.target)?;
        // SAFETY: the text ends with a zero, and is copied.
        let context = unsafe { (functions.iscsi_create_context)(initiator.as_ptr()) };
        let own = Self {
            functions,
            context: NonNull::new(context).ok_or(LibraryError::NoMemory)?,
            peer: portal.address.clone(),
            unit: portal.unit.into(),
            is_logged_in: false,
        };
        let context = own.context();
        // Two sessions of one name and identifier would end each other.
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed) & 0xffff;
        let random = random() & 0x00ff_ffff;
        // SAFETY: the context exists, and texts end with a zero and are copied.
        unsafe {
            (functions.iscsi_set_noautoreconnect)(context, 1);
            own.check((functions.iscsi_set_isid_random)(context, random, number))?;
            own.check((functions.iscsi_set_session_type)(context, SESSION_NORMAL))?;
            own.check((functions.iscsi_set_header_digest)(
                context,
                DIGEST_OF_TARGET,
            ))?;
            own.check((functions.iscsi_set_targetname)(context, target.as_ptr()))?;
        }
        own.set_users(portal)?;
        Ok(own)
    }

    fn set_users(&self, portal: &IscsiPortal) -> Result<(), LibraryError> {
        let texts = |(user, secret): &(String, IscsiSecret)| -> Result<_, LibraryError> {
            Ok::<(CString, CString), _>((c_text(user)?, c_text(&secret.0)?))
        };
        let (functions, context) = (self.functions, self.context());
        if let Some((user, secret)) = portal.user.as_ref().map(texts).transpose()? {
            let (user, secret) = (user.as_ptr(), secret.as_ptr());
            // SAFETY: the context exists, and texts end with a zero and are copied.
            self.check(unsafe {
                (functions.iscsi_set_initiator_username_pwd)(context, user, secret)
            })?;
        }
        if let Some((user, secret)) = portal.target_user.as_ref().map(texts).transpose()? {
            let (user, secret) = (user.as_ptr(), secret.as_ptr());
            // SAFETY: as before.
            self.check(unsafe {
                (functions.iscsi_set_target_username_pwd)(context, user, secret)
            })?;
        }
        Ok(())
    }

    fn check(&self, result: c_int) -> Result<(), LibraryError> {
        match result {
            ..0 => Err(LibraryError::Call {
                errno: None,
                text: self.error(),
            }),
            _ => Ok(()),
        }
    }

    pub(super) const fn context(&self) -> *mut Context {
        self.context.as_ptr()
    }

    /// Returns the socket, and the events that the library waits for.
    pub(super) fn socket(&self) -> (c_int, c_int) {
        // SAFETY: the context exists.
        let descriptor = unsafe { (self.functions.iscsi_get_fd)(self.context()) };
        // SAFETY: as before.
        let events = unsafe { (self.functions.iscsi_which_events)(self.context()) };
        (descriptor, events)
    }

    /// Has the library send and receive; returns whether it failed.
    pub(super) fn service(&self, events: c_int) -> bool {
        // SAFETY: the context exists. Callbacks get calls of a table that outlives it, and touch
        // nothing that is borrowed here.
        unsafe { (self.functions.iscsi_service)(self.context(), events) < 0 }
    }

    /// Returns the address to which the target has redirected the login.
    pub(super) fn address(&self) -> String {
        // SAFETY: the context exists.
        let text = unsafe { (self.functions.iscsi_get_target_address)(self.context()) };
        // SAFETY: null, or a text of the context, which is copied.
        unsafe { library::text(text) }.unwrap_or_default()
    }

    /// Returns the library's message about its latest failure.
    #[cold]
    pub(super) fn error(&self) -> String {
        // SAFETY: the context exists.
        let text = unsafe { (self.functions.iscsi_get_error)(self.context()) };
        // SAFETY: null, or a text of the context, which is copied before its next call.
        unsafe { library::text(text) }.unwrap_or_default()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the context exists, and nothing uses it afterwards. Its last callbacks get calls
        // of a table that is dropped later.
        unsafe { (self.functions.iscsi_destroy_context)(self.context.as_ptr()) };
    }
}

/// Returns a number that other processes hardly have, on this host or another.
fn random() -> u32 {
    let mut bytes = [0; 4];
    // SAFETY: a place of this many bytes.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match got {
        4 => u32::from_ne_bytes(bytes),
        _ => process::id(),
    }
}

/// Sessions of this process so far. Relaxed: only the count matters.
static SESSIONS: AtomicU32 = AtomicU32::new(0);
