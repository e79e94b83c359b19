//! A run as one stream of typed events.
//!
//! Everything that happens in a run is an [`Event`]: a stage, a check, a claim, a change of an object, a call to the
//! cloud. The stream is written to `events.jsonl`, one JSON object per line, as it happens. The ledger ([`Fold`]), the
//! terminal output and, through the ledger, both reports are made only from it, so a saved stream produces the same
//! reports again.
//!
//! Several processes of one run can write to one file: each line is written by one call, at the end of the file.

mod event;
mod file;
mod fold;
mod merge;
mod packed;
mod process_history;
mod promises;
mod stream;

pub use event::{
    CloudCall, Event, ObjectChanged, Payload, PlannedCheck, PromiseBegan, PromiseBroken, RunBegan, SCHEMA,
    Skipped, after_end,
};
pub use file::{
    EVENTS_FILE, LARGEST_STREAM, PACKED_EVENTS_FILE, StreamError, open_stream, read, read_whole, stream_in,
};
pub use fold::{CUT, Fold};
pub use merge::{Merging, Part, merge};
pub use process_history::{End, LAST_EXIT_CODE, LostNode, ProcessHistory, REPLICA};
pub use stream::{CheckEvents, Cost, Events, Sink, StageGuard};
