//! Claims as events: the beginning and end of a check's waits.

use super::event::{Payload, PromiseBegan, PromiseBroken};
use super::stream::CheckEvents;
use crate::probe::{Ended, Ending, Observer, Promise, Span};
use std::time::Duration;

impl Observer for CheckEvents {
    fn begins(&self, wait: u32, promise: &Promise) {
        let (limit, throughout) = match promise.span {
            Span::Within(limit) => (limit, false),
            Span::Throughout(window) => (window, true),
        };
        self.emit(Payload::PromiseBegan(PromiseBegan {
            wait,
            subject: promise.subject.as_ref().map(ToString::to_string),
            promise: promise.text.clone(),
            expected: promise.expected.clone(),
            limit_ms: millis(limit),
            throughout,
        }));
    }

    fn ends(&self, wait: u32, promise: &Promise, ended: &Ended) {
        let (waited_ms, reads) = (millis(ended.waited), ended.reads);
        self.emit(match ended.ending {
            Ending::Met => Payload::PromiseMet { wait, waited_ms, reads },
            Ending::Broken | Ending::Undetermined => Payload::PromiseBroken(PromiseBroken {
                wait,
                subject: promise.subject.as_ref().map(ToString::to_string),
                promise: promise.text.clone(),
                expected: promise.expected.clone(),
                seen: ended.seen.clone().unwrap_or_default(),
                waited_ms,
                reads,
                judged: ended.ending == Ending::Broken,
            }),
        });
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
