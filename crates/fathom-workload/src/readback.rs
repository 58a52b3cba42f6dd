//! Verification inside the loop: stamping what is written, checking what is read.

use fathom_core::{Direction, Tick};

use crate::config::{VerifyConfig, WorkerConfig};
use crate::pattern::Target;
use crate::slots::SlotState;

/// STUB
#[derive(Debug)]
pub(crate) struct Readback {}
impl Readback {
    pub(crate) fn new(_v: VerifyConfig, _c: &WorkerConfig, _w: bool) -> Self {
        Self {}
    }
    pub(crate) fn is_reading(&self) -> bool {
        false
    }
    pub(crate) fn has_work(&self) -> bool {
        false
    }
    pub(crate) fn begin(&mut self) {}
    pub(crate) fn end(&mut self) {}
    pub(crate) fn next_target(&mut self) -> Option<Target> {
        None
    }
    pub(crate) fn stamp(&mut self, _b: &mut [u8], _t: &Target, _s: u64) {}
    pub(crate) fn written(&mut self, _s: &SlotState) {}
    pub(crate) fn checks_reads(&self) -> bool {
        false
    }
    pub(crate) fn check(&mut self, _b: &mut [u8], _s: &SlotState) -> Result<(), String> {
        Ok(())
    }
}
