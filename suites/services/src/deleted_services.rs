//! Deleted Services: a leader forgets the Services that it has deleted (contract SVC-DEL-01.forgotten).

use super::needs::NODES_BEHIND_LB;
use super::nodes::{has_backend, kept_out};
use futures::future::try_join_all;
use harness_testkit::prelude::*;

pub(super) const CHECKS: &[Check] =
    &[Check::of("SVC-DEL-01.forgotten", |cx| Box::pin(forgets_what_is_gone(cx)))
        .by_calls()
        .needs(NODES_BEHIND_LB)
        .alone()
        .takes(6)];

/// Whether the path of a call names this load balancer. Once it is gone, the cloud may not know which Service
/// it belonged to.
fn leads_through(request: &str, id: &str) -> bool {
    request.split(['/', ' ', '?']).any(|part| part == id)
}

async fn forgets_what_is_gone(cx: &CheckCx) -> Verdict {
    let (machine, node) = kept_out(cx, "admitted").await?;
    let stays = cx.service(load_balancer("stays").port(80)).await?.provisioned().await?;
    let mut past = Vec::new();
    for name in ["one", "two", "three"] {
        let web = cx.service(load_balancer(name).port(80)).await?;
        let id = web.gets_published().await?.id;
        past.push((web, id));
    }
    for (web, _) in &past {
        web.rests().await?;
        web.delete().await?;
    }
    let limit = cx.limits().load_balancer() + cx.limits().load_balancer_work();
    try_join_all(past.iter().map(|(web, _)| web.becomes(gone()).within(limit).into_future())).await?;
    stays.rests().await?;
    let mark = cx.cloud().mark_now().await?;
    node.label(L_EXCL, None).await?;
    stays.balancer().becomes(has_backend(&machine)).await?;
    // A Service that causes calls because of the same change has done so by then.
    stays.rests().await?;
    for (web, _) in &past {
        web.calls().since(mark).is(no_calls()).await?;
    }
    let ids: Vec<String> = past.into_iter().map(|(_, id)| id).collect();
    let is_about =
        |call: &Entry, id: &String| call.resource.as_ref() == Some(id) || leads_through(&call.request, id);
    let about = cx.cloud().calls().since(mark).that(move |call| ids.iter().any(|id| is_about(call, id)));
    about.is(no_calls()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_through_a_load_balancer_is_about_it() {
        for (request, leads) in [
            ("GET /v2/load_balancers/17", true),
            ("GET /v2/load_balancers/17/droplets?page=2", true),
            ("GET /v2/load_balancers?page=17", false),
            ("GET /v2/load_balancers/170", false),
        ] {
            assert_eq!(leads_through(request, "17"), leads, "{request}");
        }
    }
}
