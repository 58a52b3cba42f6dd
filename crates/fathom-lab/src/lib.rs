//! Experiments: published measurements, repeated and compared with the published figures.
#![forbid(unsafe_code)]

mod aio_submit;
mod announced;
mod closed_loop;
mod command;
mod compare;
mod compare_page;
mod counted;
mod embedded;
mod error;
mod experiments;
#[cfg(feature = "history")]
mod export;
mod figure;
mod finished;
mod hdd_seeks;
mod hdd_single;
mod hdd_tags;
mod import;
mod installed_fio;
mod io_pacing;
mod judge;
mod lab;
mod lab_file;
mod lab_page;
mod lab_plan;
mod log_entries;
mod machines;
mod median;
mod micro;
mod order;
mod published;
mod readable;
#[cfg(feature = "history")]
mod store;
mod subject;
mod table;
mod throttle;
mod trend;
mod trend_page;
mod uring_irq;
mod work_folder;

// Public items, listed once.
pub use aio_submit::{AioSubmit, aio_submit};
pub use compare::{
    CompareRules, CompareSide, ComparedMetric, ComparedVerdict, Comparison, SideOrder, SideValues,
    compare,
};
pub use compare_page::compare_page;
pub use embedded::TableContext;
pub use error::{CommandError, LabError};
pub use experiments::experiments;
#[cfg(feature = "history")]
pub use export::{
    ExportCell, ExportColumn, ExportKind, ExportTable, MetricsExport, OtavaExport, csv_line,
    otlp_line,
};
pub use fathom_block::Policy;
pub use fathom_report::plot::{Axis, Panel, Plot, Point, Scale, Series, Shape};
pub use figure::{aligned, change, figure, interval_level, printable, shortened};
pub use finished::{FinishedRun, RunEnd};
pub use hdd_seeks::hdd_seeks;
pub use hdd_single::hdd_single;
pub use hdd_tags::{HddTags, hdd_tags};
pub use import::{ImportError, ImportedRun, PageRun, ReportedPercentiles, import, page_run};
pub use io_pacing::{Condition, Devices, IoPacing, Pacing, PacingTest, Period, Slow, io_pacing};
pub use judge::{JudgeRule, Judgement, Values, is_narrow, judge};
pub use lab::{
    Boot, CellState, Decision, Disturbance, EarlierFailure, EarlierRun, Estimate, Executor,
    FalseAlarms, Journal, JournalError, LabEvent, LabFailure, LabOutcome, LabResults, LockFile,
    Modelled, NoJournal, Observed, Probe, Real, Repeat, RunDone, RunFailure, RunOutcome, RunStep,
    Searching, Steadiness, SteadySide, Waiting, lab_table, lock_machine, observed, run_lab,
};
#[cfg(feature = "history")]
pub use lab::{KeptLab, KeptLabError, StoredLab, StoredLabError};
pub use lab_file::nearest_metric;
pub use lab_page::{LabAbout, lab_page};
pub use lab_plan::{
    Curve, CurveLoad, JobText, Judge, JudgedMetric, LabAxis, LabCell, LabPlan, LabVariant, Limit,
    Load, MachineSource, OpenLoop, PeakArguments, Precondition, PreconditionFile, Published,
    PublishedColumn, PublishedFigure, Ready, Repeats, Requirement, Rounds, RunSettings, RunText,
    Search, SearchCondition, Service, Setting, Stop, Subject, Target,
};
pub use log_entries::{LogEntries, log_entries};
pub use machines::LabMachine;
pub use micro::{
    Micro, check_threads, generation_map, micro_experiments, tags, task_list, task_list_table,
};
pub use order::{Slot, order};
#[cfg(feature = "history")]
pub use store::{
    BUSY_TIMEOUT, History, HistoryError, HistoryProblem, LabEntry, LabId, LabRow, LabRun, LabStart,
    PlannedRun, Prune, Pruned, RunId, RunRow, RunSelection, RunSeries, RunState, SeriesKey,
    SeriesPoint, SeriesSelection, SqlAnswer, StoredMetric, StoredRun, StoredRuns, VerdictRow,
    default_path,
};
pub use subject::job_names;
pub use table::{Cell, Column, Experiment, Table, TableHead};
pub use trend::{
    FACT_RUNS_MAX, NEWEST, NewestRuns, PROVED, RECENT, Trend, TrendChange, TrendCheck,
    changed_facts,
};
pub use trend_page::{TrendSeries, trend_page};
pub use uring_irq::{UringIrq, uring_irq};
