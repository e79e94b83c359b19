//! Components that are gone, were away, or are excused.

use super::*;
use std::future::ready;
use std::sync::atomic::{AtomicU32, Ordering};

#[tokio::test(start_paused = true)]
async fn a_long_silence_means_gone_and_a_return_does_not() {
    let asked = AtomicU32::new(0);
    let began = Instant::now();
    // Silent for 117 s, then there once, then silent for good.
    let answers = || match asked.fetch_add(1, Ordering::Relaxed) {
        117 => ready(Ok(())),
        _ => ready(Err("connection refused".to_owned())),
    };
    let part = Part::server("the API server");
    let why = part.lost(answers).await;
    assert_eq!(why, "the API server has not answered for 120 s: connection refused");
    assert_eq!(began.elapsed(), Duration::from_secs(237));
    let away = part.away_since(began).expect("it was away");
    assert!(
        away.starts_with("the API server did not answer for 117 s during the check (connection refused)"),
        "{away}"
    );
    assert_eq!(part.away_since(began + Duration::from_secs(118)), None, "it was back then");
}

/// A watch whose components answer as in `answers`.
fn watched<F>(answers: impl Fn() -> F + Send + Sync + 'static) -> EnvironmentWatch
where
    F: Future<Output = Result<(), String>> + Send,
{
    let (gone, why, part) = (CancellationToken::new(), Arc::new(OnceLock::new()), Part::cloud());
    let (is_gone, reason, looked) = (gone.clone(), why.clone(), part.clone());
    let task = tokio::spawn(async move {
        let _ = reason.set(looked.lost(answers).await);
        is_gone.cancel();
    });
    EnvironmentWatch { gone, why, parts: vec![part], task }
}

#[tokio::test(start_paused = true)]
async fn a_failure_stands_only_where_all_were_there() {
    let there = watched(|| ready(Ok(())));
    let began = Instant::now();
    assert_eq!(there.throughout(began).await, Ok(()));
    assert_eq!(began.elapsed(), Duration::ZERO, "it is asked at once");
    let gone = watched(|| ready(Err("refused".to_owned())));
    let why = "the cloud has not answered for 30 s: refused".to_owned();
    assert_eq!(
        gone.throughout(began).await,
        Err(EnvironmentCause::Away(why.clone())),
        "the server does not answer"
    );
    // A future that needs it is cancelled, however long it would take.
    let endless = std::future::pending::<Result<(), String>>();
    assert_eq!(gone.unless_gone(endless).await, Err(why));
    assert_eq!(there.unless_gone(ready(Err::<(), _>("own".to_owned()))).await, Err("own".to_owned()));
    // Away from the fourth second on, and back after a while.
    let began = Instant::now();
    let came_back = watched(move || {
        let away = (4..20).contains(&began.elapsed().as_secs());
        ready(if away { Err("frozen".to_owned()) } else { Ok(()) })
    });
    pause(Duration::from_secs(5)).await;
    let away = came_back.throughout(began).await;
    assert!(
        matches!(&away, Err(EnvironmentCause::Away(why)) if why.starts_with("the cloud did not answer for")),
        "{away:?}"
    );
    assert_eq!(came_back.throughout(Instant::now()).await, Ok(()), "what began later is not concerned");
    let after =
        |seconds| came_back.silent_about(began + Duration::from_secs(seconds), Duration::from_secs(10));
    assert!(
        after(10).is_some() && after(30).is_some(),
        "a replica that lost its Lease then may end a moment later"
    );
    assert_eq!((after(1), after(60)), (None, None));
    let longer = came_back.silent_about(began + Duration::from_secs(10), Duration::from_secs(17));
    assert_eq!(longer, None, "it was asked after a second, and silent from then on");
}

#[tokio::test(start_paused = true)]
async fn a_failure_during_an_absence_is_excused_before_the_return() {
    let began = Instant::now();
    let watch = watched(move || {
        let away = (3..9).contains(&began.elapsed().as_secs());
        ready(if away { Err("refused".to_owned()) } else { Ok(()) })
    });
    pause(Duration::from_secs(1)).await;
    assert_eq!(watch.absence_at(Instant::now()).await, None);
    pause(Duration::from_secs(4)).await;
    let at = Instant::now();
    let away = watch.absence_at(at).await.expect("it is away then");
    assert!(away.starts_with("the cloud did not answer for"), "{away}");
    assert!(began.elapsed() >= Duration::from_secs(9), "undecided until it answers again");
    pause(Duration::from_secs(5)).await;
    assert!(watch.absence_at(Instant::now()).await.is_some(), "who starts then may still end for it");
    pause(Duration::from_secs(30)).await;
    assert_eq!(watch.absence_at(Instant::now()).await, None);
}

#[tokio::test(start_paused = true)]
async fn failures_while_every_answer_is_slow_are_not_judged() {
    let part = Part::server("the API server");
    let (waits, looked) = (AtomicU32::new(20), part.clone());
    // Fast for a minute, then for a minute as slow as a machine with ten times the work it can do.
    let looking = async {
        let answers = || async {
            pause(Duration::from_millis(waits.load(Ordering::Relaxed).into())).await;
            Ok(())
        };
        looked.lost(answers).await
    };
    let check = async {
        let began = Instant::now();
        pause(Duration::from_secs(60)).await;
        assert_eq!(part.slow_since(began), None);
        waits.store(700, Ordering::Relaxed);
        let began = Instant::now();
        pause(Duration::from_secs(2)).await;
        assert_eq!(part.slow_since(began), None, "one slow answer is none");
        pause(Duration::from_secs(58)).await;
        let why = part.slow_since(began).expect("it was slow");
        assert!(why.contains("the API server needed 0.7 s per answer on average, 0.7 s at worst"), "{why}");
    };
    tokio::select! {
        why = looking => panic!("{why}"),
        () = check => {}
    }
}

#[tokio::test(start_paused = true)]
async fn an_absence_that_is_meant_is_neither_the_end_nor_an_excuse() {
    let began = Instant::now();
    let watch = watched(move || {
        let away = (2..50).contains(&began.elapsed().as_secs());
        ready(if away { Err("refused".to_owned()) } else { Ok(()) })
    });
    let restarted = watch.through_absence(pause(Duration::from_secs(50)));
    restarted.await;
    assert_eq!(watch.gone(), None, "longer than who is gone");
    assert_eq!(watch.throughout(began).await, Ok(()), "what fails then is the CCM's failure");
    let began = Instant::now();
    let lost = watched(move || {
        ready(if began.elapsed() < Duration::from_secs(2) { Ok(()) } else { Err("refused".to_owned()) })
    });
    lost.through_absence(pause(Duration::from_secs(50))).await;
    assert!(
        lost.gone().is_some() && began.elapsed() < Duration::from_secs(90),
        "who does not come back is gone"
    );
    // One that is cancelled half-way is over too.
    let given_up = timeout(Duration::from_secs(1), watch.through_absence(std::future::pending::<()>()));
    given_up.await.expect_err("it never ends");
    assert!(watch.parts.iter().all(|part| !part.is_meant_to_be_away()));
}

#[tokio::test(start_paused = true)]
async fn silence_before_an_intended_absence_stays_an_excuse() {
    let began = Instant::now();
    let watch = watched(move || {
        let away = [3..9, 62..80].iter().any(|silent| silent.contains(&began.elapsed().as_secs()));
        ready(if away { Err("refused".to_owned()) } else { Ok(()) })
    });
    pause(Duration::from_secs(60)).await;
    let excuse = |after_s| watch.silent_about(began + Duration::from_secs(after_s), Duration::from_secs(2));
    assert!(excuse(8).is_some(), "its end of then is judged at the end of the run");
    watch.through_absence(pause(Duration::from_secs(25))).await;
    assert!(excuse(8).is_some());
    assert_eq!(excuse(70), None, "that silence was made");
}

#[tokio::test(start_paused = true)]
async fn one_refusal_counts_as_away_and_a_small_delay_does_not() {
    let began = Instant::now();
    let asked = AtomicU32::new(0);
    let part = Part::server("the API server");
    let looking = part.lost(|| async {
        match asked.fetch_add(1, Ordering::Relaxed) {
            3 => return Err("etcd has stopped".to_owned()),
            10 => pause(Duration::from_millis(1200)).await,
            20 => pause(Duration::from_secs(2)).await,
            _ => {}
        }
        Ok(())
    });
    let check = async {
        pause(Duration::from_secs(8)).await;
        let why = part.away_since(began).expect("it has refused");
        assert!(why.ends_with("(etcd has stopped), so its failure may not be the CCM's"), "{why}");
        let began = Instant::now();
        pause(Duration::from_secs(8)).await;
        assert_eq!(part.away_since(began), None, "1.2 s are less than any bound of the contract");
        pause(Duration::from_secs(8)).await;
        let why = part.away_since(began).expect("it took 2 s");
        assert!(why.contains("did not answer for 3 s during the check (it was slow)"), "{why}");
    };
    tokio::select! {
        why = looking => panic!("{why}"),
        () = check => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_excuses_a_leader_that_ends_soon_after_it() {
    let part = Part::server("the API server");
    let deadline = Duration::from_secs(8);
    part.answered(Instant::now(), Duration::from_millis(900));
    assert_eq!(part.late_before(Instant::now(), deadline), None, "that left enough time");
    part.answered(Instant::now(), Duration::from_millis(1200));
    let late = part.late_before(Instant::now(), deadline).expect("a late answer");
    assert_eq!(late, "the API server needed 1.2 s for an answer shortly before");
    pause(Duration::from_secs(9)).await;
    assert_eq!(part.late_before(Instant::now(), deadline), None, "that was long ago");
    let cloud = Part::cloud();
    cloud.answered(Instant::now(), Duration::from_secs(2));
    assert_eq!(cloud.late_before(Instant::now(), deadline), None, "no Lease is in the cloud");
}
