use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

use super::*;

/// A directory that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("fathom-output-file-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn file_appears_whole_or_not_at_all() {
    let folder = Folder::new("whole");
    for earlier in [None, Some("an earlier one, and longer")] {
        let path = folder.at("report");
        if let Some(earlier) = earlier {
            fs::write(&path, earlier).unwrap();
        }
        check(&path).unwrap();
        let mut file = OutputFile::create(&path, &Stop::never()).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), earlier);
        drop(file);
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), earlier);
        assert_eq!(folder.names().len(), usize::from(earlier.is_some()));
        write(&path, b"whole", &Stop::never()).unwrap();
        assert_eq!(text(&path), "whole");
        assert_eq!(folder.names(), ["report"]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn what_is_placed_grows_in_place() {
    let folder = Folder::new("grows");
    let path = folder.at("report");
    let mut file = OutputFile::create(&path, &Stop::never()).unwrap();
    file.write_all(b"one ").unwrap();
    assert!(!file.is_there());
    file.place(false).unwrap();
    assert!(file.is_there());
    assert_eq!(text(&path), "one ");
    file.write_all(b"two").unwrap();
    file.place(true).unwrap();
    assert_eq!(text(&path), "one two");
    fs::rename(&path, folder.at("rotated")).unwrap();
    assert!(!file.is_there());
    assert_eq!(folder.names(), ["rotated"]);
}

#[test]
fn links_stay_and_rights_stay() {
    let folder = Folder::new("links");
    let [file, link, chain, hard] = ["file", "link", "chain", "hard"].map(|name| folder.at(name));
    fs::write(&file, "old, and longer than what comes").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    symlink("file", &link).unwrap();
    symlink("link", &chain).unwrap();
    write(&chain, b"new", &Stop::never()).unwrap();
    assert!(link.is_symlink() && chain.is_symlink());
    assert_eq!(text(&file), "new");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
    fs::hard_link(&file, &hard).unwrap();
    write(&file, b"newer", &Stop::never()).unwrap();
    assert!(is_same_file(&file, &hard));
    assert_eq!(text(&hard), "newer");
    // A link to where there is nothing yet.
    fs::remove_file(&file).unwrap();
    write(&link, b"made", &Stop::never()).unwrap();
    assert!(link.is_symlink());
    assert_eq!(text(&file), "made");
    assert_eq!(folder.names(), ["chain", "file", "hard", "link"]);
}

#[test]
fn descriptor_is_written_and_not_replaced() {
    use std::os::fd::AsRawFd;
    let folder = Folder::new("descriptor");
    let path = folder.at("file");
    fs::write(&path, "old, and longer than what comes").unwrap();
    let open = File::open(&path).unwrap();
    let through = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    write(&through, b"new", &Stop::never()).unwrap();
    assert!(is_same_file(&through, &path));
    assert_eq!(text(&path), "new");
}

#[test]
fn devices_pipes_and_directories_are_never_replaced() {
    let folder = Folder::new("devices");
    write(Path::new("/dev/null"), b"gone", &Stop::never()).unwrap();
    let null = fs::symlink_metadata("/dev/null").unwrap();
    assert!(null.file_type().is_char_device());
    if Path::new("/dev/full").exists() {
        let full = write(Path::new("/dev/full"), b"lost", &Stop::never());
        assert!(full.is_err());
        assert!(Path::new("/dev/full").exists());
    }
    let error = write(&folder.0, b"lost", &Stop::never()).unwrap_err();
    assert_eq!(error.to_string(), "is a directory");
    assert!(check(&folder.0).is_err() && check(&folder.at("no/where")).is_err());
    let socket = folder.at("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(check(&socket).unwrap_err().to_string(), "is a socket");
}

#[test]
fn pipe_is_waited_for_until_somebody_asks_to_stop() {
    let folder = Folder::new("pipe");
    let path = folder.at("pipe");
    if !Command::new("mkfifo")
        .arg(&path)
        .status()
        .is_ok_and(|made| made.success())
    {
        println!("skipped: no mkfifo");
        return;
    }
    check(&path).unwrap();
    let looks = AtomicU32::new(0);
    let stop = Stop::when(move || looks.fetch_add(1, Ordering::Relaxed) >= 3);
    let error = OutputFile::create(&path, &stop).unwrap_err();
    assert_eq!(error.to_string(), "interrupted: no process reads it");
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read(path).unwrap()
    });
    // More than a pipe holds.
    let bytes = vec![7; 200_000];
    write(&path, &bytes, &Stop::never()).unwrap();
    assert!(reader.join().unwrap() == bytes);
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn full_pipe_is_waited_for_until_somebody_asks_to_stop() {
    let (reader, writer) = io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
    let looks = AtomicU32::new(0);
    let stop = Stop::when(move || looks.fetch_add(1, Ordering::Relaxed) >= 5);
    let error = write(Path::new(&path), &vec![7; 200_000], &stop).unwrap_err();
    assert_eq!(error.to_string(), "interrupted: no process reads it");
    drop(reader);
}

#[test]
fn longest_name_can_be_written() {
    let folder = Folder::new("long");
    let path = folder.at(&"n".repeat(255));
    check(&path).unwrap();
    write(&path, b"text", &Stop::never()).unwrap();
    assert_eq!(text(&path), "text");
}

#[test]
fn read_only_file_is_not_replaced() {
    let folder = Folder::new("read-only");
    let path = folder.at("file");
    fs::write(&path, "kept").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    if File::options().write(true).open(&path).is_ok() {
        println!("skipped: this user may write every file");
        return;
    }
    assert!(check(&path).is_err() && write(&path, b"new", &Stop::never()).is_err());
    assert_eq!(text(&path), "kept");
}
