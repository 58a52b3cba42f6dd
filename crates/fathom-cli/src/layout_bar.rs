//! Progress bar of a long layout.

use std::fmt;

use fathom_core::Nanos;
use fathom_setup::LayoutProgress;
use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress bar, drawn on standard error if it is a terminal and the layout takes over a second.
#[derive(Default)]
pub(crate) struct LayoutBar(Option<ProgressBar>);

impl LayoutBar {
    /// Draws the progress.
    pub(crate) fn update(&mut self, progress: &LayoutProgress<'_>) {
        if progress.elapsed < PATIENCE && self.0.is_none() {
            return;
        }
        let bar = self.0.get_or_insert_with(|| {
            let bar = ProgressBar::new(progress.total_bytes);
            bar.set_draw_target(ProgressDrawTarget::stderr());
            // An invalid template would be a bug; fall back to the default style.
            ProgressStyle::with_template(TEMPLATE)
                .map_or(bar.clone(), |style| bar.clone().with_style(style))
        });
        bar.set_prefix(progress.job.to_owned());
        bar.set_message(pace(progress));
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.done_bytes);
    }

    /// Removes the line from the terminal.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

/// Returns the mean rate so far and the time left at that rate. The estimates of `indicatif` are
/// not used: they start when the bar is first drawn and would count the first second as one jump.
fn pace(progress: &LayoutProgress<'_>) -> String {
    let milliseconds = u128::from(progress.elapsed.as_millis().max(1));
    let per_s = u128::from(progress.done_bytes) * 1_000 / milliseconds;
    let left = u128::from(progress.total_bytes.saturating_sub(progress.done_bytes));
    let rate = BinaryBytes(u64::try_from(per_s).unwrap_or(u64::MAX));
    match left.checked_div(per_s) {
        Some(seconds) => format!("{rate}/s, {seconds} s left"),
        None => format!("{rate}/s"),
    }
}

impl fmt::Debug for LayoutBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LayoutBar").field(&self.0.is_some()).finish()
    }
}

const TEMPLATE: &str = "{prefix}: laying out [{bar:20}] {binary_bytes} of {binary_total_bytes} \
                        ({msg})";

/// Delay before the bar appears.
const PATIENCE: Nanos = Nanos::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_appears_after_a_second() {
        let mut bar = LayoutBar::default();
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
    fn rate_is_the_mean_so_far() {
        let mut progress = LayoutProgress {
            job: "t",
            done_bytes: 3 << 30,
            total_bytes: 8 << 30,
            elapsed: Nanos::from_millis(1_500),
        };
        assert_eq!(pace(&progress), "2.00 GiB/s, 2 s left");
        progress.done_bytes = 0;
        progress.elapsed = Nanos::ZERO;
        assert_eq!(pace(&progress), "0 B/s");
    }

    #[test]
    fn template_is_valid() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
