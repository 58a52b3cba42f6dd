//! Duration and memory of a trace.

use crate::follow::Following;

/// Duration and ring size of a trace.
pub struct TraceConfig<'a> {
    /// Duration; `None` traces until a stop is requested.
    pub seconds: Option<u32>,
    /// Ring size of each CPU, in MiB; 0 chooses one that suits this machine.
    pub ring_mib: u32,
    /// Returns the number of stop requests so far; any ends the trace.
    pub stops: &'a dyn Fn() -> u32,
}

impl TraceConfig<'_> {
    /// Returns the ring size: by default `RINGS_MIB` divided by the CPUs, 1 to 8 MiB each.
    pub(crate) fn ring_kib(&self) -> u64 {
        let mib = match self.ring_mib {
            0 => (RINGS_MIB / fathom_sys::system::cpus_configured()).clamp(1, 8),
            mib => mib,
        };
        u64::from(mib) << 10
    }

    pub(crate) fn following<'b>(&'b self, begun: &'b mut dyn FnMut()) -> Following<'b> {
        Following {
            seconds: self.seconds,
            ring_bytes: self.ring_kib() << 10,
            stops: self.stops,
            begun,
        }
    }
}

/// Memory of all rings together, in MiB.
const RINGS_MIB: u32 = 256;
