//! What is written, what is kept of it, and what is not.

use super::super::file::read;
use super::*;

#[test]
fn events_of_every_process_are_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.jsonl");
    let lock = Events::lock_folder(folder.path()).expect("the folder is free");
    let events = Events::begin(&path, Vec::new(), lock).expect("a file");
    let busy = Events::lock_folder(folder.path()).expect_err("this run has it");
    assert!(busy.to_string().contains("another run"), "{busy}");
    let other = Events::join(&path, events.began()).expect("the same file");
    events.stage("cluster").end(true);
    other.of_lane(1).of_check("A-01").emit(Payload::CheckBegan { started: "2026-03-01T12:00:00Z".into() });
    events.say("done");
    let cost = events.cost();
    assert_eq!(cost.events, 4, "those of this process");
    assert!(cost.spent > Duration::ZERO && cost.spent < cost.process, "{cost}");
    let all = read(&path).expect("a stream");
    assert_eq!(all.len(), 5);
    assert_eq!((all[3].lane, all[3].check.as_deref()), (Some(1), Some("A-01")));
    assert_eq!(all[4].lane, None, "what belongs to the run");
    events.take_others_in().expect("it can be read");
    assert_eq!(events.fold().ledger().stages.len(), 1);
    // The next run begins a new stream.
    drop(events);
    let lock = Events::lock_folder(folder.path()).expect("that run has ended");
    Events::begin(&path, Vec::new(), lock).expect("a file");
    assert_eq!(read(&path).expect("a stream").len(), 1);
}

#[test]
fn a_secret_stands_in_no_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.jsonl");
    let lock = Events::lock_folder(folder.path()).expect("the folder is free");
    let events = Events::begin(&path, Vec::new(), lock).expect("a file");
    secrets::know("0123456789abcdef");
    let message = "token 0123456789abcdef, 01234567\u{1b}[0m89abcdef \"refused\"";
    events.emit(Payload::EnvironmentFailed { message: message.into() });
    let text = std::fs::read_to_string(&path).expect("the file");
    assert!(!text.contains("0123456789abcdef"), "{text}");
    let said = events.fold().ledger().environment_error;
    assert_eq!(said.as_deref(), Some("token <redacted>, <redacted> \"refused\""));
}

#[test]
fn a_secret_key_leaves_a_line_in_the_form_of_its_event() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.jsonl");
    let lock = Events::lock_folder(folder.path()).expect("the folder is free");
    let events = Events::begin(&path, Vec::new(), lock).expect("a file");
    secrets::know("zz-fedcba9876543210-key");
    let facts = ["a", "zz-fedcba9876543210-key"].map(|name| (name.to_owned(), "1".to_owned()));
    events.of_check("A-01").emit(Payload::CheckEnded {
        ended: Outcome::Pass,
        duration_ms: 1,
        budget_used_percent: None,
        facts: facts.into(),
    });
    events.emit(Payload::RunEnded { duration_ms: 1 });
    let all = read(&path).expect("each line is of the form in which a run writes it");
    let Payload::CheckEnded { facts, .. } = &all[1].event else { panic!("{all:?}") };
    assert_eq!(facts.keys().collect::<Vec<_>>(), ["<redacted>", "a"]);
    assert_eq!(Fold::of(&all).ledger().stream, events.fold().ledger().stream);
}

#[test]
fn only_messages_are_kept_after_the_end_of_the_run() {
    struct Count(Arc<Mutex<usize>>);
    impl Sink for Count {
        fn take(&mut self, _: &Event) {
            *self.0.lock().expect("no holder panicked") += 1;
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.jsonl");
    let lock = Events::lock_folder(folder.path()).expect("the folder is free");
    let seen = Arc::default();
    let events = Events::begin(&path, vec![Box::new(Count(Arc::clone(&seen)))], lock).expect("a file");
    events.emit(Payload::RunEnded { duration_ms: 1 });
    let ledger = events.fold().ledger();
    events.say("wrote report.yaml");
    events.emit(Payload::EnvironmentFailed { message: "the cluster is gone".into() });
    events.stage("taking down").end(true);
    assert_eq!(*seen.lock().expect("no holder panicked"), 6, "a watcher sees all events");
    let kinds: Vec<String> = read(&path).expect("a stream").iter().map(Event::kind).collect();
    assert_eq!(kinds, ["run-began", "run-ended", "said"]);
    assert_eq!(events.fold().ledger(), ledger);
}

#[test]
fn a_full_disk_is_reported_and_the_run_continues() {
    let file = OpenOptions::new().append(true).open("/dev/full").expect("Linux has it");
    let events = Events::new(Timestamp::now(), Some(("/dev/full".into(), file)), Vec::new());
    events.emit(Payload::RunEnded { duration_ms: 1 });
    let why = events.written().expect_err("nothing fits");
    assert!(why.contains("/dev/full could not be written"), "{why}");
    assert_eq!(events.fold().ledger().duration_ms, 1);
}
