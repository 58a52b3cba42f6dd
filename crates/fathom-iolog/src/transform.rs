//! Changes that a replay makes to a recording.

use fathom_core::{Nanos, PerDirection};

use crate::event::{Action, Event, LogFile};

/// Transformation of a log's events, one by one.
///
/// Pass every event in order to [`apply`](Self::apply), then take the one of
/// [`finish`](Self::finish).
#[derive(Clone, Debug)]
pub struct Transform {
    changes: Changes,
    /// A redirected replay has opened its file.
    is_open: bool,
}

/// Changes to make to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes {
    /// Directions whose ops are left out.
    pub skip: PerDirection<bool>,
    /// Syncs are left out.
    pub skip_syncs: bool,
    /// Divisor of offsets, ≥ 1.
    pub scale: u32,
    /// Offsets are rounded down to multiples of this power of two; 0 for as they are. The
    /// lengths of a trace are aligned by the decoder, which knows the format.
    pub align: u32,
    /// All files become file 0, which is open from the first open to the end.
    pub redirect: bool,
    /// Speed in percent of the recorded one, ≥ 1.
    pub speed_percent: u32,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            skip: PerDirection::all(false),
            skip_syncs: false,
            scale: 1,
            align: 0,
            redirect: false,
            speed_percent: 100,
        }
    }
}

impl Transform {
    /// Creates the transformation of a log that begins.
    #[must_use]
    pub const fn new(changes: Changes) -> Self {
        Self {
            changes,
            is_open: false,
        }
    }

    /// Transforms an event; `None` if it is left out.
    pub fn apply(&mut self, event: Event) -> Option<Event> {
        let action = match event.action {
            Action::Open if self.changes.redirect && std::mem::replace(&mut self.is_open, true) => {
                return None;
            }
            Action::Close if self.changes.redirect => return None,
            Action::Sync(_) if self.changes.skip_syncs => return None,
            Action::Data { direction, .. } if self.changes.skip[direction] => return None,
            Action::Data {
                direction,
                offset,
                length,
            } => Action::Data {
                direction,
                offset: self.place(offset),
                length,
            },
            other => other,
        };
        Some(Event {
            time: self.due(event.time),
            file: if self.changes.redirect {
                LogFile(0)
            } else {
                event.file
            },
            action,
        })
    }

    /// Returns the last event, after all others: `last` is the time of the log's end.
    pub fn finish(&mut self, last: Nanos) -> Option<Event> {
        let closes = self.changes.redirect && std::mem::take(&mut self.is_open);
        closes.then(|| Event {
            time: self.due(last),
            file: LogFile(0),
            action: Action::Close,
        })
    }

    fn place(&self, offset: u64) -> u64 {
        let scaled = offset / u64::from(self.changes.scale.max(1));
        match u64::from(self.changes.align) {
            0 => scaled,
            align => scaled - scaled % align,
        }
    }

    fn due(&self, time: Nanos) -> Nanos {
        if self.changes.speed_percent == 100 {
            return time;
        }
        let scaled = u128::from(time.get()) * 100 / u128::from(self.changes.speed_percent.max(1));
        // Times of a log end before u64::MAX / 8, and so do slower replays of them.
        Nanos::new(u64::try_from(scaled).unwrap_or(u64::MAX).min(u64::MAX / 8))
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::Direction;

    use super::*;

    fn read(time: u64, file: u32, offset: u64) -> Event {
        Event {
            time: Nanos::new(time),
            file: LogFile(file),
            action: Action::Data {
                direction: Direction::Read,
                offset,
                length: 512,
            },
        }
    }

    #[test]
    fn offsets_and_times_are_scaled() {
        let mut transform = Transform::new(Changes {
            scale: 2,
            align: 4096,
            speed_percent: 200,
            ..Changes::default()
        });
        // As fio 3.33 does it.
        assert_eq!(
            transform.apply(read(500, 1, 40_000)),
            Some(read(250, 1, 16_384))
        );
        transform.changes.speed_percent = 50;
        assert_eq!(
            transform.apply(read(500, 1, 8_192)),
            Some(read(1_000, 1, 4_096))
        );
        transform.changes.speed_percent = 1;
        let late = transform.apply(read(u64::MAX / 8, 1, 0));
        assert_eq!(late.map(|event| event.time.get()), Some(u64::MAX / 8));
    }

    #[test]
    fn a_redirected_replay_opens_one_file_once() {
        let mut transform = Transform::new(Changes {
            redirect: true,
            ..Changes::default()
        });
        let of = |action, file| Event {
            action,
            ..read(7, file, 0)
        };
        let open = transform.apply(of(Action::Open, 3));
        assert_eq!(open, Some(of(Action::Open, 0)));
        assert_eq!(transform.apply(of(Action::Open, 4)), None);
        assert_eq!(transform.apply(of(Action::Close, 3)), None);
        assert_eq!(transform.apply(read(9, 4, 512)), Some(read(9, 0, 512)));
        let close = of(Action::Close, 0);
        assert_eq!(transform.finish(Nanos::new(7)), Some(close));
        assert_eq!(transform.finish(Nanos::new(7)), None);
    }

    #[test]
    fn skipped_ops_are_left_out() {
        let mut transform = Transform::new(Changes {
            skip: PerDirection::new(true, false, false),
            skip_syncs: true,
            ..Changes::default()
        });
        assert_eq!(transform.apply(read(0, 0, 0)), None);
        let sync = Action::Sync(fathom_core::SyncKind::Full);
        let sync = Event {
            action: sync,
            ..read(0, 0, 0)
        };
        assert_eq!(transform.apply(sync), None);
        assert_eq!(transform.finish(Nanos::ZERO), None);
    }
}
