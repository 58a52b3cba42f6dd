//! Runs as one of several ranks: `--start-at`, `--stop-together`, `--record-every`.

use super::Reader;

impl Reader<'_> {
    /// Refuses `--start-at` with `--machine`: virtual time begins when it likes; and
    /// `--stop-together`: modelled ranks do not talk.
    pub(super) fn start_of_a_model(&mut self) {
        let settings = &self.builder.settings;
        if settings.stop_together && settings.machine.is_some() {
            self.builder.reporter.error_without_place(
                "stop-together-of-machine",
                "`--stop-together` is for ranks that communicate, and those of `--machine` do not"
                    .to_owned(),
                "remove `--stop-together`",
            );
        }
        let settings = &self.builder.settings;
        if settings.start_at.is_some() && settings.machine.is_some() {
            self.builder.reporter.error_without_place(
                "start-of-machine",
                "`--start-at` waits for a clock, and `--machine` has none".to_owned(),
                "remove `--start-at`: modelled ranks all start at 0",
            );
        }
    }

    /// Refuses `--record-every` where nothing is written while the jobs run.
    pub(super) fn records_of_a_run(&mut self) {
        let settings = &self.builder.settings;
        if settings.record_every.is_none() {
            return;
        }
        let (why, hint) = match (&settings.record, &settings.machine) {
            (None, _) => (
                "needs `--record`",
                "add `--record=FILE`, with `--rank` a folder",
            ),
            (_, Some(_)) => (
                "is for runs that take time, and one with `--machine` takes none",
                "remove one of them",
            ),
            (Some(_), None) => return,
        };
        let why = format!("`--record-every` {why}");
        let reporter = &mut self.builder.reporter;
        reporter.error_without_place("record-every", why, hint);
    }
}
