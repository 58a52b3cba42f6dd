//! One run: check, lay out files, start, watch, stop, collect.
