//! Runs of fio's example job files, scaled down to files of a few MiB and runs of a second.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::trial::{self, ProgramRun, Programs};

/// Runs one example in a folder of its own.
pub(super) fn run(programs: &Programs, example: &Path, variables: &[&str]) -> Result<ProgramRun> {
    let name = example.file_stem().unwrap_or_default();
    let folder = programs.folder.join("runs").join(name);
    fs::create_dir_all(&folder)?;
    let text = String::from_utf8_lossy(&fs::read(example)?).into_owned();
    fs::write(folder.join("job.fio"), scaled(&text, &folder))?;
    fs::File::create(folder.join(DISK))?.set_len(DISK_BYTES)?;
    let ours = programs.ours.to_string_lossy();
    let given = [
        "--eta=never",
        "--output-format=json",
        "--output=report",
        "job.fio",
    ];
    let words: Vec<&str> = variables
        .iter()
        .copied()
        .chain([&*ours])
        .chain(given)
        .collect();
    let ran = trial::run(Path::new("env"), &folder, &words)?;
    fs::remove_dir_all(&folder)?;
    Ok(ran)
}

/// Returns a job file with sizes, times and counts that end soon, and its files in `folder`.
fn scaled(text: &str, folder: &Path) -> String {
    let fills = text.contains("fill_device");
    let mut out = String::new();
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim(), value.trim());
        match replaced(key, value, folder) {
            Some(new) => out.push_str(&format!("{key}={new}")),
            None => out.push_str(line),
        }
        out.push('\n');
        out.push_str(match key {
            // Otherwise until the disk is full.
            "[global]" if fills => "size=4m\n",
            "rate" | "rate_iops" => "runtime=1\n",
            _ => "",
        });
    }
    out
}

/// Returns the value that replaces an option's.
fn replaced(key: &str, value: &str, folder: &Path) -> Option<String> {
    let capped = |most: u64| {
        let asked: u64 = value.parse().ok()?;
        Some(asked.min(most).to_string())
    };
    match key {
        "size" | "filesize" | "io_size" if !value.ends_with('%') => Some("4m".into()),
        "runtime" | "timeout" | "ramp_time" | "startdelay" => Some("1".into()),
        "ss_dur" | "steadystate_duration" | "ss_ramp" | "steadystate_ramp_time" => Some("1".into()),
        "numjobs" => capped(4),
        "nrfiles" | "nr_files" => capped(20),
        "loops" => capped(2),
        "number_ios" => capped(100),
        "offset" => Some("0".into()),
        "zonesize" | "zoneskip" => Some("64k".into()),
        "directory" => Some(folder.display().to_string()),
        "filename" if value.starts_with('/') => Some(disk(folder).display().to_string()),
        _ => None,
    }
}

/// Returns the path of the file that stands for the disks of an example.
fn disk(folder: &Path) -> PathBuf {
    folder.join(DISK)
}

const DISK: &str = "disk";
const DISK_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_scaled_to_seconds_and_megabytes() {
        let text = "[global]\nsize = 100g\nnumjobs=2\nnumjobs=64\nnumjobs=$x\nfilename=/dev/sda\n\
                    filename=local\nfill_device=1\nsize=50%\nthread\nrate_iops=50\n";
        let want = "[global]\nsize=4m\nsize=4m\nnumjobs=2\nnumjobs=4\nnumjobs=$x\n\
                    filename=/f/disk\nfilename=local\nfill_device=1\nsize=50%\nthread\n\
                    rate_iops=50\nruntime=1\n";
        assert_eq!(scaled(text, Path::new("/f")), want);
    }
}
