//! Runs checks: the plan, the sequence that creates an environment, judges and cleans up, and the reports.
//!
//! `run`, `cargo test --test e2e`, nextest's keeper and `controls` call [`execute()`] or parts of it. They differ in how
//! checks are judged ([`Judging`]): shown in the form that the user chose, by
//! libtest, by other processes, or without output.

mod arrange;
mod capacity;
mod certify;
mod conclude;
mod execute;
mod forecast;
mod github;
mod interrupt;
mod judge;
mod last_word;
mod libtest;
mod limits;
mod one;
mod own;
mod page;
mod planned;
mod quiet;
mod results;
mod shard;
mod show;
mod stand;
mod subject;
mod turns;
mod watch;

pub use arrange::{Arrangement, Declared, ENOUGH_WORKERS, Kind, Step, arrange};
pub use conclude::{begin_in, conclude, end_run, open, say_verdict, write_reports};
pub use execute::{Run, execute, exit_code_of, refuse};
pub use forecast::{Forecast, about};
pub use github::tell_github;
pub use interrupt::{INTERRUPTED, ORDERLY, Signals, guard, orderly, start_reaper, watch_signals};
pub use last_word::LastWord;
pub use libtest::{Libtest, completion, shown, skipped_trials};
pub use limits::{enough_files, use_limits};
pub use one::{Hold, run_one};
pub use page::{demands, material};
pub use planned::{Planned, arranged, of_contract, plan_checks, selected};
pub use quiet::Quiet;
pub use results::make_ready;
pub use show::{Shown, ShownAs};
pub use stand::{Judging, Stand, judge_subject, take_down};
pub use subject::{golden, in_force, judged, seen};
