//! fio's command-line switches: what is no option of a job.

/// A switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    pub(crate) name: &'static str,
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
    Version,
    Help,
    OptionHelp,
    EngineHelp,
    ShowCommand,
    ReadOnly,
    Eta,
    EtaInterval,
    EtaNewline,
    ParseOnly,
    Section,
    WarningsFatal,
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
    SWITCHES.iter().find(|switch| switch.short == letter)
}

/// All of them, in fio's order.
#[rustfmt::skip]
pub(crate) const SWITCHES: &[Switch] = &[
    switch("output", 'o', Required("file"), Action::Output, "Write report and messages to this file"),
    switch("output-format", 'F', Required("formats"), Action::Format, "normal, json or json+; several with commas"),
    switch("minimal", 'm', None, Action::NotYet, "The same as --output-format=terse"),
    switch("terse-version", 'V', Required("2-5"), Action::TerseVersion, "Layout of the terse report"),
    switch("append-terse", 'f', Optional("arg"), Action::NotYet, "Add the terse report to the others"),
    switch("bandwidth-log", 'b', Optional("prefix"), Action::NotYet, "Write logs of the whole run's bandwidth"),
    switch("latency-log", 'l', Required("arg"), Action::NotYet, "Given up in fio"),
    switch("version", 'v', None, Action::Version, "Print the version"),
    switch("help", 'h', None, Action::Help, "Print this text"),
    switch("cmdhelp", 'c', Optional("option"), Action::OptionHelp, "Describe an option of jobs; `all` for every one"),
    switch("enghelp", 'i', Optional("engine[,option]"), Action::EngineHelp, "List the engines, or an engine's own options"),
    switch("showcmd", 's', None, Action::ShowCommand, "Print job files as a command line"),
    switch("readonly", 'r', None, Action::ReadOnly, "Refuse jobs that write or trim"),
    switch("eta", 'e', Required("when"), Action::Eta, "Show the status line: always, never or auto"),
    switch("eta-interval", 'O', Required("time"), Action::EtaInterval, "How often the status line is renewed"),
    switch("eta-newline", 'E', Required("time"), Action::EtaNewline, "Begin a new status line so often"),
    switch("status-interval", 'L', Required("time"), Action::NotYet, "Print a full report so often"),
    switch("debug", 'd', Required("list"), Action::NotYet, "Trace what the program does"),
    switch("parse-only", 'P', None, Action::ParseOnly, "Check the options and start nothing"),
    switch("section", 'x', Required("name"), Action::Section, "Run only this section of the job file"),
    switch("alloc-size", 'a', Required("KiB"), Action::Ignored, "Accepted and ignored"),
    switch("profile", 'p', Required("name"), Action::NotYet, "Run a workload that is built in"),
    switch("warnings-fatal", 'w', None, Action::WarningsFatal, "Take warnings for errors"),
    switch("max-jobs", 'j', Required("n"), Action::Ignored, "Accepted and ignored"),
    switch("server", 'S', Optional("address"), Action::NotYet, "Listen for clients"),
    switch("daemonize", 'D', Required("file"), Action::NotYet, "Put the server into the background"),
    switch("client", 'C', Required("host"), Action::NotYet, "Run the jobs on this host"),
    switch("remote-config", 'R', Required("file"), Action::NotYet, "Job file on the server"),
    switch("idle-prof", 'I', Required("how"), Action::NotYet, "Measure how idle the processors are"),
    switch("inflate-log", 'X', Required("file"), Action::NotYet, "Print a compressed log"),
    switch("trigger-file", 'W', Required("file"), Action::NotYet, "Fire the trigger when this file appears"),
    switch("trigger-timeout", 'B', Required("time"), Action::NotYet, "Fire the trigger after this time"),
    switch("trigger", 'H', Required("command"), Action::NotYet, "Command of the trigger"),
    switch("trigger-remote", 'J', Required("command"), Action::NotYet, "Command of the trigger on the server"),
    switch("aux-path", 'K', Required("dir"), Action::NotYet, "Where state files go"),
    switch("merge-blktrace-only", 'A', None, Action::NotYet, "Merge traces and stop"),
    switch("cpuclock-test", 'T', None, Action::NotYet, "Test the processor's clock"),
    switch("crctest", 'G', Optional("name"), Action::NotYet, "Time the checksums"),
    switch("memcpytest", 'M', Optional("name"), Action::NotYet, "Time copying memory"),
    switch("server-internal", 'N', Required("arg"), Action::NotYet, "Windows only"),
];

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

use Argument::{None, Optional, Required};
