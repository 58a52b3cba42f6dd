//! The options that tie a job to others, and to its own end.

/// Who starts after whom, and who ends with whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifecycleOptions {
    /// `wait_for`: the name of the job whose clones must all have ended.
    pub wait_for: Option<String>,
    /// `exitall`: when a job ends, others end with it. Set in one job, it holds for all.
    pub exitall: bool,
    /// `exitall_on_error`: the same, where this job ends with an error.
    pub exitall_on_error: bool,
    /// `exit_what`.
    pub exit_what: ExitWhat,
}

/// `exit_what`: who ends with a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// Jobs of its reporting group.
    #[default]
    Group,
    /// Jobs between the same two stonewalls.
    Stonewall,
    /// All, those that have not started too.
    All,
}
