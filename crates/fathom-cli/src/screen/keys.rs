//! Keys of the view, and what they change.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};

/// State of the view that keys change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ViewState {
    /// The figures stay as they are.
    pub(super) paused: bool,
    /// Course shown: 0 all jobs, then the groups.
    pub(super) track: usize,
    /// First row of the table of jobs.
    pub(super) first_row: usize,
    /// The keys are explained.
    pub(super) help: bool,
    /// The run was asked to stop.
    pub(super) stopped: bool,
}

/// Request of a key to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Nothing.
    None,
    /// Stop the run, in order.
    Stop,
}

impl ViewState {
    /// Takes a key; `tracks` and `rows` are the numbers of courses and of rows of the table.
    pub(super) fn press(&mut self, key: &KeyEvent, tracks: usize, rows: usize) -> Request {
        if key.kind == KeyEventKind::Release {
            return Request::None;
        }
        let tracks = tracks.max(1);
        match key.code {
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('g') | KeyCode::Tab => self.turn_to((self.track + 1) % tracks),
            KeyCode::Char('G') | KeyCode::BackTab => {
                self.turn_to((self.track + tracks - 1) % tracks);
            }
            KeyCode::Char('j') | KeyCode::Down => {
                self.first_row = (self.first_row + 1).min(rows.saturating_sub(1));
            }
            KeyCode::Char('k') | KeyCode::Up => self.first_row = self.first_row.saturating_sub(1),
            KeyCode::Char('?' | 'h') => self.help = !self.help,
            KeyCode::Esc => self.help = false,
            // Once: a key that is held down would abort the run without a report.
            KeyCode::Char('q') if !self.stopped => {
                self.stopped = true;
                return Request::Stop;
            }
            _ => {}
        }
        Request::None
    }

    fn turn_to(&mut self, track: usize) {
        self.track = track;
        self.first_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyModifiers;

    use super::*;

    fn press(view: &mut ViewState, code: KeyCode) -> Request {
        view.press(&KeyEvent::new(code, KeyModifiers::NONE), 3, 2)
    }

    #[test]
    fn groups_come_round() {
        let mut view = ViewState::default();
        for want in [1, 2, 0] {
            press(&mut view, KeyCode::Tab);
            assert_eq!(view.track, want);
        }
        press(&mut view, KeyCode::Char('G'));
        assert_eq!(view.track, 2);
    }

    #[test]
    fn the_run_is_stopped_once() {
        let mut view = ViewState::default();
        assert_eq!(press(&mut view, KeyCode::Char('q')), Request::Stop);
        assert_eq!(press(&mut view, KeyCode::Char('q')), Request::None);
    }

    #[test]
    fn the_table_ends_with_its_last_job() {
        let mut view = ViewState::default();
        for want in [1, 1] {
            press(&mut view, KeyCode::Down);
            assert_eq!(view.first_row, want);
        }
        for want in [0, 0] {
            press(&mut view, KeyCode::Up);
            assert_eq!(view.first_row, want);
        }
        press(&mut view, KeyCode::Char('p'));
        press(&mut view, KeyCode::Char('?'));
        assert!(view.paused && view.help);
        press(&mut view, KeyCode::Esc);
        assert!(view.paused && !view.help);
    }
}
