//! Jobs that end within their ramp.

use fathom_record::Validity;

use super::{JobMeasured, figure, ops, to_float, validity};

/// Checks that a job with a ramp measured something after it. One that ends within its ramp has the
/// rates of the ramp, as in fio, and no latencies; by these it is recognized, so nothing is said of
/// a job that keeps none.
#[must_use]
pub fn ramp(seen: &JobMeasured<'_>) -> Option<Validity> {
    let options = &seen.setup.job.options;
    let has_ramp = !options.ramp_time.is_zero() || options.ramp_size > 0;
    if !has_ramp || ops(seen.record) == 0 {
        return None;
    }
    let directions = seen.record.directions.each();
    let kept = directions.iter().filter_map(|direction| {
        let latency = direction.clat.as_ref().or(direction.lat.as_ref())?;
        Some(latency.summary.count())
    });
    // Saturated: a damaged record must not overflow it.
    let measured = kept.reduce(u64::saturating_add)?;
    let sentence = match measured {
        0 => "the job ended within its ramp: the figures are those of what was to be left out",
        _ => "the figures are of the time after the ramp",
    };
    let figures = vec![figure("ops", to_float(measured))];
    Some(validity("ramp", measured > 0, sentence.to_owned(), figures))
}
