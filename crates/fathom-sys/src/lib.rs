//! System calls, rings, mapped memory, the clock: all of the unsafe code.
