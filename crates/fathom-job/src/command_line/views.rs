//! Views of a run in progress: `--live`, `--serve`.

use super::Reader;

impl Reader<'_> {
    /// Refuses views of runs that have no time to be looked at, and addresses that other machines
    /// reach unless they are asked for.
    pub(super) fn views_of_a_run(&mut self) {
        let settings = &self.builder.settings;
        let (live, serve) = (settings.live, settings.serve);
        let any_host = settings.serve_any_host;
        let modelled = settings.machine.is_some();
        let reporter = &mut self.builder.reporter;
        for (switch, is_given) in [("--live", live), ("--serve", serve.is_some())] {
            if is_given && modelled {
                reporter.error_without_place(
                    "view-of-machine",
                    format!(
                        "`{switch}` shows a run while it is running, and one of `--machine` takes \
                         milliseconds, whatever its `runtime`"
                    ),
                    "leave it out, add `--record FILE`, and look at that by `fathom report FILE \
                     --html PAGE`",
                );
            }
        }
        match serve {
            Some(address) if !address.ip().is_loopback() && !any_host => {
                reporter.error_without_place(
                    "serve-to-others",
                    format!("`--serve`: other machines may reach {}", address.ip()),
                    "serve on 127.0.0.1 and forward the port (`ssh -L`), or add \
                     `--serve-any-host`",
                );
            }
            None if any_host => {
                reporter.error_without_place(
                    "serve-nothing",
                    "`--serve-any-host` without `--serve`".to_owned(),
                    "add `--serve ADDRESS:PORT`",
                );
            }
            _ => {}
        }
    }
}
