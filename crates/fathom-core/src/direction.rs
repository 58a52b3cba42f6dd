//! Directions of data (read, write, trim) and kinds of sync.

use std::ops::{Index, IndexMut};

/// Direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// From the device.
    Read = 0,
    /// To the device.
    Write = 1,
    /// Discard.
    Trim = 2,
}

impl Direction {
    /// All directions, in fio's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Returns fio's number of the direction: 0, 1 or 2.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns `read`, `write` or `trim`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

/// System call that makes data durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncKind {
    /// `fsync(2)`: data and all metadata.
    Full,
    /// `fdatasync(2)`: data and the metadata needed to read it.
    Data,
    /// `sync_file_range(2)` with these flags: data between the op's offset and end; with length 0,
    /// up to the end of the file.
    Range(u8),
    /// `syncfs(2)`: the whole file system of the file.
    FileSystem,
}

/// One value per direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerDirection<T> {
    /// Value for reads.
    pub read: T,
    /// Value for writes.
    pub write: T,
    /// Value for trims.
    pub trim: T,
}

impl<T> PerDirection<T> {
    /// Creates values for reads, writes and trims.
    pub const fn new(read: T, write: T, trim: T) -> Self {
        Self { read, write, trim }
    }

    /// Creates each value by calling `f` with its direction.
    pub fn from_fn(mut f: impl FnMut(Direction) -> T) -> Self {
        Self::new(f(Direction::Read), f(Direction::Write), f(Direction::Trim))
    }

    /// Converts every value by `f`.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection::new(f(self.read), f(self.write), f(self.trim))
    }

    /// Iterates over directions and their values.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        Direction::ALL
            .into_iter()
            .zip([&self.read, &self.write, &self.trim])
    }
}

impl<T: Clone> PerDirection<T> {
    /// Creates the same value for all directions.
    pub fn all(value: T) -> Self {
        Self::new(value.clone(), value.clone(), value)
    }
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;
    #[inline]
    fn index(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }
}

impl<T> IndexMut<Direction> for PerDirection<T> {
    #[inline]
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }
}
