//! Text of a version 3 log, as fio writes and reads it.

use std::io::{self, Write};

use fathom_core::{Nanos, SyncKind};

use crate::event::Action;

/// Writes the first line.
///
/// # Errors
/// Those of `out`.
pub fn write_header(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"fio version 3 iolog\n")
}

/// Writes the line that names a file before its first action.
///
/// # Errors
/// Those of `out`.
pub fn write_add(out: &mut dyn Write, name: &str) -> io::Result<()> {
    writeln!(out, "0 {name} add")
}

/// Writes an action, `time` after the start. Times are cut to microseconds.
///
/// # Errors
/// Those of `out`.
pub fn write_action(
    out: &mut dyn Write,
    time: Nanos,
    name: &str,
    action: &Action,
) -> io::Result<()> {
    let us = time.get() / 1_000;
    match *action {
        Action::Open => writeln!(out, "{us} {name} open"),
        Action::Close => writeln!(out, "{us} {name} close"),
        Action::Data {
            direction,
            offset,
            length,
        } => writeln!(out, "{us} {name} {} {offset} {length}", direction.name()),
        Action::Sync(SyncKind::Data) => writeln!(out, "{us} {name} datasync 0 0"),
        Action::Sync(_) => writeln!(out, "{us} {name} sync 0 0"),
    }
}

/// Returns true if a log can hold this name: fields are separated by blanks.
#[must_use]
pub fn can_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use fathom_core::Direction;

    use super::*;
    use crate::decoder::Decoder;
    use crate::event::{Event, LogFile};

    #[test]
    fn what_is_written_is_decoded() {
        let data = |direction| Action::Data {
            direction,
            offset: i64::MAX.unsigned_abs() - 512,
            length: 512,
        };
        let actions = [
            Action::Open,
            data(Direction::Read),
            data(Direction::Write),
            data(Direction::Trim),
            Action::Sync(SyncKind::Full),
            Action::Sync(SyncKind::Data),
            Action::Close,
        ];
        let mut log = Vec::new();
        write_header(&mut log).expect("memory");
        write_add(&mut log, "/dev/ä").expect("memory");
        for (us, action) in (0..).zip(&actions) {
            let time = Nanos::new(us * 1_000 + 999);
            write_action(&mut log, time, "/dev/ä", action).expect("memory");
        }
        let (mut decoder, mut found) = (Decoder::new("log"), Vec::new());
        let pushed = decoder.push(&log, &mut |event| found.push(event));
        pushed.expect("readable");
        let want = (0..).zip(actions).map(|(us, action)| Event {
            time: Nanos::from_micros(us),
            file: LogFile(0),
            action,
        });
        assert_eq!(found, want.collect::<Vec<_>>());
    }

    #[test]
    fn names_with_blanks_are_not_written() {
        assert!(can_name("/dev/sda") && can_name("a:b") && can_name("ä"));
        assert!(!can_name("") && !can_name("a b") && !can_name("a\n") && !can_name("\ta"));
    }
}
