//! One run: check, lay out files, start, watch, stop, collect.
#![forbid(unsafe_code)]
