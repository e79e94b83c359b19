//! The mirror with a driver that answers as scripted.

use super::*;
use futures::FutureExt;
use harness_clouds::Outcome;
use harness_clouds::{Answer, Driver, Journalled, Shown};
use harness_core::check::Facility;
use std::collections::VecDeque;

/// What the scripted driver does with one call.
enum Step {
    /// Answers with these entries, whatever was requested.
    Entries(Vec<Entry>),
    /// Does not answer.
    Fails,
    /// Never ends.
    Hangs,
}

/// Plays its steps one after the other; then a long poll hangs, and any other call returns no entries.
#[derive(Default)]
struct Scripted {
    steps: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<(u64, Duration)>>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl Driver for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn shown(&self) -> Shown {
        Shown::ALL
    }

    fn ids(&self) -> harness_clouds::InstanceIds {
        harness_clouds::InstanceIds::Text
    }

    fn journal(&self) -> Option<&dyn Journalled> {
        Some(self)
    }
}

impl Journalled for Scripted {
    fn read(&self, after: u64, wait: Duration) -> Answer<'_, Vec<Entry>> {
        self.asked.lock().expect("fine").push((after, wait));
        let step = self.steps.lock().expect("fine").pop_front();
        let step = step.unwrap_or(if wait.is_zero() { Step::Entries(Vec::new()) } else { Step::Hangs });
        async move {
            match step {
                Step::Entries(entries) => Ok(entries),
                Step::Fails => Err(CloudError::new("scripted", READING_THE_JOURNAL, Problem::NoAnswer)),
                Step::Hangs => std::future::pending().await,
            }
        }
        .boxed()
    }
}

fn entry(seq: u64, outcome: Outcome) -> Entry {
    Entry {
        seq,
        at_ms: seq,
        took_ms: None,
        peer: [127, 0, 0, 1].into(),
        credential: None,
        op: Op::LbGet,
        write: false,
        resource: None,
        owner: None,
        request: "GET /".to_owned(),
        user_agent: None,
        outcome,
        unknown: None,
        change: None,
    }
}

fn over(seq: u64) -> Entry {
    entry(seq, Outcome::Answered { status: 200 })
}

/// A journal that has read its first step, and the driver behind it.
async fn journal(steps: impl IntoIterator<Item = Step>) -> (Journal, Arc<Scripted>) {
    let driver = Arc::new(Scripted { steps: Mutex::new(steps.into_iter().collect()), ..Scripted::default() });
    let journal = Journal::follow(Cloud::new(driver.clone()), Pulse::default(), 0).await;
    (journal.expect("it is heard"), driver)
}

fn numbers(entries: Result<Vec<Entry>, ReadError>) -> Result<Vec<u64>, ReadError> {
    Ok(entries?.iter().map(|entry| entry.seq).collect())
}

fn since(journal: &Journal, mark: u64, fits: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>, ReadError> {
    journal.read(&mut Reader::after(mark), fits)
}

async fn since_now(
    journal: &Journal,
    mark: u64,
    fits: impl Fn(&Entry) -> bool,
) -> Result<Vec<Entry>, ReadError> {
    journal.catch_up().await?;
    since(journal, mark, fits)
}

#[tokio::test(start_paused = true)]
async fn a_broken_poll_makes_reads_fail_until_the_cloud_is_heard_again() {
    let (journal, _) =
        journal([Step::Entries(vec![over(1)]), Step::Fails, Step::Fails, Step::Entries(vec![over(2)])]).await;
    assert_eq!(numbers(since(&journal, 0, |_| true)), Ok(vec![1]));
    pause(Duration::from_millis(300)).await;
    let error = since(&journal, 0, |_| true).expect_err("the poll is broken");
    assert_eq!(
        error.text,
        "the cloud's journal was last read 0.3s ago: cloud driver 'scripted', reading the journal: no answer"
    );
    assert!(!error.fatal);
    assert!(journal.mark().is_err());
    assert_eq!(journal.position(), 1, "what was seen is known, and is the past");
    pause(Duration::from_millis(300)).await;
    assert_eq!(numbers(since(&journal, 1, |_| true)), Ok(vec![2]));
    assert_eq!(journal.mark(), Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_never_ends_is_broken() {
    let (journal, _) = journal([Step::Entries(vec![over(1)])]).await;
    pause(LONG_POLL + LIMIT - Duration::from_secs(1)).await;
    assert_eq!(numbers(since(&journal, 0, |_| true)), Ok(vec![1]));
    pause(Duration::from_secs(2)).await;
    assert!(since(&journal, 0, |_| true).expect_err("it is silent").text.contains("last read 31.0s ago"));
}

#[tokio::test(start_paused = true)]
async fn a_cloud_whose_calls_never_cease_is_caught_up_with() {
    let (journal, driver) = journal([Step::Entries(vec![over(1)]), Step::Hangs]).await;
    tokio::task::yield_now().await;
    // The existing entries, and then one more with each answer, apparently forever.
    let ceaseless = (5..1_000).map(|seq| Step::Entries(vec![over(seq)]));
    let all = [Step::Entries(vec![over(2), over(3), over(4)])].into_iter().chain(ceaseless);
    driver.steps.lock().expect("fine").extend(all);
    assert_eq!(numbers(since_now(&journal, 1, |entry| entry.seq < 5).await), Ok(vec![2, 3, 4]));
    assert_eq!(journal.position(), 5, "what came meanwhile is not waited for");
}

#[tokio::test(start_paused = true)]
async fn the_last_read_of_a_window_asks_the_cloud_itself() {
    // The long poll hangs without an answer; the journal has grown, and is returned in two parts.
    let (journal, driver) = journal([Step::Entries(vec![over(1)]), Step::Hangs]).await;
    tokio::task::yield_now().await;
    let parts = [vec![over(2)], vec![over(3)], Vec::new()];
    driver.steps.lock().expect("fine").extend(parts.map(Step::Entries));
    assert_eq!(numbers(since(&journal, 1, |_| true)), Ok(Vec::new()));
    assert_eq!(numbers(since_now(&journal, 1, |entry| entry.seq > 2).await), Ok(vec![3]));
    let asked = driver.asked.lock().expect("fine").clone();
    let after = asked.iter().filter(|(_, wait)| wait.is_zero()).map(|(after, _)| *after);
    assert_eq!(after.collect::<Vec<u64>>(), [0, 1, 2, 3]);
    driver.steps.lock().expect("fine").push_back(Step::Fails);
    assert!(since_now(&journal, 1, |_| true).await.is_err());
    assert!(since_now(&journal, 1, |_| true).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nonsense_names_driver_and_call_and_is_final() {
    for (nonsense, cause) in [
        (vec![over(3)], "expected entry 2, got entry 3"),
        (vec![over(1)], "expected entry 2, got entry 1"),
        (vec![over(2), over(2)], "expected entry 3, got entry 2"),
    ] {
        let (journal, driver) = journal([Step::Entries(vec![over(1)]), Step::Hangs]).await;
        tokio::task::yield_now().await;
        driver.steps.lock().expect("fine").push_back(Step::Entries(nonsense));
        let error = journal.catch_up().await.expect_err("it is nonsense");
        assert!(error.fatal);
        let named = "cloud driver 'scripted', reading the journal: its answer makes no sense: ";
        assert!(error.text.ends_with(&format!("{named}{cause}")), "{}", error.text);
        assert_eq!(journal.position(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn observers_hear_of_every_call_once_and_when_it_is_over() {
    let (journal, driver) = journal([
        Step::Entries(vec![over(1), entry(2, Outcome::UnderWay)]),
        Step::Entries(vec![entry(2, Outcome::UnderWay), over(3)]),
        Step::Entries(vec![over(2), over(3)]),
        Step::Entries(vec![over(4)]),
    ])
    .await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sequence = heard.clone();
    journal.observe(Box::new(move |entry| sequence.lock().expect("fine").push(entry.seq)));
    pause(Duration::from_secs(1)).await;
    assert_eq!(*heard.lock().expect("fine"), [1, 3, 2, 4]);
    let asked: Vec<u64> = driver.asked.lock().expect("fine").iter().map(|(after, _)| *after).collect();
    assert_eq!(asked, [0, 1, 1, 3, 4], "an entry under way is read again");
}

#[tokio::test(start_paused = true)]
async fn a_driver_without_a_journal_fails_every_read() {
    #[derive(Debug)]
    struct Blind;
    impl Driver for Blind {
        fn name(&self) -> &str {
            "blind"
        }
        fn shown(&self) -> Shown {
            Shown::ALL
        }

        fn ids(&self) -> harness_clouds::InstanceIds {
            harness_clouds::InstanceIds::Text
        }
    }
    let cloud = Cloud::new(Arc::new(Blind));
    assert!(!cloud.facilities().contains(&Facility::Journal));
    let journal = Journal::follow(cloud, Pulse::default(), 0).await.expect("there is a mirror of nothing");
    let error = since(&journal, 0, |_| true).expect_err("nothing is heard");
    assert!(error.fatal);
    assert!(error.text.ends_with("cloud driver 'blind', reading the journal: it has no journal"), "{error}");
    assert!(since_now(&journal, 0, |_| true).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn of_hours_of_calls_some_are_kept_and_who_reads_on_misses_none() {
    const CALLS: u64 = 200_000;
    const PART: u64 = 500;
    let (journal, driver) = journal([Step::Entries(vec![over(1)]), Step::Hangs]).await;
    tokio::task::yield_now().await;
    let (mut reads_on, mut looks_back) = (Reader::after(0), Reader::after(0));
    let mut seen = 0;
    for part in 0..CALLS / PART {
        let first = part * PART + 2;
        let calls = (first..first + PART).map(|seq| Entry {
            request: format!("GET /v1/load-balancers?name=a-name-as-clouds-have-them-{seq}"),
            credential: Some("replica-1".to_owned()),
            resource: Some(format!("name=a-name-as-clouds-have-them-{seq}")),
            owner: Some(format!("00000000-0000-0000-0000-{seq:012}")),
            ..over(seq)
        });
        driver.steps.lock().expect("fine").push_back(Step::Entries(calls.collect()));
        journal.catch_up().await.expect("heard");
        let wanted = journal.read(&mut reads_on, |entry| entry.seq % 1_000 == 0).expect("it reads on");
        seen = wanted.len();
    }
    assert_eq!(seen, 200, "what was let go of meanwhile was read before");
    let error =
        journal.read(&mut looks_back, |_| true).map(|calls| calls.len()).expect_err("its calls are gone");
    assert!(error.fatal);
    assert_eq!(
        error.text,
        "calls #1 to #190001 to the cloud are no longer in memory: 10000 calls followed, 10000 are always kept and \
         200000 for a check that began before them; events.jsonl contains all of them"
    );
    let (gone, kept) = journal.kept_since(150_000).expect("heard");
    assert_eq!((gone, kept.len()), (40_001, 10_000));
    let last = journal.last_since(0, 2, |entry| entry.seq % 2 == 0).expect("heard");
    assert_eq!(last.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [199_998, 200_000]);
}

#[tokio::test(start_paused = true)]
async fn entries_stay_as_long_as_a_check_may_read_them() {
    let (journal, driver) = journal([Step::Entries(vec![over(1), over(2)]), Step::Hangs]).await;
    tokio::task::yield_now().await;
    let beginning = journal.begin();
    assert_eq!(beginning.position(), 2);
    driver.steps.lock().expect("fine").push_back(Step::Entries((3..30_000).map(over).collect()));
    journal.catch_up().await.expect("heard");
    assert_eq!(since(&journal, 2, |_| true).expect("kept").len(), 29_997);
    assert!(since(&journal, 1, |_| true).is_err(), "no reader starts there");
    drop(beginning);
    assert!(since(&journal, 2, |_| true).is_err());
    assert_eq!(since(&journal, 19_999, |_| true).expect("kept").len(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_reader_reads_a_call_under_way_again() {
    let under_way = entry(2, Outcome::UnderWay);
    let (journal, driver) = journal([Step::Entries(vec![over(1), under_way]), Step::Hangs]).await;
    let mut reader = Reader::after(0);
    let answered = |entry: &Entry| is_over(entry);
    assert_eq!(numbers(journal.read(&mut reader, answered)), Ok(vec![1]));
    tokio::task::yield_now().await;
    driver.steps.lock().expect("fine").push_back(Step::Entries(vec![over(2), over(3)]));
    journal.catch_up().await.expect("heard");
    assert_eq!(numbers(journal.read(&mut reader, answered)), Ok(vec![1, 2, 3]));
    assert_eq!(numbers(journal.read(&mut reader, answered)), Ok(vec![1, 2, 3]));
}
