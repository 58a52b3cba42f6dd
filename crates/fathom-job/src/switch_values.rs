//! Values of command-line switches.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use fathom_core::{Nanos, OutputFormat};

use crate::findings::Findings;
use crate::plan::{IdleProfile, ShowMode};
use crate::problem::{Piece, Problem};
use crate::reading;
use crate::time::{self, Bare};

/// `--output-format`.
pub(crate) fn formats(text: &str) -> Result<Vec<OutputFormat>, Problem> {
    let format = |piece: Piece<'_>| {
        let name = piece.text.trim();
        OutputFormat::parse(name).ok_or_else(|| {
            let names = OutputFormat::NAMES.map(|(name, _)| name).join(", ");
            Problem::new(
                "bad-format",
                piece.range(),
                format!("unknown output format `{name}`"),
            )
            .fix(format!("use {names}, or a comma-separated list"))
        })
    };
    Piece::new(text)
        .split(&[','])
        .into_iter()
        .map(format)
        .collect()
}

/// `--terse-version`.
pub(crate) fn terse_version(text: &str, findings: &mut Findings) -> Result<u32, Problem> {
    let documented = |_: &mut Findings| match text.trim().parse() {
        Ok(layout @ 2..=5) => Ok(layout),
        _ => Err(Problem::new(
            "bad-value",
            0..text.len(),
            format!("unknown terse version `{text}`"),
        )
        .fix("use 2, 3, 4 or 5")),
    };
    let fio = || {
        u32::try_from(reading::atoi(text))
            .ok()
            .filter(|layout| (2..=5).contains(layout))
    };
    findings.documented_or_fio_value(documented, fio)
}

/// `--eta`, `--summary`.
pub(crate) fn show(switch: &str, text: &str, findings: &mut Findings) -> Result<ShowMode, Problem> {
    match text {
        "always" => Ok(ShowMode::Always),
        "never" => Ok(ShowMode::Never),
        "auto" => Ok(ShowMode::Auto),
        _ => {
            let why = format!("`{text}` is not a value of `{switch}`");
            let problem = Problem::new("bad-value", 0..text.len(), why);
            findings.misread(problem.fix("use always, never or auto"), "auto")?;
            Ok(ShowMode::Auto)
        }
    }
}

/// `--eta-interval`.
pub(crate) fn interval(text: &str, findings: &mut Findings) -> Result<Nanos, Problem> {
    let span = time::read_part(Piece::new(text), Bare::Seconds, findings)?;
    if span < INTERVAL_MIN {
        return Err(Problem::new(
            "out-of-range",
            0..text.len(),
            format!("{span} is below the minimum interval of the status line, as in fio"),
        )
        .fix("write at least `250ms`"));
    }
    Ok(span)
}

/// `--eta-newline`.
pub(crate) fn newline(text: &str, findings: &mut Findings) -> Result<Option<Nanos>, Problem> {
    let span = time::read_part(Piece::new(text), Bare::Seconds, findings)?;
    if span.is_zero() {
        let why = "the interval between status lines cannot be 0, as in fio";
        let problem = Problem::new("out-of-range", 0..text.len(), why);
        return Err(problem.fix("write it like `--eta-newline=5s`, or remove it"));
    }
    Ok(Some(span))
}

/// `--status-interval`.
pub(crate) fn status_interval(text: &str, findings: &mut Findings) -> Result<Nanos, Problem> {
    let span = time::read_part(Piece::new(text), Bare::Seconds, findings)?;
    if span < STATUS_MIN {
        return Err(Problem::new(
            "out-of-range",
            0..text.len(),
            format!("{span} is below the minimum interval between reports, as in fio"),
        )
        .fix("write at least `1ms`; `1s` is reasonable"));
    }
    Ok(span)
}

/// `--record-every`; zero: only at the end.
pub(crate) fn record_every(text: &str, findings: &mut Findings) -> Result<Nanos, Problem> {
    time::read_part(Piece::new(text), Bare::Seconds, findings)
}

/// `--idle-prof`; `None`: only measure the unit of work.
pub(crate) fn idle_profile(text: &str) -> Result<Option<IdleProfile>, Problem> {
    match text {
        "system" => Ok(Some(IdleProfile::System)),
        "percpu" => Ok(Some(IdleProfile::PerCpu)),
        "calibrate" => Ok(None),
        _ => Err(Problem::new(
            "bad-value",
            0..text.len(),
            format!("`{text}` is not a value of `--idle-prof`"),
        )
        .fix("use system, percpu or calibrate")),
    }
}

/// `--crctest`, `--memcpytest`: comma-separated names; none for all.
pub(crate) fn names(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `--trigger-timeout`.
pub(crate) fn trigger_timeout(text: &str, findings: &mut Findings) -> Result<Nanos, Problem> {
    time::read_part(Piece::new(text), Bare::Seconds, findings)
}

/// `--section`.
pub(crate) fn section(text: &str) -> Result<String, Problem> {
    if text.starts_with("global") {
        let why = "`global` sections are not jobs and cannot be run";
        return Err(
            Problem::new("bad-section", 0..text.len(), why).fix("name the section of a job")
        );
    }
    Ok(text.to_owned())
}

/// `--tag`.
pub(crate) fn tag(text: &str) -> Result<(String, String), Problem> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => {
            let why = "a tag is a key and a value";
            let problem = Problem::new("bad-tag", 0..text.len(), why);
            Err(problem.fix("write `--tag KEY=VALUE`"))
        }
    }
}

/// `--metrics-file`: node_exporter ignores files of other names, without a word.
pub(crate) fn metrics_file(text: &str) -> Result<String, Problem> {
    if text.ends_with(".prom") {
        return Ok(text.to_owned());
    }
    let why = "the textfile collector of node_exporter reads files that end in `.prom` alone";
    let problem = Problem::new("bad-metrics-file", 0..text.len(), why);
    Err(problem.fix(format!("write `--metrics-file={text}.prom`")))
}

/// `--serve`: an IP address with a port, or a port on the loopback address. Names are not resolved:
/// they may have several addresses, or the one of another machine.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Problem> {
    let port = || {
        Some(SocketAddr::new(
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            text.parse().ok()?,
        ))
    };
    text.parse().ok().or_else(port).ok_or_else(|| {
        let why = format!("`{text}` is not an IP address with a port");
        let problem = Problem::new("bad-address", 0..text.len(), why);
        problem.fix("write a port, or an address with one: `127.0.0.1:8080`, `[::1]:8080`")
    })
}

/// fio's limit.
const STATUS_MIN: Nanos = Nanos::from_millis(1);
/// fio's limit.
const INTERVAL_MIN: Nanos = Nanos::from_millis(250);
