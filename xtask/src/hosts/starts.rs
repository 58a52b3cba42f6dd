//! Common starts and compared clocks over TCP, the truth known: all hosts have the kernel's clock.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Case;
use super::lab::Lab;

/// Tests that take a minute or two.
pub(super) const CASES: &[Case] = &[Case {
    name: "starts",
    what: "50 starts: clocks are within their bounds, and how far apart the first ops are",
    run: starts,
}];

fn starts(lab: &Lab) -> Result<()> {
    let words = "--name=a --ioengine=null --size=1g --thinktime=1ms --time_based --runtime=100ms \
                 --output-format=json";
    let (mut apart, mut errors, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let run = lab.mpirun(words)?.expect(0)?;
        let report = run.json()?;
        let hosts = report["fathom"]["hosts"].as_array().context("no hosts")?;
        let starts = hosts.iter().map(|host| host["start_ns"].as_u64());
        let starts: Vec<u64> = starts.collect::<Option<_>>().context("no start")?;
        let (first, last) = (starts.iter().min(), starts.iter().max());
        apart.push(last.context("no host")? - first.context("no host")?);
        for clock in hosts.iter().skip(1).map(|host| &host["clock"]) {
            let (error, bound) = clock_of(clock).context("no clock")?;
            run.check(error <= bound, "the clock is within its bound")?;
            errors.push(error);
            bounds.push(bound);
        }
    }
    tell("first ops apart", apart);
    tell("errors of clocks", errors);
    tell("bounds of clocks", bounds);
    Ok(())
}

fn clock_of(clock: &Value) -> Option<(u64, u64)> {
    let error = clock["offset_ns"].as_i64()?.unsigned_abs();
    Some((error, clock["bound_ns"].as_u64()?))
}

/// Prints the median of times in ns, and the largest of nine in ten and of all.
#[expect(clippy::cast_precision_loss, reason = "times in ns, far below 2⁵²")]
fn tell(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |tenths: usize| times[times.len() * tenths / 10 - 1] as f64 / 1e6;
    println!(
        "hosts:   {what}: median {:.4} ms, 9 of 10 within {:.4}, all within {:.4}",
        at(5),
        at(9),
        at(10)
    );
}

const STARTS: usize = 50;
