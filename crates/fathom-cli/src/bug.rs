//! A panic is a bug of ours: the user gets one plain line about it and no backtrace.

use std::io::Write;
use std::panic::PanicHookInfo;

/// Replaces the standard hook. `RUST_BACKTRACE` still gives the standard one, for those who debug.
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
    // Nothing more can be done where even standard error is closed.
    let _closed = writeln!(
        std::io::stderr(),
        "fathom: internal error: {}: {place}\n\
         hint: this is a bug in fathom {version}; please report it with the job file",
        text.unwrap_or("panic")
    );
}
