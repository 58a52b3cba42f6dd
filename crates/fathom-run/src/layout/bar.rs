//! The progress bar of a layout that takes its time.

use std::fmt;

use fathom_core::Nanos;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::LayoutProgress;

/// Drawn on standard error, if that is a terminal, once a layout has taken over a second.
#[derive(Default)]
pub(super) struct Bar(Option<ProgressBar>);

impl Bar {
    /// Shows how far it has come.
    pub(super) fn update(&mut self, progress: &LayoutProgress<'_>) {
        if progress.elapsed < PATIENCE && self.0.is_none() {
            return;
        }
        let bar = self.0.get_or_insert_with(|| {
            let bar = ProgressBar::new(progress.total_bytes);
            bar.set_draw_target(ProgressDrawTarget::stderr());
            // A template that is not valid would be our own mistake; the plain bar does too.
            ProgressStyle::with_template(TEMPLATE)
                .map_or(bar.clone(), |style| bar.clone().with_style(style))
        });
        bar.set_message(progress.job.to_owned());
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.done_bytes);
    }
}

impl Drop for Bar {
    /// The line is taken away again: what came of it is said elsewhere.
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl fmt::Debug for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bar").field(&self.0.is_some()).finish()
    }
}

const TEMPLATE: &str = "{msg}: laying out [{bar:30}] {binary_bytes} of {binary_total_bytes} \
                        ({binary_bytes_per_sec}, {eta} left)";

/// A layout that is over sooner needs no bar.
const PATIENCE: Nanos = Nanos::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_appears_after_a_second() {
        let mut bar = Bar::default();
        let mut progress = LayoutProgress {
            job: "t",
            done_bytes: 1,
            total_bytes: 10,
            elapsed: Nanos::from_millis(999),
        };
        bar.update(&progress);
        assert!(bar.0.is_none());
        progress.elapsed = Nanos::from_secs(1);
        progress.done_bytes = 7;
        bar.update(&progress);
        assert_eq!(bar.0.as_ref().unwrap().position(), 7);
    }

    #[test]
    fn the_template_is_valid() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
