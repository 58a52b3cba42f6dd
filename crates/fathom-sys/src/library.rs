//! Shared libraries that are loaded when an engine needs them (`dlopen(3)`), and what the clients
//! in them have in common: a descriptor to wait for, and commands that end in a callback.
//!
//! Three calls of libc were preferred to the crate `libloading`, which wraps the same.

pub(crate) mod calls;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use fathom_core::{Errno, Nanos};

use crate::clock;

/// A loaded library. It stays loaded until the process ends: nothing shows when its last callback
/// has returned.
#[derive(Debug)]
pub(crate) struct Library {
    handle: NonNull<c_void>,
    file: &'static str,
}

/// Library to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LibraryName {
    /// Name before the version of its interface: `libnfs.so`.
    pub(crate) stem: &'static str,
    /// File with the only version that is known: `libnfs.so.13`.
    pub(crate) file: &'static CStr,
    /// Debian's package of it.
    pub(crate) package: &'static str,
}

/// Failure of a library: to load, or in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// It is not installed, or cannot be loaded.
    Missing {
        /// Its file.
        file: &'static str,
        /// Debian's package of it.
        package: &'static str,
        /// Words of the system's loader; may be empty.
        why: String,
        /// File with another version of it, which is installed.
        other: Option<String>,
    },
    /// This program has no loader.
    Static {
        /// Its file.
        file: &'static str,
    },
    /// It lacks a function.
    Lacks {
        /// Its file.
        file: &'static str,
        /// The function.
        function: &'static str,
    },
    /// A text for it contains a zero byte.
    ZeroByte,
    /// It has no memory.
    NoMemory,
    /// It cannot read its URL.
    Url {
        /// Its own words; may be empty.
        text: String,
    },
    /// The server did not answer in time.
    Silent(Nanos),
    /// A call failed.
    Call {
        /// The errno that it returned, if it did.
        errno: Option<Errno>,
        /// Its own words; may be empty.
        text: String,
    },
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing {
                file, why, other, ..
            } => {
                match why.strip_prefix(file) {
                    Some(why) => write!(f, "cannot load {file}{why}")?,
                    None => write!(f, "cannot load {file}: {why}")?,
                }
                match other {
                    Some(other) => write!(f, "; {other} is installed, but not supported"),
                    None => Ok(()),
                }
            }
            Self::Static { file } => {
                write!(f, "cannot load {file}: this program is static")
            }
            Self::Lacks { file, function } => write!(f, "{file} has no function {function}"),
            Self::ZeroByte => f.write_str("a name contains a zero byte"),
            Self::NoMemory => f.write_str("the library has no memory"),
            Self::Url { text } if text.is_empty() => f.write_str("not a URL of its kind"),
            Self::Silent(timeout) => write!(f, "no answer of the server for {timeout}"),
            Self::Call { text, errno: None } if text.is_empty() => {
                f.write_str("the call failed without a reason")
            }
            Self::Url { text } | Self::Call { text, .. } => f.write_str(text),
        }
    }
}

impl std::error::Error for LibraryError {}

impl Library {
    /// Loads a library.
    pub(crate) fn load(name: LibraryName) -> Result<Self, LibraryError> {
        let file = name.file.to_str().unwrap_or(name.stem);
        // glibc's loader in a static program wants the libraries of that very glibc.
        if cfg!(target_feature = "crt-static") {
            return Err(LibraryError::Static { file });
        }
        if let Some(handle) = open(name.file) {
            return Ok(Self { handle, file });
        }
        // SAFETY: no arguments.
        let why = unsafe { libc::dlerror() };
        // SAFETY: null, or a text of this thread, which is copied before the loader's next call.
        let why = unsafe { text(why) }.unwrap_or_default();
        Err(LibraryError::Missing {
            file,
            package: name.package,
            why,
            other: other_version(name),
        })
    }

    /// Returns the address of a function.
    pub(crate) fn function(&self, name: &'static CStr) -> Result<NonNull<c_void>, LibraryError> {
        // SAFETY: the handle is of a library that stays loaded, and the name ends with a zero.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        NonNull::new(address).ok_or(LibraryError::Lacks {
            file: self.file,
            function: name.to_str().unwrap_or_default(),
        })
    }
}

fn open(file: &CStr) -> Option<NonNull<c_void>> {
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE;
    // SAFETY: the name ends with a zero. The constructors of the libraries that are named here do
    // nothing that the rest of the program could notice.
    let handle = unsafe { libc::dlopen(file.as_ptr(), flags) };
    NonNull::new(handle)
}

/// Returns the file of another version that is installed.
fn other_version(name: LibraryName) -> Option<String> {
    let files = (1..VERSIONS).map(|version| format!("{}.{version}", name.stem));
    let mut others = files.filter(|file| name.file.to_bytes() != file.as_bytes());
    others.find(|file| CString::new(file.as_str()).is_ok_and(|file| open(&file).is_some()))
}

/// Declares the functions of a library, as a structure of their addresses that `load` fills.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(fn $function:ident($($argument:ty),* $(,)?) $(-> $result:ty)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $name {
            $(pub(super) $function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $name {
            $vis fn load(
                library: &$crate::library::Library,
            ) -> Result<Self, $crate::library::LibraryError> {
                const fn named(name: &'static str) -> &'static std::ffi::CStr {
                    match std::ffi::CStr::from_bytes_with_nul(name.as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("the name ends with a zero"),
                    }
                }
                Ok(Self { $($function: {
                    const NAME: &std::ffi::CStr = named(concat!(stringify!($function), "\0"));
                    let address = library.function(NAME)?;
                    // SAFETY: the library's header, of the one version that is loaded, declares
                    // the function so.
                    unsafe {
                        std::mem::transmute::<
                            *mut std::ffi::c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(address.as_ptr())
                    }
                },)* })
            }
        }
    };
}

pub(crate) use functions;

/// Sockets of clients to wait for.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Vec<libc::pollfd>);

impl Sockets {
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a socket, and the events of `poll(2)` that its library waits for. A negative descriptor
    /// has none.
    pub(crate) fn add(&mut self, descriptor: c_int, events: c_int) {
        self.0.push(libc::pollfd {
            fd: descriptor,
            // Cannot be cut: the events of `poll(2)` have 16 bits.
            events: i16::try_from(events).unwrap_or(libc::POLLIN) | libc::POLLRDHUP,
            revents: 0,
        });
    }

    /// Waits until one has an event, or the time has passed.
    pub(crate) fn wait(&mut self, timeout: Option<Nanos>) {
        let span = timeout.map(|timeout| clock::timespec(timeout.get()));
        let span = span.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (entries, count) = (self.0.as_mut_ptr(), self.0.len() as libc::nfds_t);
        // SAFETY: this many entries, and a span that lives through the call, or none; no signal
        // mask.
        let failed = unsafe { libc::ppoll(entries, count, span, ptr::null()) } < 0;
        if failed {
            self.0.iter_mut().for_each(|entry| entry.revents = 0);
        }
    }

    /// Returns the events of a socket, by the order in which they were added.
    pub(crate) fn events(&self, index: usize) -> SocketEvents {
        let events = self.0.get(index).map_or(0, |entry| entry.revents);
        // With an error, libraries ask the socket which; without this, some see only the end.
        let hidden = match events & libc::POLLERR {
            0 => libc::POLLRDHUP,
            _ => libc::POLLRDHUP | libc::POLLHUP | libc::POLLIN,
        };
        SocketEvents {
            of_library: c_int::from(events & !hidden),
            is_closed: events & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0,
        }
    }

    /// Takes the error of a socket that has one, which its library does not see any more.
    pub(crate) fn take_error(&self, index: usize) -> Option<Errno> {
        let entry = self.0.get(index)?;
        if entry.revents & libc::POLLERR == 0 {
            return None;
        }
        let mut error: c_int = 0;
        let mut length: libc::socklen_t = 4;
        let (level, option) = (libc::SOL_SOCKET, libc::SO_ERROR);
        let place = (&raw mut error).cast();
        // SAFETY: a place of this many bytes, and one of a length; the descriptor need not be a
        // socket.
        let failed =
            unsafe { libc::getsockopt(entry.fd, level, option, place, &raw mut length) } < 0;
        Errno::try_from(error).ok().filter(|_| !failed)
    }
}

/// Events of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketEvents {
    /// Those that its library asked for.
    pub(crate) of_library: c_int,
    /// The peer has closed its end, or there was an error.
    pub(crate) is_closed: bool,
}

/// Copies a text of a library; `None` if there is none.
///
/// # Safety
/// The address is null or that of a text that ends with a zero.
pub(crate) unsafe fn text(address: *const c_char) -> Option<String> {
    if address.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(address) };
    Some(text.to_string_lossy().trim().to_owned())
}

/// Returns a text for a library.
pub(crate) fn c_text(text: &str) -> Result<CString, LibraryError> {
    CString::new(text).map_err(|_| LibraryError::ZeroByte)
}

/// Versions to look for when the known one is missing; guess.
const VERSIONS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_its_package() {
        let name = LibraryName {
            stem: "libfathom-none.so",
            file: c"libfathom-none.so.1",
            package: "libfathom-none1",
        };
        let error = Library::load(name).unwrap_err();
        let want = "cannot load libfathom-none.so.1: cannot open shared object file: No such file \
                    or directory";
        assert_eq!(error.to_string(), want);
    }

    #[test]
    fn another_version_is_named_and_not_used() {
        let name = LibraryName {
            stem: "libc.so",
            file: c"libc.so.99",
            package: "libc99",
        };
        let error = Library::load(name).unwrap_err();
        let want = "libc.so.6 is installed, but not supported";
        assert!(error.to_string().ends_with(want), "{error}");
    }

    #[test]
    fn a_missing_function_is_named() {
        let name = LibraryName {
            stem: "libc.so",
            file: c"libc.so.6",
            package: "libc6",
        };
        let library = Library::load(name).unwrap();
        assert!(library.function(c"strlen").is_ok());
        let error = library.function(c"fathom_none").unwrap_err();
        assert_eq!(error.to_string(), "libc.so.6 has no function fathom_none");
    }
}
