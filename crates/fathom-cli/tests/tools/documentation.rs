//! Completions and manual pages, as shells and `man` read them.

use std::process::Command;

use crate::common::{Folder, Run};

/// Returns the words that bash offers for the last of `words`.
fn offered(folder: &Folder, words: &[&str]) -> Option<Vec<String>> {
    let script = "source ./script; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  _fathom fathom \"${@: -1}\" \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = folder.command("bash", "--norc --noprofile -c");
    bash.arg(script).arg("bash").args(words);
    let Ok(output) = bash.output() else {
        println!("skipped: no bash");
        return None;
    };
    let run = Run::from(output);
    Some(run.out.lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_commands_options_and_their_values() {
    let folder = Folder::new();
    folder.write("script", folder.fathom("completions bash").expect(0).out);
    for (words, want) in [
        (&["fathom", "pe"][..], "peak"),
        (&["fathom", "peak", "--repea"], "--repeats"),
        (&["fathom", "run", "--iode"], "--iodepth"),
        (&["fathom", "run", "--output-fo"], "--output-format"),
        (&["fathom", "run", "--rw", "randr"], "randread"),
        (&["fathom", "lint", "--ioengine", "io_u"], "io_uring"),
        (&["fathom", "completions", "z"], "zsh"),
    ] {
        let Some(offered) = offered(&folder, words) else {
            return;
        };
        assert!(
            offered.iter().any(|word| word == want),
            "{words:?}: {offered:?}"
        );
    }
}

#[test]
fn each_shell_has_a_script_and_others_are_refused() {
    let folder = Folder::new();
    for (shell, sign) in [
        ("bash", "complete -F _fathom"),
        ("zsh", "#compdef fathom"),
        ("fish", "complete -c fathom"),
    ] {
        let script = folder.fathom(&format!("completions {shell}")).expect(0).out;
        assert!(script.contains(sign), "{shell}");
        let words = format!("completions {shell} --dir a/folder");
        assert_eq!(folder.fathom(&words).expect(0).out, "");
        let name = match shell {
            "bash" => "fathom",
            "zsh" => "_fathom",
            _ => "fathom.fish",
        };
        let written = std::fs::read_to_string(folder.path().join("a/folder").join(name));
        assert_eq!(written.unwrap(), script, "{shell}");
        // Syntax, where the shell is there to check it.
        folder.write("script", script);
        if let Ok(output) = folder.command(shell, "-n script").output() {
            Run::from(output).expect(0);
        }
    }
    let run = folder.fathom("completions csh").expect(2);
    assert!(run.err.contains("bash, zsh, fish"), "{}", run.err);
}

#[test]
fn manual_pages_are_valid() {
    let folder = Folder::new();
    assert_eq!(folder.fathom("man --dir pages").expect(0).out, "");
    let pages = folder.path().join("pages");
    let mut names = Vec::new();
    for section in ["man1", "man5"] {
        for entry in std::fs::read_dir(pages.join(section)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            names.push(format!("{section}/{name}"));
        }
    }
    for want in ["man1/fathom.1", "man1/fathom-run.1", "man5/fathom-jobs.5"] {
        assert!(names.iter().any(|name| name == want), "{names:?}");
    }
    if Command::new("man").arg("--version").output().is_err() {
        println!("skipped: no man");
        return;
    }
    for name in names {
        let mut man = folder.command("man", "--warnings -l");
        man.arg(format!("pages/{name}"))
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8");
        let run = Run::from(man.output().unwrap()).expect(0);
        assert_eq!(run.err, "", "{name}");
    }
}

#[test]
fn pages_have_short_names_and_are_listed() {
    let folder = Folder::new();
    let list = folder.fathom("man").expect(0).out;
    assert!(
        list.starts_with("fathom ") && list.contains("fathom-jobs "),
        "{list}"
    );
    assert!(
        list.lines().all(|line| line.chars().count() <= 100),
        "{list}"
    );
    let long = folder.fathom("man fathom-jobs").expect(0).out;
    assert_eq!(folder.fathom("man jobs").expect(0).out, long);
    assert!(long.contains("\\fBrate_iops\\fR") && long.contains("\\fBio_uring\\fR"));
    let run = folder.fathom("man nothing").expect(2);
    assert!(
        run.err.contains("no such page: nothing\nhint: "),
        "{}",
        run.err
    );
}

#[test]
fn the_version_names_commit_and_features() {
    let folder = Folder::new();
    let run = folder.fathom("--version").expect(0);
    let first = run.out.lines().next().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(first.starts_with(&format!("fathom {version}")), "{first}");
    assert!(run.out.contains("features: "), "{}", run.out);
}
