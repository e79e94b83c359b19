//! Machines looked up in paged lists with a missing part (contract NODE-LIFE-11, NODE-LIFE-03).

use super::known_node::{INSTANCES, known};
use harness_testkit::prelude::*;
use suites_common::failures::SILENCE;
use suites_common::joining::ccm_initialises_others;

/// A fault of lists of machines, and the claim that no machine is considered gone because of it.
struct Trouble {
    id: CheckId,
    /// The effects on the lists, one after the other; the last one stays.
    effects: &'static [Effect],
    from_page: u64,
    /// The circumstances, for the text of a failure.
    when: &'static str,
}

const fn status(status: u16) -> Effect {
    Effect::Status { status, retry_after_s: None }
}

static TROUBLES: [Trouble; 9] = [
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-11", "pages"),
        effects: &[],
        from_page: 1,
        when: "while machines are listed one a page",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-11", "failed-page"),
        effects: &[status(503)],
        from_page: 2,
        when: "while lists of machines fail after their first page",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-11", "empty-page"),
        effects: &[Effect::EmptyFirstPage],
        from_page: 1,
        when: "while the first page of every list is empty and leads to the others",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-11", "moved"),
        effects: &[Effect::ShiftedPages],
        from_page: 1,
        when: "while machines move to pages of the list that were read already",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-03", "list"),
        effects: &[status(503), Effect::Malformed, status(404)],
        from_page: 1,
        when: "while machines cannot be listed",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-03", "list-403"),
        effects: &[status(403)],
        from_page: 1,
        when: "while the CCM may not list machines",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-03", "list-429"),
        effects: &[Effect::Status { status: 429, retry_after_s: Some(1) }],
        from_page: 1,
        when: "while machines are listed too often for the cloud",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-03", "list-refused"),
        effects: &[Effect::Refuse],
        from_page: 1,
        when: "while connections for lists of machines are refused",
    },
    Trouble {
        id: CheckId::of_claim("NODE-LIFE-03", "list-silence"),
        effects: SILENCE,
        from_page: 1,
        when: "while lists of machines are not answered",
    },
];

/// One check for each of [`TROUBLES`].
pub(super) const CHECKS: [Check; TROUBLES.len()] = {
    let (mut checks, mut at) = ([of_trouble(0); TROUBLES.len()], 1);
    while at < TROUBLES.len() {
        checks[at] = of_trouble(at);
        at += 1;
    }
    checks
};

const fn of_trouble(at: usize) -> Check {
    let Trouble { id, .. } = &TROUBLES[at];
    let check = Check::row(*id, |cx, at| Box::pin(keeps_all(cx, &TROUBLES[at])), at);
    check.needs(INSTANCES).by_calls().with(&[Facility::Faults, Facility::Settings]).alone().takes(10)
}

/// How a CCM finds machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By one call for each machine, without lists.
    OneByOne,
    /// By lists.
    Lists,
}

/// Finds out from the calls how machines with these names are looked up: each was requested before anything
/// was listed, or there is a list.
fn show_the_way(machines: Vec<[String; 3]>) -> Matcher<Vec<Entry>, Way> {
    matcher("show how machines are looked up", move |calls: &Vec<Entry>| {
        let about = |names: &[String; 3], call: &Entry| {
            let named = call.resource.as_deref().map(|r| r.split_once('=').map_or(r, |(_, value)| value));
            named.is_some_and(|named| names.iter().any(|name| name == named))
        };
        let asked_for = |names: &[String; 3]| calls.iter().any(|call| about(names, call));
        if calls.iter().any(|call| call.op == Op::InstanceList) {
            Observation::Matched(Way::Lists)
        } else if machines.iter().all(asked_for) {
            Observation::Matched(Way::OneByOne)
        } else {
            Observation::Pending(String::new())
        }
    })
    .expecting("a list of machines, or a look-up of each")
}

/// Checks that several Nodes stay. Whatever the order, at least one of them is on a page that is lost. A CCM
/// that never lists machines is not affected, and passes: no page decides what it does.
async fn keeps_all(cx: &CheckCx, trouble: &Trouble) -> Verdict {
    let cloud = cx.cloud();
    // A call that the CCM makes when it starts may be made only once.
    ccm_initialises_others(cx).await?;
    cloud.comes_in_pages_of(1).await?;
    // No machine moves between pages that do not have numbers.
    let cannot_happen = trouble.effects.contains(&Effect::ShiftedPages) && !cloud.has_page_numbers();
    let effects = if cannot_happen { &[] } else { trouble.effects };
    let fault = cloud.anything().meets(trouble.when, effects).to(&[Op::InstanceList]);
    let fault = fault.from_page(trouble.from_page).await?;
    let mark = cloud.mark()?;
    let (mut machines, mut nodes) = (Vec::new(), Vec::new());
    for suffix in ["a", "b", "c"] {
        let (machine, node) = known(cx, suffix, Ready::False).await?;
        machines.push([machine.id(), machine.name(), machine.provider_id()]);
        nodes.push(node);
    }
    let [a, b, c] = &nodes[..] else { unreachable!("three were made") };
    let nodes = (a, &(b, c));
    let looks = cloud.calls().of(&[Op::InstanceGet, Op::InstanceList]).since(mark);
    let looked = looks.becomes(show_the_way(machines)).within(cx.limits().life() + cx.limits().watch());
    let way = looked.when("as their Nodes are not Ready").await?;
    cx.record("look_up", if way == Way::OneByOne { "one by one" } else { "lists" });
    let all = both(present(), both(present(), present()));
    if way == Way::OneByOne {
        return nodes.keeps(all).when("as no list decides what becomes of them").await;
    }
    nodes.keeps(all).within(cx.limits().quiet_life()).when(trouble.when).await?;
    let met = fault.read(ReadSource::Origin).await?;
    if met == 0 && !effects.is_empty() {
        let why = format!("it lists machines, but met no failure {}", trouble.when);
        return Err(CheckError::NotObservable(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(op: Op, resource: &str) -> Entry {
        Entry {
            seq: 1,
            at_ms: 0,
            took_ms: Some(1),
            peer: [127, 0, 0, 1].into(),
            credential: None,
            op,
            write: false,
            resource: (!resource.is_empty()).then(|| resource.to_owned()),
            owner: None,
            request: "GET".into(),
            outcome: Outcome::Answered { status: 200 },
            user_agent: None,
            unknown: None,
            change: None,
        }
    }

    #[test]
    fn a_ccm_that_asks_for_each_machine_needs_no_list() {
        let machine = |name: &str| ["id", "name", "p"].map(|what| format!("{what}-{name}"));
        let way = || show_the_way(vec![machine("a"), machine("b")]);
        let get = |resource: &str| call(Op::InstanceGet, resource);
        let each = vec![get("id-a"), get("name=name-b")];
        assert_eq!(way().matches(&each), Observation::Matched(Way::OneByOne));
        let listed = vec![get("id-a"), call(Op::InstanceList, "")];
        assert_eq!(way().matches(&listed), Observation::Matched(Way::Lists));
        for too_few in [&each[..1], &[get("id-c"), get("id-a")], &[]] {
            assert_eq!(way().matches(&too_few.to_vec()), Observation::Pending(String::new()));
        }
    }
}
