//! The engines: null, the sync family, mmap, libaio, io_uring.
