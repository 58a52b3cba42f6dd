//! The result of a run: counters, histograms, machine, warnings.
//!
//! Every output is rendered from it, and it is serialised once. Field names carry their units;
//! fields are added, never reused, so that older records stay readable.
#![forbid(unsafe_code)]

mod addition;
mod block_lives;
mod context;
mod device_trace;
mod errno_text;
mod host;
mod host_sum;
mod host_warnings;
mod lifecycle;
mod measures;
mod metric;
mod peak;
mod plan_difference;
mod record;
mod scheduling;
mod seeks;
mod stalls;
mod stored;
mod target;
mod timeline;
mod trace;

// Public items, listed once.
/// Direction in which a [`Metric`] improves.
pub use fathom_stats::Improves;

pub use block_lives::BlockLivesRecord;
pub use context::{Machine, StorageRecord, Validity, Warning};
pub use device_trace::{DeviceTraceRecord, TracedJob};
pub use errno_text::errno_text;
pub use host::{HostClock, HostRecord, HostResult, HostWave};
pub use host_sum::{HostSum, HostSumError};
pub use lifecycle::{LatencyTargetRecord, SteadyStateRecord, Unified};
pub use measures::{GROUPS_MAX, Measure, measures};
pub use metric::{
    DIRECTIONS, METRICS, Metric, MetricName, MetricNameError, OF_SERVICE, known_direction,
};
pub use peak::{
    PEAK_VERSION, PeakComparison, PeakContention, PeakLatency, PeakPercentile, PeakPoint,
    PeakPointComparison, PeakRatio, PeakRecord, PeakRepeat, PeakRepeatLatency,
};
pub use record::{
    CpuRecord, DirectionRecord, DiskRecord, Display, FioError, Idleness, JobRecord, LogRecord,
    ModelledDevice, ModelledMachine, OwnCostRecord, PerDirectionRecord, PriorityRecord,
    RECORD_VERSION, Record, SyncRecord, Tolerated, VerifyRecord,
};
pub use scheduling::{ProcessorsRecord, SchedulingRecord};
pub use seeks::{SeekDistances, SeekRecord};
pub use stalls::{StallCause, StallRecord};
pub use stored::RecordError;
pub use target::{
    BuffersRecord, CommandsRecord, ConnectionRecord, EventsRecord, NamespaceRecord, PacerRecord,
    TARGET_VERSION, TargetRecord, ThreadRecord,
};
pub use timeline::TimelineRecord;
pub use trace::{
    TRACE_VERSION, TraceRecord, TracedDirection, UringBatches, UringTraceRecord, UringWork,
};
