//! fio's command-line switches: what is no option of a job.

/// A switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub(crate) name: &'static str,
    /// Its letter, or `NO_LETTER`.
    pub(crate) short: char,
    pub(crate) argument: Argument,
    pub(crate) action: Action,
    /// What it does, in a few words.
    pub(crate) help: &'static str,
}

/// Whether a switch takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    None,
    /// Only in the form `--switch=argument`.
    Optional(&'static str),
    Required(&'static str),
}

/// What a switch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Output,
    Format,
    TerseVersion,
    Minimal,
    AppendTerse,
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
    StatusInterval,
    Debug,
    ParseOnly,
    Section,
    WarningsFatal,
    IdleProfile,
    CpuClockTest,
    ChecksumTest,
    CopyTest,
    InflateLog,
    Machine,
    Seeks,
    SaveDistribution,
    /// Not in Fathom, and what to do instead.
    Refused(&'static str),
    /// Accepted and ignored, as in fio.
    Ignored,
    /// fio has it; Fathom not yet.
    NotYet,
}

/// The switch of this name.
pub(crate) fn find(name: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|switch| switch.name == name)
}

/// The switch of this letter.
pub(crate) fn find_short(letter: char) -> Option<&'static Switch> {
    SWITCHES
        .iter()
        .find(|switch| switch.short == letter && letter != NO_LETTER)
}

/// In place of the letter of a switch that has none.
pub(crate) const NO_LETTER: char = '\0';

/// All of them, in fio's order.
#[rustfmt::skip]
pub(crate) const SWITCHES: &[Switch] = &[
    switch("output", 'o', Required("file"), Output, "Write report and messages to this file"),
    switch("output-format", 'F', Required("formats"), Format, "normal, terse, json, json+; a list"),
    switch("minimal", 'm', None, Minimal, "The same as --output-format=terse"),
    switch("terse-version", 'V', Required("2-5"), TerseVersion, "Layout of the terse report"),
    switch("append-terse", 'f', Optional("arg"), AppendTerse, "Add the terse report to the others"),
    switch("bandwidth-log", 'b', Optional("prefix"), BandwidthLog, "Log the whole run's bandwidth"),
    switch("latency-log", 'l', Required("arg"), Refused(GONE), "Given up in fio"),
    switch("version", 'v', None, Version, "Print the version"),
    switch("help", 'h', None, Help, "Print this text"),
    switch("cmdhelp", 'c', Optional("option"), OptionHelp, "Describe a job option, or all"),
    switch("enghelp", 'i', Optional("engine[,option]"), EngineHelp, "Describe the engines"),
    switch("showcmd", 's', None, ShowCommand, "Print job files as a command line"),
    switch("readonly", 'r', None, ReadOnly, "Refuse jobs that write or trim"),
    switch("no-exec", NO_LETTER, None, NoExec, "Refuse jobs that run commands"),
    switch("eta", 'e', Required("when"), Eta, "Show the status line: always, never or auto"),
    switch("eta-interval", 'O', Required("time"), EtaInterval, "Renew the status line so often"),
    switch("eta-newline", 'E', Required("time"), EtaNewline, "Begin a new status line so often"),
    switch("status-interval", 'L', Required("time"), StatusInterval, "Print reports so often"),
    switch("debug", 'd', Required("list"), Debug, "Tell what is done; help lists kinds"),
    switch("parse-only", 'P', None, ParseOnly, "Check the options and start nothing"),
    switch("section", 'x', Required("name"), Section, "Run only this section of the job file"),
    switch("alloc-size", 'a', Required("KiB"), Ignored, "Accepted and ignored"),
    switch("profile", 'p', Required("name"), Refused(PROFILE), "Run a built-in workload"),
    switch("warnings-fatal", 'w', None, WarningsFatal, "Take warnings for errors"),
    switch("max-jobs", 'j', Required("n"), Ignored, "Accepted and ignored"),
    switch("server", 'S', Optional("address"), Refused(REMOTE), "Listen for clients"),
    switch("daemonize", 'D', Required("file"), Refused(REMOTE), "Run the server in the background"),
    switch("client", 'C', Required("host"), Refused(REMOTE), "Run the jobs on this host"),
    switch("remote-config", 'R', Required("file"), Refused(REMOTE), "Job file on the server"),
    switch("idle-prof", 'I', Required("how"), IdleProfile, "Measure how idle processors are"),
    switch("inflate-log", 'X', Required("file"), InflateLog, "Print a compressed log"),
    switch("trigger-file", 'W', Required("file"), TriggerFile, "Fire it when this file appears"),
    switch("trigger-timeout", 'B', Required("time"), TriggerTimeout, "Fire it after this time"),
    switch("trigger", 'H', Required("command"), Trigger, "Command of the trigger"),
    switch("trigger-remote", 'J', Required("command"), Refused(REMOTE), "The server's command"),
    switch("aux-path", 'K', Required("dir"), Ignored, "Accepted and ignored"),
    switch("merge-blktrace-only", 'A', None, NotYet, "Merge traces and stop"),
    switch("cpuclock-test", 'T', None, CpuClockTest, "Test the processor's clock"),
    switch("crctest", 'G', Optional("name"), ChecksumTest, "Time the checksums"),
    switch("memcpytest", 'M', Optional("name"), CopyTest, "Time copying memory"),
    switch("machine", NO_LETTER, Required("file"), Machine, "Run in virtual time on models"),
    switch("seeks", NO_LETTER, None, Seeks, "With --machine: say how far apart requests were"),
    switch("save-distribution", NO_LETTER, Required("file"), SaveDistribution, SAVED),
    switch("server-internal", 'N', Required("arg"), Refused(WINDOWS), "Windows only"),
];

const SAVED: &str = "Save what ops took as a machine file for --machine";
const REMOTE: &str = "run it on each host (`ssh host fathom run job.fio`) and gather the JSON";
const GONE: &str = "write `write_lat_log=PREFIX` into the job; fio refuses this switch too";
const PROFILE: &str = "write its jobs into a job file";
const WINDOWS: &str = "leave it out: it is fio's own, on Windows";

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
