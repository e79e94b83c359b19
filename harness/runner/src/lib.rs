//! Runs checks: the plan, the sequence that creates an environment, judges and cleans up, and the reports.
//!
//! `run`, `cargo test --test e2e`, nextest's keeper and `controls` call [`execute()`] or parts of it. They differ in how
//! checks are judged ([`Judging`]): shown in the form that the user chose, by
//! libtest, by other processes, or without output.

mod capacity;
mod certify;
mod conclude;
mod evidence_path;
mod execute;
mod final_report;
mod forecast;
mod github;
mod interrupt;
mod judge;
mod libtest;
mod limits;
mod own_environment;
mod page;
mod planned;
mod quiet;
mod ready_environment;
mod results;
mod run_check;
mod schedule;
mod scheduler;
mod shard;
mod show;
mod starts_nowhere;
mod subject;
mod watch;

pub use certify::certifies;
pub use conclude::{begin_in, conclude, end_run, open, say_verdict, write_reports};
pub use evidence_path::with_openable_evidence;
pub use execute::{Run, execute, exit_code_of, refuse};
pub use final_report::FinalReport;
pub use forecast::{Forecast, about};
pub use github::tell_github;
pub use interrupt::{INTERRUPTED, ORDERLY, Signals, guard, orderly, start_reaper, watch_signals};
pub use libtest::{Libtest, completion, shown, skipped_trials};
pub use limits::{enough_files, use_limits};
pub use page::{demands, material};
pub use planned::{Planned, arranged, of_contract, plan_checks, selected};
pub use quiet::Quiet;
pub use ready_environment::{Judging, Stand, judge_subject, take_down};
pub use results::{make_ready, may_be_replaced};
pub use run_check::{Hold, run_one};
pub use schedule::{Arrangement, Declared, ENOUGH_WORKERS, Kind, Step, arrange};
pub use show::{Shown, ShownAs};
pub use subject::{golden, in_force, judged, seen};
pub use watch::{PageServer, Watch};
