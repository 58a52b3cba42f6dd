//! Values of options on groups, starts and ends, accepted and refused.

use crate::world::{World, check, refuse};
use fathom_core::{Nanos, PerDirection};
use fathom_job::{ExitWhat, SteadyFigure, Unified};

#[test]
fn lifecycle_options() {
    check("--exitall", |o| o.lifecycle.exitall);
    check("--exitall_on_error=1", |o| o.lifecycle.exitall_on_error);
    check("--exit_what=stonewall", |o| {
        o.lifecycle.exit_what == ExitWhat::Stonewall
    });
    refuse("--exit_what=none", "bad-value");
}

#[test]
fn options_of_ends_and_turns() {
    check("--flow=3 --flow_id=2 --flow_sleep=100", |o| {
        let rules = &o.lifecycle;
        (rules.flow, rules.flow_id) == (3, 2) && rules.flow_sleep == Nanos::from_micros(100)
    });
    refuse("--flow=1001", "out-of-range");
    check("--ignore_error=EAGAIN,ENOSPC:122", |o| {
        o.lifecycle.ignore_error == [vec![11], vec![28, 122], vec![]]
            && o.continue_on_error.read
            && !o.continue_on_error.verify
    });
    refuse("--ignore_error=EFOO", "bad-value");
    refuse("--ignore_error=EIO,EIO,EIO,EIO", "too-many-values");
    check("--exec_prerun=true --exec_postrun=false", |o| {
        o.lifecycle.exec_prerun.as_deref() == Some("true")
            && o.lifecycle.exec_postrun.as_deref() == Some("false")
    });
    check("--unified_rw_reporting=2", |o| {
        o.lifecycle.unified == Unified::Both
    });
    check("--max_latency=1ms,,2ms", |o| {
        o.lifecycle.max_latency
            == PerDirection::new(
                Some(Nanos::from_millis(1)),
                None,
                Some(Nanos::from_millis(2)),
            )
    });
    check(
        "--latency_target=2ms --latency_window=1s --latency_percentile=99.9",
        |o| {
            (o.lifecycle.latency_percentile - 99.9).abs() < 1e-9
                && o.lifecycle.latency_target == Nanos::from_millis(2)
        },
    );
    refuse("--latency_percentile=101", "bad-percentage");
    refuse("--latency_percentile=90:99", "bad-percentage");
    refuse("--wait_for=x", "bad-wait");
    refuse("--wait_for=y --name=y", "bad-wait");
    refuse("--name=x --name=z --wait_for=x", "bad-wait");
    let plan = World::default().plan("--name=a --numjobs=2 --name=b --wait_for=a");
    assert_eq!(
        plan.jobs[1].options.lifecycle.wait_for.as_deref(),
        Some("a")
    );
}

#[test]
fn options_of_steady_state() {
    let steady = |words: &str, figure, slope, limit: f64, percent| {
        check(words, |o| {
            let steady = o.lifecycle.steady.expect("a rule");
            (steady.figure, steady.slope, steady.percent) == (figure, slope, percent)
                && (steady.limit - limit).abs() < 1e-9
        });
    };
    steady("--ss=iops:5%", SteadyFigure::Iops, false, 5.0, true);
    steady("--ss=iops_slope:0.3", SteadyFigure::Iops, true, 0.3, false);
    steady(
        "--steadystate=bw:1k",
        SteadyFigure::Bandwidth,
        false,
        1024.0,
        false,
    );
    steady(
        "--ss=lat_slope:10",
        SteadyFigure::Latency,
        true,
        10_000.0,
        false,
    );
    refuse("--ss=iops", "bad-value");
    refuse("--ss=cpu:5%", "bad-value");
    refuse("--ss=iops:x", "bad-value");
    check("--ss_dur=10 --ss_ramp=5 --ss_interval=2", |o| {
        o.lifecycle.steady_duration == Nanos::from_secs(10)
            && o.lifecycle.steady_ramp == Nanos::from_secs(5)
            && o.lifecycle.steady_interval == Nanos::from_secs(2)
    });
}
