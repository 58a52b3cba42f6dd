//! `fathom run --live`: the view in a real terminal, tmux's.

#![cfg_attr(
    feature = "live",
    expect(clippy::print_stderr, reason = "says why nothing was tried")
)]

use crate::common::Folder;

#[test]
fn without_a_terminal_or_the_feature_it_is_refused() {
    let folder = Folder::new();
    let run = folder.fathom("run --live --name=t --ioengine=null --rw=read --size=1m");
    let run = run.expect(2);
    let why = match cfg!(feature = "live") {
        true => "fathom: --live: standard error is not a terminal\n",
        false => "fathom: --live: this program was built without it\n",
    };
    assert!(run.err.starts_with(why), "{}", run.err);
    assert!(
        run.err.contains("\nhint: ") && run.err.contains("--serve 0"),
        "{}",
        run.err
    );
    assert!(run.out.is_empty());
}

#[cfg(feature = "live")]
mod in_tmux {
    use std::path::PathBuf;
    use std::process::{Command, Output};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const JOBS: &str = "run --live --ioengine=null --rw=randread --size=1g --rate_iops=5000 \
                        --time_based --runtime=600 --name=first --name=second --new_group";

    /// Terminal of tmux with a shell in it, on a server of its own.
    struct Terminal {
        socket: String,
        folder: Folder,
    }

    impl Terminal {
        /// Opens a terminal; `None` without tmux.
        fn open(width: u32, height: u32) -> Option<Self> {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let terminal = Self {
                socket: format!("fathom-{}-{number}", std::process::id()),
                folder: Folder::new(),
            };
            let size = [width.to_string(), height.to_string()];
            let mut command = terminal.command();
            command.env("LC_ALL", "C.UTF-8").env("PS1", "> ");
            command.args([
                "-u",
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-x",
                &size[0],
                "-y",
            ]);
            command.args([
                &size[1],
                "env",
                "-i",
                "LC_ALL=C.UTF-8",
                "PATH=/usr/bin:/bin",
            ]);
            command.args(["TERM=screen", "PS1=> ", "sh"]);
            match command.output() {
                Ok(output) if output.status.success() => {
                    terminal.wait_for(">");
                    Some(terminal)
                }
                Ok(output) => panic!("{output:?}"),
                Err(error) => {
                    eprintln!("skipped: no tmux: {error}");
                    None
                }
            }
        }

        fn command(&self) -> Command {
            let mut command = Command::new("tmux");
            command.args(["-L", &self.socket]);
            command.current_dir(self.folder.path()).env_remove("TMUX");
            command
        }

        fn tmux(&self, words: &[&str]) -> Output {
            self.command().args(words).output().unwrap()
        }

        /// Types a line into the shell.
        fn type_line(&self, line: &str) {
            self.tmux(&["send-keys", "-l", line]);
            self.tmux(&["send-keys", "Enter"]);
        }

        fn press(&self, key: &str) {
            self.tmux(&["send-keys", key]);
        }

        fn screen(&self) -> String {
            String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
        }

        /// Waits until the report of both groups is there; its beginning may have left the screen.
        #[track_caller]
        fn wait_for_report(&self) {
            self.wait_until("Run status group 1", |_| {
                let all = self.tmux(&["capture-pane", "-p", "-S", "-1000"]).stdout;
                String::from_utf8(all)
                    .unwrap()
                    .contains("Run status group 1")
            });
        }

        /// Returns whether the view has the screen: the alternate one, without cursor.
        fn is_taken(&self) -> Option<bool> {
            let shown = self.tmux(&["display-message", "-p", "#{alternate_on}#{cursor_flag}"]);
            match String::from_utf8(shown.stdout).unwrap().trim() {
                "10" => Some(true),
                "01" => Some(false),
                _ => None,
            }
        }

        /// Waits until the screen shows a text.
        #[track_caller]
        fn wait_for(&self, text: &str) -> String {
            self.wait_until(text, |screen| screen.contains(text))
        }

        #[track_caller]
        fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
            // Each look takes some milliseconds; a busy machine may need many.
            for _ in 0..5_000 {
                let screen = self.screen();
                if holds(&screen) {
                    return screen;
                }
            }
            panic!("no `{what}` on\n{}", self.screen());
        }

        /// Starts a run, and waits for its view.
        fn run(&self, words: &str) -> String {
            let program = env!("CARGO_BIN_EXE_fathom");
            self.type_line(&format!("{program} {words}"));
            self.wait_for("fathom run: running")
        }

        /// Signals the run, the only child of the shell.
        fn kill(&self, signal: &str) {
            let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
            let shell = String::from_utf8(shell.stdout).unwrap();
            let shell = shell.trim();
            let children = format!("/proc/{shell}/task/{shell}/children");
            let run = std::fs::read_to_string(children).unwrap();
            let status = Command::new("kill").args([signal, run.trim()]).status();
            assert!(status.unwrap().success());
        }

        /// Expects the terminal to be as it was before the run.
        #[track_caller]
        fn expect_given_back(&self) {
            // Keys before the prompt belong to the view.
            self.wait_until("prompt", |screen| {
                self.is_taken() == Some(false) && screen.trim_end().lines().last() == Some(">")
            });
            self.type_line("stty -a; echo given back: $((6 * 7))");
            let screen = self.wait_for("given back: 42");
            for word in ["icanon", "echo", "isig"] {
                let is_set = screen.split_whitespace().any(|shown| shown == word);
                assert!(is_set, "no `{word}` on\n{screen}");
            }
            self.wait_until("screen of the shell", |_| self.is_taken() == Some(false));
        }
    }

    impl Drop for Terminal {
        fn drop(&mut self) {
            self.tmux(&["kill-server"]);
        }
    }

    #[test]
    fn the_view_fits_and_the_report_follows() {
        for (width, height) in [(80, 24), (200, 50)] {
            let Some(terminal) = Terminal::open(width, height) else {
                return;
            };
            terminal.run(JOBS);
            terminal.wait_until("screen of the view", |_| terminal.is_taken() == Some(true));
            for want in [
                "2 of 2 jobs run",
                "latency by second",
                "read whole run",
                "q stop",
            ] {
                terminal.wait_for(want);
            }
            terminal.press("g");
            terminal.wait_for("jobs run  group 0");
            terminal.press("?");
            terminal.wait_for("Shift-Tab");
            terminal.press("Escape");
            terminal.press("p");
            terminal.wait_for("PAUSED");
            terminal.press("q");
            terminal.wait_for_report();
            terminal.expect_given_back();
        }
    }

    #[test]
    fn a_run_is_resized_while_it_is_shown() {
        let Some(terminal) = Terminal::open(80, 24) else {
            return;
        };
        terminal.run(JOBS);
        let resize = |width: &str, height: &str| {
            terminal.tmux(&["resize-window", "-x", width, "-y", height]);
        };
        resize("120", "40");
        terminal.wait_until("40 lines", |screen| {
            screen
                .lines()
                .nth(39)
                .is_some_and(|last| last.contains("q stop"))
        });
        resize("50", "10");
        terminal.wait_for("too small for --live");
        resize("80", "24");
        terminal.wait_for("fathom run: running");
        terminal.press("C-c");
        terminal.wait_for_report();
        terminal.expect_given_back();
    }

    #[test]
    fn whatever_ends_the_run_gives_the_terminal_back() {
        for signals in [
            &["-HUP"][..],
            &["-QUIT"],
            &["-TERM", "-INT"],
            &["-INT", "-TERM"],
        ] {
            let Some(terminal) = Terminal::open(80, 24) else {
                return;
            };
            // A command after the job keeps the run from ending after the first signal.
            terminal.run(&format!("{JOBS} '--exec_postrun=sleep 60'"));
            terminal.kill(signals[0]);
            if let Some(second) = signals.get(1) {
                terminal.wait_for("fathom run: stopping");
                terminal.kill(second);
            }
            terminal.expect_given_back();
        }
    }

    /// Builds a library, for LD_PRELOAD, whose monotonic clock fails in the threads of a name once
    /// a file exists: the standard library panics then. `None` without a C compiler.
    fn broken_clock(folder: &Folder) -> Option<PathBuf> {
        let source = folder.write(
            "clock.c",
            r#"#define _GNU_SOURCE
               #include <errno.h>
               #include <stdlib.h>
               #include <string.h>
               #include <sys/prctl.h>
               #include <sys/syscall.h>
               #include <time.h>
               #include <unistd.h>
               int clock_gettime(clockid_t clock, struct timespec *now) {
                   char name[16] = "";
                   prctl(PR_GET_NAME, name);
                   const char *broken = getenv("BROKEN_CLOCK");
                   if (broken && clock == CLOCK_MONOTONIC && strcmp(name, broken) == 0 &&
                       access("broken", F_OK) == 0) {
                       errno = EINVAL;
                       return -1;
                   }
                   return syscall(SYS_clock_gettime, clock, now);
               }"#,
        );
        let library = folder.path().join("clock.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        compiler.arg(&library).arg(&source);
        let made = compiler.status().is_ok_and(|status| status.success());
        if !made {
            eprintln!("skipped: no C compiler");
        }
        made.then_some(library)
    }

    #[test]
    fn a_panic_gives_the_terminal_back_and_is_told() {
        let Some(terminal) = Terminal::open(120, 24) else {
            return;
        };
        let Some(library) = broken_clock(&terminal.folder) else {
            return;
        };
        let library = library.display();
        let program = env!("CARGO_BIN_EXE_fathom");
        terminal.type_line(&format!(
            "BROKEN_CLOCK=live LD_PRELOAD={library} {program} {JOBS}"
        ));
        terminal.wait_for("fathom run: running");
        terminal.wait_until("screen of the view", |_| terminal.is_taken() == Some(true));
        terminal.folder.write("broken", "");
        // The jobs do not need the view: they go on, and their report follows.
        terminal.wait_for("fathom: internal error: ");
        terminal.wait_until("screen of the shell", |_| {
            terminal.is_taken() == Some(false)
        });
        terminal.kill("-INT");
        terminal.wait_for_report();
        terminal.expect_given_back();
    }

    #[test]
    fn a_stopped_run_goes_on_where_it_was() {
        let Some(terminal) = Terminal::open(80, 24) else {
            return;
        };
        terminal.run(JOBS);
        terminal.press("C-z");
        terminal.expect_given_back();
        terminal.type_line("fg");
        terminal.wait_for("fathom run: running");
        terminal.wait_until("screen of the view", |_| terminal.is_taken() == Some(true));
        terminal.press("C-c");
        terminal.wait_for_report();
        terminal.expect_given_back();
    }
}
