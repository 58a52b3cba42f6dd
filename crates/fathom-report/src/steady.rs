//! Steady state and latency target, in fio's format.

use fathom_record::{JobRecord, SteadyStateRecord};

use crate::json::Object;
use crate::rate::Units;

/// Returns `steadystate` of a job.
pub(crate) fn steady_object(steady: &SteadyStateRecord) -> Object {
    let percent = if steady.is_percent { "%" } else { "" };
    let slope = if steady.by_slope { "_slope" } else { "" };
    let mut out = Object::new();
    let rule = format!("{}{slope}:{:.6}{percent}", steady.figure, steady.limit);
    out.set("ss", rule.as_str());
    out.set("duration", steady.window_s);
    out.set("attained", u64::from(steady.attained));
    let criterion = format!("{:.6}{percent}", steady.criterion);
    out.set("criterion", criterion.as_str());
    let value_if = |wanted: bool| if wanted { steady.value } else { 0.0 };
    out.set("max_deviation", value_if(!steady.by_slope));
    out.set("slope", value_if(steady.by_slope));
    let mut data = Object::new();
    data.set("bw_mean", mean(&steady.bytes_per_s));
    data.set("iops_mean", mean(&steady.ops_per_s));
    if steady.figure == "lat" {
        data.set("lat_mean", mean(&steady.lat_ns));
        data.set("lat_ns", steady.lat_ns.clone());
    }
    data.set("iops", steady.ops_per_s.clone());
    data.set("bw", steady.bytes_per_s.clone());
    out.set("data", data);
    out
}

/// Formats the steady-state line of the text report.
pub(crate) fn steady_line(job: &JobRecord) -> String {
    let Some(steady) = &job.steady_state else {
        return String::new();
    };
    let units = Units::of(&job.display);
    let (bandwidth, other) = units.bandwidth(mean(&steady.bytes_per_s));
    let latency = match steady.figure.as_str() {
        "lat" => format!(", lat={} nsec", mean(&steady.lat_ns)),
        _ => String::new(),
    };
    format!(
        "  steadystate  : attained={}, bw={bandwidth} ({other}), iops={}{latency}, {} {}={:.3}{}\n",
        if steady.attained { "yes" } else { "no" },
        units.iops(mean(&steady.ops_per_s)),
        steady.figure,
        if steady.by_slope { "slope" } else { "mean dev" },
        steady.criterion,
        if steady.is_percent { "%" } else { "" },
    )
}

/// Formats the latency-target line, which fio prints for jobs without a target too.
pub(crate) fn latency_line(job: &JobRecord) -> String {
    let (target, window, percent, depth) = match &job.latency_target {
        Some(found) => (
            found.target_ns as f64,
            found.window_us as f64 * 1e3,
            found.share_percent,
            found.depth,
        ),
        None => (0.0, 0.0, 100.0, job.iodepth),
    };
    format!(
        "     latency   : target={}, window={}, percentile={percent:.2}%, depth={depth}\n",
        time(target),
        time(window)
    )
}

/// Formats a time with two decimals, in the largest unit that gives at least 1.
fn time(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let unit = units.iter().find(|(size, _)| ns >= *size);
    let (size, name) = unit.copied().unwrap_or((1.0, "ns"));
    format!("{:.2}{name}", ns / size)
}

fn mean(values: &[u64]) -> u64 {
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    let mean = sum.checked_div(values.len() as u128).unwrap_or(0);
    u64::try_from(mean).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a window of fio 3.33 and the lines it printed for them.
    #[test]
    fn a_window_is_shown_as_by_fio() {
        let steady = SteadyStateRecord {
            figure: "bw".into(),
            limit: 1.0,
            is_percent: true,
            window_s: 3,
            attained: true,
            value: 34_133.333_333,
            criterion: 0.414_938,
            bytes_per_s: vec![8_257_536, 8_228_864, 8_192_000],
            ops_per_s: vec![2016, 2009, 2000],
            ..SteadyStateRecord::default()
        };
        let text = steady_object(&steady).into_document();
        let words: Vec<_> = text.split_whitespace().collect();
        let want = r#"{ "ss" : "bw:1.000000%", "duration" : 3, "attained" : 1,
            "criterion" : "0.414938%", "max_deviation" : 34133.333333, "slope" : 0.000000,
            "data" : { "bw_mean" : 8226133, "iops_mean" : 2008, "iops" : [ 2016, 2009, 2000 ],
            "bw" : [ 8257536, 8228864, 8192000 ] } }"#;
        assert_eq!(words, want.split_whitespace().collect::<Vec<_>>());
        let job = JobRecord {
            steady_state: Some(steady),
            ..JobRecord::default()
        };
        assert_eq!(
            steady_line(&job),
            "  steadystate  : attained=yes, bw=8033KiB/s (8226kB/s), iops=2008, bw mean \
             dev=0.415%\n"
        );
        assert_eq!(
            latency_line(&job),
            "     latency   : target=0.00ns, window=0.00ns, percentile=100.00%, depth=0\n"
        );
        assert_eq!(time(2e6), "2.00ms");
    }
}
