//! A run as one stream of typed events.
//!
//! Whatever happens in a run is an [`Event`]: a stage, a check, a promise, a change of an object, a call to the cloud. The
//! stream is written to `events.jsonl`, one JSON object a line, as it happens; the ledger ([`Fold`]), the terminal and with
//! the ledger both reports are made of it and of nothing else, so a stream that was kept makes the same reports again.
//!
//! Several processes of one run may write into one file: a line is written by one call, at the file's end.

mod conduct;
mod event;
mod file;
mod fold;
mod merge;
mod packed;
mod promises;
mod stream;

pub use conduct::{Conduct, End, LAST_EXIT_CODE, LostNode, REPLICA};
pub use event::{
    CloudCall, Event, ObjectChanged, Payload, PlannedCheck, PromiseBegan, PromiseBroken, RunBegan, SCHEMA,
    Skipped, after_end,
};
pub use file::{
    EVENTS_FILE, LARGEST_STREAM, PACKED_EVENTS_FILE, StreamError, open_stream, read, read_whole, stream_in,
};
pub use fold::Fold;
pub use merge::{Merging, Part, merge};
pub use stream::{CheckEvents, Cost, Events, Sink, StageGuard};
