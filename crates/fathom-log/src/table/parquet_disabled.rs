//! Replacement of `parquet.rs` in a program built without the feature `parquet`.

use std::io::{self, Write};
use std::marker::PhantomData;

use super::{TableColumn, TableKind};
use crate::parquet::not_built_in;

/// Table file, which this program cannot write.
#[derive(Debug)]
pub struct TableFile<W> {
    nothing: PhantomData<W>,
}

impl<W: Write + Send> TableFile<W> {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn create<'a>(
        _to: W,
        _columns: impl Iterator<Item = (&'a str, TableKind)>,
    ) -> io::Result<Self> {
        Err(not_built_in())
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn write(&mut self, _columns: &[TableColumn]) -> io::Result<()> {
        Err(not_built_in())
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn finish(self) -> io::Result<W> {
        Err(not_built_in())
    }
}
