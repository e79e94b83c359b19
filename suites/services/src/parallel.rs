//! How many Services a CCM processes at the same time, and that it never processes one twice at the same time
//! (contract SVC-ERR-08).

use super::needs::LB;
use futures::future::try_join_all;
use harness_testkit::prelude::*;
use serde_json::json;
use tokio::time::Instant;

pub(super) const CHECKS: &[Check] = &[
    Check::of("SVC-ERR-08.workers", |cx| Box::pin(works_side_by_side(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers])
        .alone(),
    Check::of("SVC-ERR-08.one-at-a-time", |cx| Box::pin(works_once_on_each(cx)))
        .without_machines()
        .needs(LB)
        .with(&[Facility::Barriers])
        .takes(3),
];

/// How many Services are created at once.
const SERVICES: u32 = 8;

/// The barriers for the load balancers of several Services, read as the number of calls that wait at any of them.
struct Held<'a> {
    cx: &'a CheckCx,
    barriers: Vec<Barrier<'a>>,
}

impl Subject for Held<'_> {
    type Snapshot = u64;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        let name = format!("before the load balancers of {} Services", self.barriers.len());
        SubjectName { kind: "the barriers", name, uid: None }
    }

    async fn read(&self, reach: ReadSource) -> Result<u64, ReadError> {
        let waiting = try_join_all(self.barriers.iter().map(|barrier| barrier.read(reach))).await?;
        Ok(waiting.into_iter().sum())
    }

    fn concerns(&self, call: &Entry) -> bool {
        self.barriers.iter().any(|barrier| barrier.concerns(call))
    }
}

async fn works_side_by_side(cx: &CheckCx) -> Verdict {
    let (mut services, mut held) = (Vec::new(), Held { cx, barriers: Vec::new() });
    for n in 0..SERVICES {
        let web = cx.service(load_balancer(&format!("web-{n}")).port(80).not_yet()).await?;
        held.barriers.push(web.cloud().holds(&[Op::LbCreate]).await?);
        services.push(web);
    }
    try_join_all(services.iter().map(Service::wants_a_balancer)).await?;
    let began = Instant::now();
    let workers = u64::from(cx.workers().clamp(1, SERVICES));
    let side_by_side = holds(format!("hold {workers} calls"), move |waiting: &u64| *waiting >= workers);
    let side_by_side = side_by_side.expecting(format!("{workers} calls at the same time"));
    // A CCM that limits its rate of calls needs this time.
    let reached = held.becomes(side_by_side).within(cx.limits().service_after(1));
    reached.when(format!("as there are {} workers", cx.workers())).await?;
    cx.record("reached_ms", began.elapsed().as_millis());
    for barrier in held.barriers {
        barrier.release().await?;
    }
    let rounds = SERVICES.div_ceil(cx.workers().max(1));
    let limit = rounds * cx.limits().load_balancer() + cx.limits().service_after(1);
    for web in &services {
        let made = web.balancer();
        made.becomes(one_active()).within(limit).when(format!("as one of {SERVICES}")).await?;
    }
    Ok(())
}

async fn works_once_on_each(cx: &CheckCx) -> Verdict {
    let web = cx.service(load_balancer("web").port(80).not_yet()).await?;
    let held = web.cloud().holds(&[Op::LbCreate]).await?;
    web.wants_a_balancer().await?;
    held.is_reached_unless(web.is_served()).await?;
    for edit in 0..5 {
        web.patch(&json!({"metadata": {"annotations": {"example.com/edit": edit.to_string()}}})).await?;
    }
    let one = holds("holds one call and no more", |waiting: &u64| *waiting <= 1);
    held.keeps(one.expecting("one call at most")).when("though the Service is edited meanwhile").await?;
    held.release().await?;
    web.provisioned().await?;
    Ok(())
}
