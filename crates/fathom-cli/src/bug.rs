//! Panics are bugs of Fathom: the user gets one plain line and no backtrace.

use std::io::Write;
use std::panic::PanicHookInfo;

use fathom_sys::terminal;

/// Replaces the standard panic hook; with `RUST_BACKTRACE`, only what comes before it.
pub(crate) fn install_hook() {
    let standard = std::panic::take_hook();
    let with_backtrace = std::env::var_os("RUST_BACKTRACE").is_some();
    std::panic::set_hook(Box::new(move |info| {
        // A message on the screen of a view would go with it.
        terminal::give_back();
        if with_backtrace {
            standard(info);
        } else {
            tell(info);
        }
    }));
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
