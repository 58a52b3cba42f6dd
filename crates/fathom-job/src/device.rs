//! Options on features of the device: atomic writes.

/// Features of the device that a job uses or watches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceOptions {
    /// `atomic`: each write is stored whole or not at all.
    pub atomic: bool,
}
