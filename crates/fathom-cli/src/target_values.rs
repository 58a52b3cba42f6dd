//! Values of `fathom target`'s options.

use std::net::SocketAddr;

use fathom_core::Nanos;
use fathom_target::{
    check_nqn, check_size, read_address, read_buffer_size, read_cpus, read_metrics_address,
    read_size,
};

/// CPUs, one per thread.
#[derive(Clone, Debug)]
pub(crate) struct Cpus(pub(crate) Vec<u32>);

/// Parses the size of a device.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bytes = read_size(text).ok_or("expected a size in bytes, such as 512M or 8G")?;
    check_size(bytes)?;
    match bytes.is_multiple_of(BLOCK_BYTES) {
        true => Ok(bytes),
        false => Err("the size must be a multiple of 512 B, a block".to_owned()),
    }
}

/// Parses the size of a data buffer.
pub(crate) fn buffer_size(text: &str) -> Result<u32, String> {
    read_buffer_size(text).ok_or_else(|| "expected a power of two from 8k to 1m".to_owned())
}

/// Parses an address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let wanted = "expected an IP address with a port, such as 127.0.0.1:4420 or [::1]:4420";
    read_address(text).ok_or_else(|| wanted.to_owned())
}

/// Parses the address of the Prometheus endpoint.
pub(crate) fn metrics(text: &str) -> Result<SocketAddr, String> {
    let wanted = "expected a port, or an IP address with one, such as 127.0.0.1:9500";
    read_metrics_address(text).ok_or_else(|| wanted.to_owned())
}

/// Parses an NQN.
pub(crate) fn nqn(text: &str) -> Result<String, String> {
    check_nqn(text).map_err(str::to_owned)?;
    Ok(text.to_owned())
}

/// Parses the CPUs of the threads.
pub(crate) fn cpus(text: &str) -> Result<Cpus, String> {
    let cpus = read_cpus(text).map(Cpus);
    cpus.ok_or_else(|| "expected a list of CPUs, such as 0-3,8".to_owned())
}

/// Parses a period in microseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounds are far below 2^53 ns, and not negative"
)]
pub(crate) fn period(text: &str) -> Result<Nanos, String> {
    let us: Option<f64> = text.parse().ok();
    let us = us.filter(|us| (0.001..=1e6).contains(us));
    let us = us.ok_or("expected microseconds, such as 5.75")?;
    Ok(Nanos::new((us * 1e3).round() as u64))
}

/// Block of devices that a target file does not describe.
const BLOCK_BYTES: u64 = 512;
