//! Virtual machines with a stock Debian kernel, for tests against the kernel's own NVMe/TCP.
//!
//! ```text
//! Debian packages ─► root folder ─► initramfs (busybox, nvme-cli, modules, a script) ─► QEMU
//! ```
//!
//! Kernel and tools are unpacked into the target directory, never installed. The processor is
//! emulated, which works on every machine: a guest is up after some seconds.

mod archive;
mod image;
mod machine;
mod modules;
mod outside;
mod packages;

pub(crate) use image::Image;
pub(crate) use machine::Machine;
pub(crate) use packages::Root;
