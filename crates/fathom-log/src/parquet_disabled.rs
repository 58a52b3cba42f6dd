//! Replacement of `parquet.rs` in a program built without the feature `parquet`: a type that cannot
//! be constructed.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;

use super::row::{Row, Shape};

#[derive(Debug)]
pub(super) struct Table<W: Write + Send> {
    none: Infallible,
    of: PhantomData<W>,
}

impl<W: Write + Send> Table<W> {
    pub(super) fn new(_to: W, _shape: Shape, _value: &str) -> io::Result<Self> {
        Err(not_built_in())
    }

    pub(super) fn rows(&mut self, _records: &[u8]) -> io::Result<()> {
        match self.none {}
    }

    pub(super) fn finish(self) -> io::Result<W> {
        match self.none {}
    }
}

pub(super) fn read(
    _file: File,
    _each: &mut dyn FnMut(&Row, Shape) -> io::Result<()>,
) -> io::Result<()> {
    Err(not_built_in())
}

fn not_built_in() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, super::PARQUET_NOT_BUILT)
}
