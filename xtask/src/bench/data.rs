//! Data that the jobs read: random bytes, which no layer can compress or deduplicate.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::programs::{Program, Programs};
use crate::process;

/// Test file of the rows that read a file; removed on drop.
#[derive(Debug)]
pub(crate) struct TestFile {
    path: PathBuf,
}

impl TestFile {
    /// Writes the file, so that no run includes a layout.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let made = Self {
            path: folder.join("xtask-bench.data"),
        };
        File::create(&made.path)
            .with_context(|| format!("cannot write {}", made.path.display()))?;
        fill(&made.path, FILE_MIB)?;
        Ok(made)
    }

    /// Writes the file with a header and a checksum in each block, in the layout that every fio
    /// verifies.
    pub(crate) fn make_verified(folder: &Path, programs: &Programs) -> Result<Self> {
        let made = Self {
            path: folder.join("xtask-bench.verified"),
        };
        let mut command = programs.command(Program::FathomRun, &[])?;
        command
            .args(["--name=write", "--rw=write", "--bs=64k", "--do_verify=0"])
            .args(["--verify=crc32c", "--verify_header=fio-3.33"])
            .arg(format!("--filename={}", made.path.display()))
            .arg(format!("--size={FILE_MIB}m"));
        process::capture(&mut command)?;
        Ok(made)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        // Best effort: a drop cannot report an error.
        let _ = fs::remove_file(&self.path);
    }
}

/// Fills an existing file or device with random bytes from the start.
pub(crate) fn fill(path: &Path, mib: u32) -> Result<()> {
    let what = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new()
        .write(true)
        .open(path)
        .with_context(what)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chunk = Vec::with_capacity(CHUNK);
    for _ in 0..mib {
        chunk.clear();
        while chunk.len() < CHUNK {
            state = next_random(state);
            chunk.extend_from_slice(&state.to_le_bytes());
        }
        file.write_all(&chunk).with_context(what)?;
    }
    file.sync_all().with_context(what)
}

/// Reads a whole file, which brings it into the page cache.
pub(crate) fn read_through(path: &Path) -> Result<()> {
    let file = File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
    file.map(drop)
        .with_context(|| format!("cannot read {}", path.display()))
}

/// Marsaglia's xorshift64: good enough to fill a file.
fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

/// File size: larger than any CPU cache, small enough for every machine's page cache.
const FILE_MIB: u32 = 256;
const CHUNK: usize = 1 << 20;
