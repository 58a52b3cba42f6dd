//! Results of the repeats of a row.

/// Result of one repeat.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// Ops per second, all initiators.
    pub(super) iops: f64,
    /// Bandwidth of the data, Gb/s, all initiators.
    pub(super) bw_gbps: f64,
    /// Bandwidth of each initiator, Gb/s.
    pub(super) initiator_gbps: Vec<f64>,
    /// Bandwidth of the devices that are not slow, Gb/s; as the whole without slow ones.
    pub(super) fast_gbps: f64,
    /// Mean latency, µs.
    pub(super) lat_us: f64,
    /// Samples of the target.
    pub(super) samples: Samples,
}

/// Figures sampled from the target while the initiators ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Samples {
    /// Bytes on the sockets, Gb/s.
    pub(super) wire_gbps: Option<f64>,
    /// Bandwidth of the data between two samples, Gb/s.
    pub(super) bw_gbps: Vec<f64>,
    /// Mean of the bytes of the buffers in flight.
    pub(super) buffer_bytes_in_flight: Option<f64>,
    /// Time in which the pacers let a buffer's bytes go, µs.
    pub(super) period_us: Option<f64>,
    /// Limit of the bytes in flight that `auto` has found.
    pub(super) limit_bytes: Option<f64>,
    /// Hit rate of the last-level cache, percent.
    pub(super) hit_percent: Option<f64>,
}

/// Means over the repeats of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RowFigures {
    pub(super) kiops: Option<f64>,
    pub(super) bw_gbps: Option<f64>,
    /// Least and greatest bandwidth of the repeats.
    pub(super) bw_range: Option<(f64, f64)>,
    pub(super) fast_gbps: Option<f64>,
    pub(super) wire_gbps: Option<f64>,
    pub(super) lat_us: Option<f64>,
    /// Standard deviation between samples: the mean of the repeats'.
    pub(super) bw_stddev: Option<f64>,
    pub(super) mib_in_flight: Option<f64>,
    pub(super) hit_percent: Option<f64>,
    pub(super) period_us: Option<f64>,
    pub(super) limit_mib: Option<f64>,
    pub(super) initiator_gbps: Vec<f64>,
}

impl RowFigures {
    /// Summarises the repeats that were measured; all `None` without any.
    pub(super) fn of(repeats: &[Outcome]) -> Self {
        let mean_of = |figure: &dyn Fn(&Outcome) -> Option<f64>| {
            mean(&repeats.iter().filter_map(figure).collect::<Vec<_>>())
        };
        let bandwidths = || repeats.iter().map(|repeat| repeat.bw_gbps);
        let initiators = repeats
            .first()
            .map_or(0, |first| first.initiator_gbps.len());
        let of_initiator =
            |at: usize| mean_of(&|repeat| repeat.initiator_gbps.get(at).copied()).unwrap_or(0.0);
        Self {
            kiops: mean_of(&|repeat| Some(repeat.iops / 1e3)),
            bw_gbps: mean_of(&|repeat| Some(repeat.bw_gbps)),
            bw_range: bandwidths()
                .reduce(f64::min)
                .zip(bandwidths().reduce(f64::max)),
            fast_gbps: mean_of(&|repeat| Some(repeat.fast_gbps)),
            wire_gbps: mean_of(&|repeat| repeat.samples.wire_gbps),
            lat_us: mean_of(&|repeat| Some(repeat.lat_us)),
            bw_stddev: mean_of(&|repeat| stddev(&repeat.samples.bw_gbps)),
            mib_in_flight: mean_of(&|repeat| repeat.samples.buffer_bytes_in_flight.map(mib)),
            hit_percent: mean_of(&|repeat| repeat.samples.hit_percent),
            period_us: mean_of(&|repeat| repeat.samples.period_us),
            limit_mib: mean_of(&|repeat| repeat.samples.limit_bytes.map(mib)),
            initiator_gbps: (0..initiators).map(of_initiator).collect(),
        }
    }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// Returns the mean; `None` of nothing.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values))
}

/// Returns the number of values.
#[expect(clippy::cast_precision_loss, reason = "few values")]
pub(super) const fn count(values: &[f64]) -> f64 {
    values.len() as f64
}

/// Returns the standard deviation of a sample; `None` of fewer than two values.
fn stddev(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let freedom = count(values) - 1.0;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (freedom > 0.0).then(|| (squares / freedom).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: Option<f64>, want: Option<f64>) {
        let is_same = match (found, want) {
            (Some(found), Some(want)) => (found - want).abs() < 1e-9,
            (found, want) => found == want,
        };
        assert!(is_same, "{found:?} instead of {want:?}");
    }

    #[test]
    fn repeats_are_summarised() {
        let repeat = |bw_gbps: f64| Outcome {
            iops: 1000.0 * bw_gbps,
            bw_gbps,
            initiator_gbps: vec![bw_gbps / 4.0, bw_gbps * 3.0 / 4.0],
            fast_gbps: bw_gbps / 2.0,
            lat_us: 100.0,
            samples: Samples {
                bw_gbps: vec![bw_gbps - 1.0, bw_gbps + 1.0],
                buffer_bytes_in_flight: Some(f64::from(12 << 20)),
                ..Samples::default()
            },
        };
        let row = RowFigures::of(&[repeat(8.0), repeat(12.0)]);
        check(row.bw_gbps, Some(10.0));
        check(row.kiops, Some(10.0));
        check(row.fast_gbps, Some(5.0));
        check(row.bw_stddev, Some(2.0_f64.sqrt()));
        check(row.mib_in_flight, Some(12.0));
        check(row.wire_gbps, None);
        assert_eq!(row.bw_range, Some((8.0, 12.0)));
        assert_eq!(row.initiator_gbps, [2.5, 7.5]);
        assert_eq!(RowFigures::of(&[]), RowFigures::default());
    }
}
