//! Who starts after whom, and who ends with whom.

use super::errors::ignore_error;
use super::general::choice;
use super::row::{Kind, Row};
use crate::lifecycle::{ExitWhat, Unified};

// tidy: long: one row an option
pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wait_for",
        "",
        "Start only when all clones of the job of this name have ended",
        "wait_for=prepare",
        Kind::Text(|o, text| o.lifecycle.wait_for = Some(text.to_owned())),
    )
    .different("a job that comes later is refused; fio says so, runs nothing and ends with 0"),
    Row::new(
        "exitall",
        "0",
        "When a job ends, end those that `exit_what` names; set in one job, it holds for all",
        "exitall",
        Kind::Flag(|o, v| o.lifecycle.exitall = v),
    ),
    Row::new(
        "exit_what",
        "group",
        "Who ends with a job for `exitall` and `exitall_on_error`",
        "exit_what=all",
        Kind::Choice(&[
            choice("group", "jobs of its reporting group", |o| {
                o.lifecycle.exit_what = ExitWhat::Group;
            }),
            choice("stonewall", "jobs between the same stonewalls", |o| {
                o.lifecycle.exit_what = ExitWhat::Stonewall;
            }),
            choice("all", "all jobs, those not yet started too", |o| {
                o.lifecycle.exit_what = ExitWhat::All;
            }),
        ]),
    ),
    Row::new(
        "exitall_on_error",
        "0",
        "If this job ends with an error, end those that `exit_what` names",
        "exitall_on_error",
        Kind::Flag(|o, v| o.lifecycle.exitall_on_error = v),
    ),
    Row::new(
        "exec_prerun",
        "",
        "A command to run before the job; what it prints goes to NAME.prerun.txt",
        "exec_prerun=sync",
        Kind::Text(|o, text| o.lifecycle.exec_prerun = Some(text.to_owned())),
    )
    .different(
        "where it fails the job is skipped, as in fio, but it is said, and called as `fathom` the \
         program ends with 1; `--no-exec` refuses it",
    ),
    Row::new(
        "exec_postrun",
        "",
        "A command to run after the job; what it prints goes to NAME.postrun.txt",
        "exec_postrun=sync",
        Kind::Text(|o, text| o.lifecycle.exec_postrun = Some(text.to_owned())),
    )
    .different("a failure is said; `--no-exec` refuses it"),
    Row::new(
        "ignore_error",
        "",
        "Errors that a job goes past, by name or number: of reads, writes, verification",
        "ignore_error=EAGAIN,ENOSPC:122",
        Kind::Special {
            form: "lists for read,write,verify, of errors with colons between them",
            read: ignore_error,
        },
    ),
    Row::new(
        "error_dump",
        "0",
        "Tell of the errors that the job went past",
        "error_dump=1",
        Kind::Bool(|o, v| o.lifecycle.error_dump = v),
    )
    .different("the report tells of the first and how many; fio prints each as it comes"),
    Row::new(
        "unified_rw_reporting",
        "none",
        "Whether reads, writes and trims are reported as one",
        "unified_rw_reporting=mixed",
        Kind::Choice(&[
            choice("none", "each by itself", |o| {
                o.lifecycle.unified = Unified::None
            }),
            choice("mixed", "as one", |o| o.lifecycle.unified = Unified::Mixed),
            choice("both", "each by itself, and as one", |o| {
                o.lifecycle.unified = Unified::Both;
            }),
            choice("0", "as `none`", |o| o.lifecycle.unified = Unified::None),
            choice("1", "as `mixed`", |o| o.lifecycle.unified = Unified::Mixed),
            choice("2", "as `both`", |o| o.lifecycle.unified = Unified::Both),
        ]),
    ),
];
