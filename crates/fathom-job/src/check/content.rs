//! Rules on written data and its verification.

use super::{JobCheck, problem, smallest, writes};
use crate::bytes_pattern;
use crate::plan::Verify;
use crate::problem::{FioLevel, Piece, Problem};
use crate::workload::DedupeMode;

impl JobCheck<'_> {
    /// Reads the files that patterns name.
    pub(super) fn patterns(&mut self) {
        if let Some(text) = self.layer.options.buffer_pattern_text.take() {
            self.layer.options.buffer_pattern = self.pattern("buffer_pattern", &text, None);
        }
        if let Some(text) = self.layer.options.verify_pattern_text.take() {
            let mut offsets = Vec::new();
            let pattern = self.pattern("verify_pattern", &text, Some(&mut offsets));
            self.layer.options.verify_pattern = pattern;
            self.layer.options.verify_pattern_offsets = offsets;
        }
    }

    fn pattern(
        &mut self,
        option: &'static str,
        text: &str,
        offsets: Option<&mut Vec<usize>>,
    ) -> Option<Vec<u8>> {
        let environment = self.environment;
        let mut file = |name: Piece<'_>| {
            environment.read_file(name.text).map_err(|error| {
                let why = format!("{}: {error}", name.text);
                Problem::new("no-pattern-file", name.range(), why).fix("name an existing file")
            })
        };
        bytes_pattern::read(text, &mut file, offsets)
            .map_err(|problem| self.error_at(&[option], problem))
            .ok()
    }

    pub(super) fn verify(&mut self) {
        let options = &mut self.layer.options;
        let pattern = options.verify_pattern.is_some();
        if pattern && options.verify == Verify::None {
            options.verify = Verify::PatternHeader;
        }
        let options = &self.layer.options;
        let block = smallest(&options.block_sizes.write).min(smallest(&options.block_sizes.read));
        let header = options.verify.payload_start(options.verification.layout) as u64;
        let writes = writes(options);
        let verifies = options.verify != Verify::None;
        let by_pattern = matches!(options.verify, Verify::Pattern | Verify::PatternHeader);
        let forever = options.time_based && options.do_verify && options.runtime.is_some();
        let forever = forever && options.readback.backlog == 0;
        if options.verification.dry_run.is_some() && !(verifies && options.do_verify) {
            let why = "nothing is read: `verify_only` issues none of the job's ops, as in fio";
            let fix = "add `verify`, without `do_verify=0`";
            self.warn_at(&["verify_only"], problem("nothing-to-verify", why).fix(fix));
        }
        if header > 0 && header >= block {
            let why = format!(
                "the verification header of {header} B leaves no payload in a block of {block} B",
            );
            let fix = format!("use `bs={}` or more", (header + 1).next_power_of_two());
            self.error_at(
                &["verify", "bs", "bsrange", "bssplit"],
                problem("bs-too-small", why).fix(fix),
            );
        }
        if by_pattern && !pattern {
            let problem = problem("no-pattern", "this `verify` needs `verify_pattern`")
                .fio("would stop with a failed assertion")
                .fix("add it, as in `verify_pattern=0xdeadbeef`");
            self.error_at(&["verify"], problem);
        } else if verifies && writes && forever {
            let why = "written data is not read back: the write phase takes all of the runtime, as \
                       in fio";
            self.warn_at(
                &["time_based"],
                problem("no-verify-phase", why)
                    .fio_level(FioLevel::Warning)
                    .fix("remove `time_based`, or add `verify_backlog=1024`"),
            );
        }
    }

    /// A verify state says what the blocks of a job that verifies hold.
    pub(super) fn verify_state(&mut self) {
        let options = &mut self.layer.options;
        if options.verify == Verify::None && options.verification.loads_state {
            options.verification.loads_state = false;
            let why = "the job verifies nothing: a verify state needs `verify`";
            let problem = problem("nothing-to-verify", why)
                .read_as("verify_state_load=0")
                .fix("add the `verify` of the job that wrote");
            self.error_at(&["verify_state_load"], problem);
        }
    }

    /// `verify_policy=fsynced` is for jobs with a verify state; one that saves it needs syncs.
    pub(super) fn verify_policy(&mut self) {
        let options = &self.layer.options;
        let verification = &options.verification;
        if !verification.by_sync {
            return;
        }
        let syncs = options.sync > 0
            || options.fsync > 0
            || options.fdatasync > 0
            || options.end_fsync
            || options.fsync_on_close
            || options.files.end_syncfs;
        let (why, fix) = if !verification.saves_state && !verification.loads_state {
            (
                "`verify_policy` has no effect without a verify state",
                "add `verify_state_save=1` to the job that writes",
            )
        } else if verification.saves_state && !syncs {
            (
                "the job makes no fsync, so its verify state holds no write",
                "add `fsync=64`, or `sync=1`",
            )
        } else {
            return;
        };
        let found = problem("no-fsync", why).fio_level(FioLevel::Silent);
        self.warn_at(&["verify_policy"], found.fix(fix));
    }

    /// Checks that the working set leaves room for its own unique blocks.
    pub(super) fn working_set(&mut self) {
        let content = &self.layer.options.content;
        let (repeats, set) = (
            content.dedupe_percentage.unwrap_or(0),
            content.dedupe_working_set_percentage,
        );
        if content.dedupe_mode == DedupeMode::WorkingSet && repeats > 0 && repeats + set > 100 {
            let why = format!(
                "{repeats} % duplicates do not leave {set} % unique blocks for the working set"
            );
            let fix = format!("reduce the working set to {} % or less", 100 - repeats);
            self.error_at(
                &["dedupe_working_set_percentage", "dedupe_percentage"],
                problem("contradiction", why).fix(fix),
            );
        }
    }
}
