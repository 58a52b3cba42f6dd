//! Entry of this host in the record of a run of several ranks that talk to each other.

use fathom_record::{HostClock, HostRecord, HostWave};

use crate::peers::PeerTimes;

/// Adds what the ranks agreed on to the entry of this host.
pub(crate) fn add(host: Option<HostRecord>, times: Option<PeerTimes>) -> Option<HostRecord> {
    let (host, times) = (host?, times.unwrap_or_default());
    let Some(clock) = times.clock else {
        return Some(host);
    };
    let waves = times.waves.iter().map(|span| HostWave {
        wave: span.wave.get(),
        agreed_ns: span.agreed_ns,
        bound_ns: span.bound.get(),
        start_ns: span.start_ns,
        end_ns: span.end_ns,
    });
    Some(HostRecord {
        clock: HostClock {
            compared: "messages".to_owned(),
            offset_ns: clock.offset_ns,
            bound_ns: Some(clock.bound.get()),
            drift_ppb: clock.drift_ppb,
            ..host.clock
        },
        agreed_ns: times.waves.first().map(|first| first.agreed_ns),
        start_ns: times.waves.first().map_or(0, |first| first.start_ns),
        end_ns: times.waves.last().map_or(0, |last| last.end_ns),
        waves: waves.collect(),
        ..host
    })
}
