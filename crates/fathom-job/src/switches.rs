//! fio's command-line switches, as opposed to job options.

/// A command-line switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub(crate) name: &'static str,
    /// One-letter name, or `NO_LETTER`.
    pub(crate) short: char,
    pub(crate) argument: Argument,
    pub(crate) action: Action,
    /// Help text: `Noun phrase or imperative[; value: meaning]`, one line, no full stop.
    pub(crate) help: &'static str,
}

/// Argument of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    None,
    /// Only in the form `--switch=argument`.
    Optional(&'static str),
    Required(&'static str),
}

/// Program that a switch comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SwitchOrigin {
    /// fio.
    Fio,
    /// Fathom, under both names.
    Fathom,
    /// Fathom, refused under the name `fio`.
    FathomAlone,
}

impl Action {
    pub(crate) const fn origin(self) -> SwitchOrigin {
        match self {
            Self::Machine
            | Self::Seeks
            | Self::Summary
            | Self::EtaPercentiles
            | Self::SaveDistribution
            | Self::NoExec => SwitchOrigin::Fathom,
            Self::Trace
            | Self::SaveRecord
            | Self::RecordEvery
            | Self::MetricsFile
            | Self::History
            | Self::Tag
            | Self::Live
            | Self::Serve
            | Self::ServeAnyHost
            | Self::Rank
            | Self::StartAt
            | Self::StopTogether => SwitchOrigin::FathomAlone,
            _ => SwitchOrigin::Fio,
        }
    }
}

/// Effect of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Output,
    Format,
    TerseVersion,
    Minimal,
    AppendTerse,
    AuxPath,
    BandwidthLog,
    Version,
    Help,
    OptionHelp,
    EngineHelp,
    ShowCommand,
    ReadOnly,
    NoExec,
    Trigger,
    TriggerFile,
    TriggerTimeout,
    Eta,
    EtaInterval,
    EtaNewline,
    EtaPercentiles,
    StatusInterval,
    Debug,
    ParseOnly,
    MergeOnly,
    Section,
    WarningsFatal,
    IdleProfile,
    CpuClockTest,
    ChecksumTest,
    CopyTest,
    InflateLog,
    Machine,
    Seeks,
    Summary,
    Trace,
    SaveDistribution,
    SaveRecord,
    RecordEvery,
    MetricsFile,
    History,
    Tag,
    Live,
    Serve,
    ServeAnyHost,
    Rank,
    StartAt,
    StopTogether,
    Client,
    RemoteConfig,
    /// Not supported; with the alternative.
    Refused(&'static str),
    /// Accepted and ignored, as in fio.
    Ignored,
}

/// Returns the switch with this name.
pub(crate) fn find(name: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|switch| switch.name == name)
}

/// Returns the switch with this letter.
pub(crate) fn find_short(letter: char) -> Option<&'static Switch> {
    SWITCHES
        .iter()
        .find(|switch| switch.short == letter && letter != NO_LETTER)
}

/// Stands for the letter of a switch without one.
pub(crate) const NO_LETTER: char = '\0';

/// All entries, in fio's order.
#[rustfmt::skip]
pub(crate) const SWITCHES: &[Switch] = &[
    switch("output", 'o', Required("file"), Output, "Write the report and messages to a file"),
    switch("output-format", 'F', Required("formats"), Format, "normal, terse, json or json+"),
    switch("minimal", 'm', None, Minimal, "Same as --output-format=terse"),
    switch("terse-version", 'V', Required("2-5"), TerseVersion, "Version of the terse report"),
    switch("append-terse", 'f', Optional("arg"), AppendTerse, "Append a terse report"),
    switch("bandwidth-log", 'b', Optional("prefix"), BandwidthLog, "Log aggregate bandwidth"),
    switch("latency-log", 'l', Required("arg"), Refused(GONE), "Removed from fio"),
    switch("version", 'v', None, Version, "Print the version"),
    switch("help", 'h', None, Help, "Print this help"),
    switch("cmdhelp", 'c', Optional("option"), OptionHelp, "Describe or list job options"),
    switch("enghelp", 'i', Optional("engine[,option]"), EngineHelp, "Describe or list engines"),
    switch("showcmd", 's', None, ShowCommand, "Print job files as command lines"),
    switch("readonly", 'r', None, ReadOnly, "Refuse jobs that write or trim"),
    switch("no-exec", NO_LETTER, None, NoExec, "Refuse jobs that run commands"),
    switch("eta", 'e', Required("when"), Eta, "Show the status line; always, never or auto"),
    switch("eta-interval", 'O', Required("time"), EtaInterval, "Status line update interval"),
    switch("eta-newline", 'E', Required("time"), EtaNewline, "Interval between new status lines"),
    switch("eta-percentiles", NO_LETTER, None, EtaPercentiles, "Add p50 and p99 to status lines"),
    switch("status-interval", 'L', Required("time"), StatusInterval, "Interval between reports"),
    switch("debug", 'd', Required("list"), Debug, "Print debug output; help: list categories"),
    switch("parse-only", 'P', None, ParseOnly, "Check options and exit"),
    switch("section", 'x', Required("name"), Section, "Run only this section of the job file"),
    switch("alloc-size", 'a', Required("KiB"), Ignored, "No effect; accepted for compatibility"),
    switch("profile", 'p', Required("name"), Refused(PROFILE), "Run a built-in workload"),
    switch("warnings-fatal", 'w', None, WarningsFatal, "Treat warnings as errors"),
    switch("max-jobs", 'j', Required("n"), Ignored, "No effect; accepted for compatibility"),
    switch("server", 'S', Optional("address"), Refused(REMOTE), "Run as a server"),
    switch("daemonize", 'D', Required("file"), Refused(REMOTE), "Run as a background server"),
    switch("client", 'C', Required("host[,port]|file"), Client, CLIENT),
    switch("remote-config", 'R', Required("file"), RemoteConfig, "Job file on hosts of --client"),
    switch("idle-prof", 'I', Required("how"), IdleProfile, "Measure CPU idleness"),
    switch("inflate-log", 'X', Required("file"), InflateLog, "Print a compressed log"),
    switch("trigger-file", 'W', Required("file"), TriggerFile, "File that fires the trigger"),
    switch("trigger-timeout", 'B', Required("time"), TriggerTimeout, "Delay of the trigger"),
    switch("trigger", 'H', Required("command"), Trigger, "Trigger command"),
    switch("trigger-remote", 'J', Required("command"), Refused(REMOTE), "Trigger of a server"),
    switch("aux-path", 'K', Required("dir"), AuxPath, "Folder of saved verify states and blocks"),
    switch("merge-blktrace-only", 'A', None, MergeOnly, "Merge blktrace files and exit"),
    switch("cpuclock-test", 'T', None, CpuClockTest, "Test the CPU clock and exit"),
    switch("crctest", 'G', Optional("name"), ChecksumTest, "Benchmark checksums and exit"),
    switch("memcpytest", 'M', Optional("name"), CopyTest, "Benchmark memory copies and exit"),
    switch("machine", NO_LETTER, Required("file"), Machine, "Simulate on modelled devices"),
    switch("seeks", NO_LETTER, None, Seeks, "Report seek distances; needs --machine"),
    switch("summary", NO_LETTER, Optional("when"), Summary, SUMMARY),
    switch("trace", NO_LETTER, None, Trace, "Split latencies by the kernel's block events (root)"),
    switch("save-distribution", NO_LETTER, Required("file"), SaveDistribution, SAVED),
    switch("record", NO_LETTER, Required("file"), SaveRecord, RECORD),
    switch("record-every", NO_LETTER, Required("time"), RecordEvery, RECORD_EVERY),
    switch("metrics-file", NO_LETTER, Required("file"), MetricsFile, METRICS),
    switch("history", NO_LETTER, None, History, "Keep the run in the history of this machine"),
    switch("tag", NO_LETTER, Required("key=value"), Tag, "Label the run in the history"),
    switch("live", NO_LETTER, None, Live, "Show the run in the terminal while it is running"),
    switch("serve", NO_LETTER, Required("address"), Serve, SERVE),
    switch("serve-any-host", NO_LETTER, None, ServeAnyHost, ANY_HOST),
    switch("rank", NO_LETTER, Required("n/m"), Rank, RANK),
    switch("start-at", NO_LETTER, Required("time"), StartAt, START),
    switch("stop-together", NO_LETTER, None, StopTogether, TOGETHER),
    switch("server-internal", 'N', Required("arg"), Refused(WINDOWS), "Internal; Windows only"),
];

const SERVE: &str = "Show the run on a local web page: [IP:]port; 0: any";
const RECORD: &str = "Write the record as JSON; with --rank: into this folder";
const RECORD_EVERY: &str =
    "Also write the record while jobs run [default: 30 s with --rank; 0: never]";
const RANK: &str = "Place among the hosts of a run, from 0: n/m; auto: from the launcher";
const START: &str = "Start the jobs at a time in UTC: [YYYY-MM-DDT]HH:MM:SSZ";
const TOGETHER: &str = "End the jobs between two stonewalls on all ranks when one rank is through";
const ANY_HOST: &str = "Let --serve use an address that other machines reach";
const SUMMARY: &str = "Print a line per job; always, never or auto";
const SAVED: &str = "Save measured latencies as a machine file";
const METRICS: &str = "Write the figures for node_exporter's textfile collector";
const REMOTE: &str = "no server is needed: `--client` starts ranks over ssh";
const CLIENT: &str = "Run the jobs on other hosts over ssh: a host, or a file of hosts";
const GONE: &str = "set `write_lat_log=PREFIX` in the job; fio refuses this switch too";
const PROFILE: &str = "write the profile's jobs to a job file";
const WINDOWS: &str = "remove it; fio uses it internally on Windows";

const fn switch(
    name: &'static str,
    short: char,
    argument: Argument,
    action: Action,
    help: &'static str,
) -> Switch {
    Switch {
        name,
        short,
        argument,
        action,
        help,
    }
}

use Action::*;
use Argument::{None, Optional, Required};
