//! The options of I/O logs.

/// The I/O logs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// `write_bw_log`: prefix of the file name; empty for the job name.
    pub bandwidth: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`: files for lat, slat and clat.
    pub latency: Option<String>,
    /// `write_resp_log`.
    pub response: Option<String>,
    /// `write_hist_log`.
    pub histogram: Option<String>,
    /// `log_avg_msec`; 0: every op.
    pub average_ms: u32,
    /// `log_hist_msec`; 0: no histograms.
    pub histogram_ms: u32,
    /// `log_hist_coarseness`, 0–6.
    pub coarseness: u8,
    /// `log_window_value`.
    pub value: LogValue,
    /// `log_offset`.
    pub offset: bool,
    /// `log_prio`.
    pub priority: bool,
    /// `log_issue_time`.
    pub issue_time: bool,
    /// `log_alternate_epoch`, `log_unix_epoch`.
    pub epoch: bool,
    /// `log_alternate_epoch_clock_id`.
    pub epoch_clock: u32,
    /// `log_entries`.
    pub entries: u32,
    /// `log_compression_cpus`: CPUs of the log writer.
    pub cpus: Option<Vec<u32>>,
    /// `log_format`: the word that names the format; `text` is fio's.
    pub format: &'static str,
    /// `log_store_compressed`.
    pub stored: bool,
    /// `per_job_logs`.
    pub per_job: bool,
    /// `bwavgtime`, ms, if given.
    pub bandwidth_ms: Option<u32>,
    /// `iopsavgtime`, ms, if given.
    pub iops_ms: Option<u32>,
    /// `log_full`; `None`: depends on the name of the program.
    pub when_full: Option<LogFull>,
}

impl LogOptions {
    /// Returns whether the job has any log.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.bandwidth.is_some()
            || self.iops.is_some()
            || self.latency.is_some()
            || self.response.is_some()
            || self.histogram.is_some()
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            bandwidth: None,
            iops: None,
            latency: None,
            response: None,
            histogram: None,
            average_ms: 0,
            histogram_ms: 0,
            coarseness: 0,
            value: LogValue::Average,
            offset: false,
            priority: false,
            issue_time: false,
            epoch: false,
            epoch_clock: 0,
            entries: 1024,
            cpus: None,
            format: "text",
            stored: false,
            per_job: true,
            bandwidth_ms: None,
            iops_ms: None,
            when_full: None,
        }
    }
}

/// `log_window_value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogValue {
    /// Mean of the window.
    Average,
    /// Maximum of the window.
    Max,
    /// Both, in two columns.
    Both,
}

/// `log_full`: policy when the writer cannot keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFull {
    /// Drop entries and count them.
    Drop,
    /// Block the job.
    Wait,
}
