//! Start and end conditions.

use super::errors::ignore_error;
use super::general::choice;
use super::row::{EmptyValue, Row, ValueKind};
use crate::lifecycle::{ExitWhat, Unified};
use crate::placement;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "ranks",
        "",
        "Ranks that have the section, from 0; with several ranks (docs/HOSTS.md)",
        "ranks=0-7,12-",
        ValueKind::Special {
            form: "list of ranks and ranges (0-7,12-)",
            read: |o, text, _| {
                o.placement.ranks = Some(placement::ranks(text)?);
                Ok(())
            },
        },
    )
    .different("Fathom extension"),
    Row::new(
        "hosts",
        "",
        "Hosts that have the section: patterns of names, separated by commas",
        "hosts=node[0-3]*,gpu1",
        ValueKind::Special {
            form: "list of patterns (node[0-3]*,gpu1)",
            read: |o, text, _| {
                o.placement.hosts = placement::hosts(text)?;
                Ok(())
            },
        },
    )
    .different("Fathom extension"),
    Row::new(
        "rank_shift",
        "0",
        "Work in place of the rank this many further on; node: of one on another host",
        "rank_shift=1",
        ValueKind::Special {
            form: "number of ranks, or node",
            read: |o, text, _| {
                o.placement.shift = placement::shift(text)?;
                Ok(())
            },
        },
    )
    .different("Fathom extension"),
    Row::new(
        "wait_for",
        "",
        "Start after all clones of the named job have ended",
        "wait_for=prepare",
        ValueKind::Text(|o, text| o.lifecycle.wait_for = Some(text.to_owned())),
    )
    .different(
        "a job defined later is refused; fio prints an error, runs nothing and exits with 0",
    ),
    Row::new(
        "exitall",
        "0",
        "When any job ends, end the jobs selected by `exit_what`; applies to all jobs",
        "exitall",
        ValueKind::Flag(|o, v| o.lifecycle.exitall = v),
    ),
    Row::new(
        "exit_what",
        "group",
        "Jobs to end for `exitall` and `exitall_on_error`",
        "exit_what=all",
        ValueKind::Choice(&[
            choice("group", "jobs in the same reporting group", |o| {
                o.lifecycle.exit_what = ExitWhat::Group;
            }),
            choice("stonewall", "jobs between the same stonewalls", |o| {
                o.lifecycle.exit_what = ExitWhat::Stonewall;
            }),
            choice("all", "all jobs, including those not yet started", |o| {
                o.lifecycle.exit_what = ExitWhat::All;
            }),
        ]),
    ),
    Row::new(
        "exitall_on_error",
        "0",
        "If this job fails, end the jobs selected by `exit_what`",
        "exitall_on_error",
        ValueKind::Flag(|o, v| o.lifecycle.exitall_on_error = v),
    ),
    Row::new(
        "exec_prerun",
        "",
        "Shell command to run before the job; its output goes to NAME.prerun.txt",
        "exec_prerun=sync",
        ValueKind::Text(|o, text| o.lifecycle.exec_prerun = Some(text.to_owned())),
    )
    .different(
        "if it fails the job is skipped, as in fio, but the failure is reported and the exit code \
         of `fathom` is 1; `--no-exec` refuses it",
    ),
    Row::new(
        "exec_postrun",
        "",
        "Shell command to run after the job; its output goes to NAME.postrun.txt",
        "exec_postrun=sync",
        ValueKind::Text(|o, text| o.lifecycle.exec_postrun = Some(text.to_owned())),
    )
    .different("a failure is reported; `--no-exec` refuses it"),
    Row::new(
        "ignore_error",
        "",
        "Errors to ignore, by name or number (read,write,verify)",
        "ignore_error=EAGAIN,ENOSPC:122",
        ValueKind::Special {
            form: "read,write,verify lists of colon-separated errors",
            read: ignore_error,
        },
    )
    .empty(EmptyValue::Ignored),
    Row::new(
        "error_dump",
        "0",
        "Report ignored errors",
        "error_dump=1",
        ValueKind::Bool(|o, v| o.lifecycle.error_dump = v),
    )
    .different(
        "the report states the first error and their number; fio prints each one as it occurs",
    ),
    Row::new(
        "unified_rw_reporting",
        "none",
        "Aggregation of reads, writes and trims in reports",
        "unified_rw_reporting=mixed",
        ValueKind::Choice(&[
            choice("none", "separate", |o| o.lifecycle.unified = Unified::None),
            choice("mixed", "combined", |o| {
                o.lifecycle.unified = Unified::Mixed
            }),
            choice("both", "separate and combined", |o| {
                o.lifecycle.unified = Unified::Both;
            }),
            choice("0", "same as `none`", |o| {
                o.lifecycle.unified = Unified::None
            }),
            choice("1", "same as `mixed`", |o| {
                o.lifecycle.unified = Unified::Mixed
            }),
            choice("2", "same as `both`", |o| {
                o.lifecycle.unified = Unified::Both
            }),
        ]),
    ),
];
