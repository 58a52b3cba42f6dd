//! Panics are bugs of Fathom: the user gets one plain line and no backtrace.

use std::io::Write;
use std::panic::PanicHookInfo;

/// Replaces the standard panic hook, unless `RUST_BACKTRACE` is set.
pub(crate) fn install_hook() {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(tell));
    }
}

fn tell(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    // A closed standard error leaves nowhere to report it.
    let _closed = writeln!(
        std::io::stderr(),
        "fathom: internal error: {}: {place}\n\
         hint: this is a bug in fathom {version}; please report it with the job file",
        text.unwrap_or("panic")
    );
}
