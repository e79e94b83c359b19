//! A CCM that gets SIGTERM (OBS-09).

use harness_testkit::prelude::*;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[Check::of("OBS-09", |cx| Box::pin(exits_on_sigterm(cx)))
    .of_the_cloud(&[])
    .with(&[Facility::CcmControl])
    .alone()
    .takes(5)];

async fn exits_on_sigterm(cx: &CheckCx) -> Verdict {
    for replica in cx.replicas() {
        replica.becomes(runs()).await?;
        ends_in_time(&replica).await?;
    }
    Ok(())
}

async fn ends_in_time(replica: &Replica<'_>) -> Verdict {
    let departure = replica.departure()?;
    replica.will_end();
    let terminated = Instant::now();
    replica.terminate().await?;
    departure.is_over().await?;
    let (took, departed) = (terminated.elapsed(), departure.read(ReadSource::Cache).await?);
    // If the kubelet does not report the exit code, only the time is known.
    if departed.was_killed() || (departed.code.is_none() && took >= departure.grace()) {
        let (grace, took) = (departure.grace().as_secs_f64(), took.as_secs_f64());
        let expected = format!("its process ended by itself within {grace} s");
        let seen = match departed.was_killed() {
            true => format!("it was killed after {grace} s"),
            false => format!("it was gone after {took:.1} s"),
        };
        return Err(departure.breaks("a replica ends on SIGTERM", &expected, &seen));
    }
    Ok(())
}
