//! Rules about I/O logs and latencies.

use fathom_core::Nanos;
use fathom_job::LogValue;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "log-hides-slow-ops",
        "a log of mean latencies",
        log_hides_slow_ops,
    ),
    Rule::new(
        "log-window-beyond-run",
        "a log window as long as the run",
        log_window_beyond_run,
    ),
    Rule::new(
        "log-of-nothing",
        "a latency log without latencies",
        log_of_nothing,
    ),
    Rule::new(
        "guard-without-times",
        "a latency limit without latencies",
        guard_without_times,
    ),
];

fn log_hides_slow_ops(view: &JobView<'_>) -> Option<RuleMatch> {
    let logs = &view.options.logs;
    let means = logs.average_ms > 0 && logs.value == LogValue::Average;
    let none = logs.latency.is_none() && logs.response.is_none();
    if none || !means || logs.histogram.is_some() {
        return None;
    }
    RuleMatch::new(
        &["log_avg_msec", "write_lat_log", "write_resp_log"],
        format!(
            "each entry of the latency log is the mean over {} ms: it shows neither slow ops nor \
             percentiles",
            logs.average_ms
        ),
        "add `log_window_value=both`, or `write_hist_log=` for percentiles over time",
    )
}

fn log_window_beyond_run(view: &JobView<'_>) -> Option<RuleMatch> {
    let logs = &view.options.logs;
    let runtime = view.runtime()?;
    let latencies = logs.latency.is_some() || logs.response.is_some();
    let plain = logs.bandwidth.is_some() || logs.iops.is_some() || latencies;
    let windows = [
        ("log_avg_msec", logs.average_ms, plain),
        ("log_hist_msec", logs.histogram_ms, logs.histogram.is_some()),
    ];
    let long = |ms: u32| ms > 0 && Nanos::from_millis(u64::from(ms)) >= runtime;
    let (name, ms, _) = windows
        .into_iter()
        .find(|(_, ms, has_log)| *has_log && long(*ms))?;
    let at: &'static [&'static str] = match name {
        "log_avg_msec" => &["log_avg_msec"],
        _ => &["log_hist_msec"],
    };
    RuleMatch::new(
        at,
        format!("the log has one entry per {ms} ms, but the run ends after {runtime}"),
        format!("lower it, for example to `{name}=1000`"),
    )
}

fn log_of_nothing(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let all_off = options.disable_lat && options.disable_clat && options.disable_slat;
    if options.logs.latency.is_none() || !(all_off || options.gtod_reduce) {
        return None;
    }
    RuleMatch::new(
        &["gtod_reduce", "disable_lat", "write_lat_log"],
        "the latency log stays empty: the job does not record latencies",
        "remove `gtod_reduce` and `disable_*lat`, or the log",
    )
}

fn guard_without_times(view: &JobView<'_>) -> Option<RuleMatch> {
    let (options, lifecycle) = (view.options, &view.options.lifecycle);
    let limited = lifecycle
        .max_latency
        .iter()
        .any(|(_, limit)| limit.is_some());
    if !limited || !(options.gtod_reduce || options.disable_lat) {
        return None;
    }
    RuleMatch::new(
        &["gtod_reduce", "disable_lat"],
        "the job does not record latencies, so `max_latency` has no effect",
        "remove `gtod_reduce` and `disable_lat`",
    )
}
