//! Columns of the table.

use crate::table::Column;

/// Returns the columns: conditions, figures, those of each initiator, published figures.
pub(super) fn columns(initiators: u32) -> Vec<Column> {
    let mut columns = conditions();
    columns.extend(figures());
    columns
        .extend((1..=initiators).map(|number| Column::hidden(format!("initiator_{number}_gbps"))));
    columns.extend(published());
    columns
}

fn conditions() -> Vec<Column> {
    vec![
        Column::key("devices", "devices"),
        Column::key("pacing", "pacing"),
        Column::hidden("period_us_set"),
        Column::key("threads", "threads"),
        Column::key("buffer_cache", "cache"),
        Column::key("depth", "depth"),
        Column::key("slow_devices", "slow devices"),
        Column::key("slow_depth", "depth of slow"),
    ]
}

fn figures() -> Vec<Column> {
    vec![
        Column::hidden("kiops"),
        Column::figure("bw_gbps", "mean").in_group(BANDWIDTH),
        Column::figure("bw_gbps_min", "min").in_group(BANDWIDTH),
        Column::figure("bw_gbps_max", "max").in_group(BANDWIDTH),
        Column::hidden("fast_gbps"),
        Column::hidden("wire_gbps"),
        Column::figure("lat_us", "mean").in_group(LATENCY),
        Column::hidden("bw_gbps_stddev"),
        Column::figure("in_flight_mib", "measured").in_group(IN_FLIGHT),
        Column::figure("limit_mib", "limit").in_group(IN_FLIGHT),
        Column::figure("cache_hit_percent", "measured").in_group(HITS),
        Column::figure("period_us", "measured").in_group(PERIOD),
    ]
}

fn published() -> Vec<Column> {
    vec![
        Column::figure("published_bw_gbps", "published").in_group(BANDWIDTH),
        Column::hidden("published_wire_gbps"),
        Column::figure("published_lat_us", "published").in_group(LATENCY),
        Column::hidden("published_bw_gbps_stddev"),
        Column::figure("published_in_flight_mib", "published").in_group(IN_FLIGHT),
        Column::figure("published_l3_hit_percent", "published").in_group(HITS),
        Column::figure("published_period_us", "published").in_group(PERIOD),
    ]
}

const BANDWIDTH: &str = "bandwidth, Gb/s";
const LATENCY: &str = "latency, µs";
const IN_FLIGHT: &str = "buffers in flight, MiB";
const HITS: &str = "L3 hits, %";
const PERIOD: &str = "period, µs";
