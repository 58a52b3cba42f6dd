//! Duration and memory of a trace.

use crate::follow::Following;

/// How long is traced, and how.
pub struct TraceConfig<'a> {
    /// Until it is stopped, if there is none.
    pub seconds: Option<u32>,
    /// Of the ring of each processor; 0 for what suits this machine.
    pub ring_mib: u32,
    /// How often somebody asked for the end.
    pub stops: &'a dyn Fn() -> u32,
}

impl TraceConfig<'_> {
    /// So much of all memory over all processors, within reason for one.
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

/// All rings together, MiB.
const RINGS_MIB: u32 = 256;
