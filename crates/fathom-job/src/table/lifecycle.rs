//! Who starts after whom, and who ends with whom.

use super::general::choice;
use super::row::{Kind, Row};
use crate::lifecycle::ExitWhat;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "wait_for",
        "",
        "Start only when all clones of the job of this name have ended",
        "wait_for=prepare",
        Kind::Text(|o, text| o.lifecycle.wait_for = Some(text.to_owned())),
    ),
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
];
