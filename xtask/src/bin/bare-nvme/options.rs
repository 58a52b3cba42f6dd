//! Arguments.

use anyhow::{Context, Result, bail};

use crate::shape::{Kind, Shape};
use crate::wait;

/// Options of all commands.
#[derive(Debug)]
pub(crate) struct Options {
    /// Address of the target.
    address: Option<String>,
    pub(crate) shape: Shape,
    pub(crate) depth: u16,
    pub(crate) queues: u16,
    pub(crate) seconds: f64,
    /// Seconds of load before it counts.
    pub(crate) warm_up: f64,
    pub(crate) wait: wait::Kind,
    /// NQN of the subsystem; none: the peer is the floor.
    pub(crate) nqn: Option<String>,
    pub(crate) connections: u32,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            address: None,
            shape: Shape {
                kind: Kind::Read,
                bytes: 4096,
            },
            depth: 32,
            queues: 1,
            seconds: 1.0,
            warm_up: WARM_UP,
            wait: wait::Kind::Block,
            nqn: None,
            connections: 1000,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--shape" => options.shape.kind = Kind::parse(value()?)?,
                "--bytes" => options.shape.bytes = number(arg, value()?)?,
                "--depth" => options.depth = number(arg, value()?)?,
                "--queues" => options.queues = number(arg, value()?)?,
                "--seconds" => options.seconds = number(arg, value()?)?,
                "--warm-up" => options.warm_up = number(arg, value()?)?,
                "--connections" => options.connections = number(arg, value()?)?,
                "--nqn" => options.nqn = Some(value()?.clone()),
                "--wait" => options.wait = wait::Kind::parse(value()?)?,
                "--busy" => options.wait = wait::Kind::Poll,
                address if !address.starts_with('-') && options.address.is_none() => {
                    options.address = Some(arg.clone());
                }
                other => bail!("no option `{other}`"),
            }
        }
        if options.depth == 0 || options.depth > DEPTH_MAX || options.queues == 0 {
            bail!("depth is 1 to {DEPTH_MAX}, and there is at least one queue");
        }
        Ok(options)
    }

    pub(crate) fn address(&self) -> Result<&str> {
        self.address.as_deref().context("no address is given")
    }
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T> {
    let Ok(value) = text.parse() else {
        bail!("{option} takes a number, not `{text}`");
    };
    Ok(value)
}

/// Time for buffers and congestion windows to grow.
const WARM_UP: f64 = 0.1;
/// Largest queue depth of NVMe over fabrics that targets commonly grant.
const DEPTH_MAX: u16 = 1024;
