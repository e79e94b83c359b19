//! Faults of lists, in every dialect: lists that fail from some page on, that are empty, partial or old, and
//! pages without items.

use crate::support::{TestCloud, instance, load_balancer, on};
use fake_cloud::Unknown;
use fake_cloud_driver::{Effect, Instance, LbState, Match, Op, Outcome, Settings};
use serde_json::{Value, json};

/// How a dialect lists instances.
struct Speech {
    dialect: &'static str,
    path: &'static str,
    key: &'static str,
    provider: &'static str,
    /// How an answer shows that there is another page.
    next: More,
    /// The field with an instance's name.
    name: &'static str,
}

/// How a page shows that there are others after it.
enum More {
    /// This field exists and is not null.
    There(&'static str),
    /// The number of pages in this field is larger than the page's own number.
    Pages(&'static str),
}

const SPEECHES: [Speech; 5] = [
    Speech {
        dialect: "native",
        path: "/v1/instances",
        key: "instances",
        provider: "native",
        next: More::There("/next_page"),
        name: "name",
    },
    Speech {
        dialect: "digitalocean",
        path: "/v2/droplets",
        key: "droplets",
        provider: "digitalocean",
        next: More::There("/links/pages/next"),
        name: "name",
    },
    Speech {
        dialect: "hcloud",
        path: "/v1/servers",
        key: "servers",
        provider: "hcloud",
        next: More::There("/meta/pagination/next_page"),
        name: "name",
    },
    Speech {
        dialect: "linode",
        path: "/v4/linode/instances",
        key: "data",
        provider: "linode",
        next: More::Pages("/pages"),
        name: "label",
    },
    Speech {
        dialect: "openstack",
        path: "/compute/v2.1/servers",
        key: "servers",
        provider: "openstack",
        next: More::There("/servers_links/0"),
        name: "name",
    },
];

impl Speech {
    fn machine(&self, number: u64) -> Instance {
        let (id, provider) = (number.to_string(), self.provider);
        Instance {
            name: format!("node-{number}"),
            provider_id: Some(format!("{provider}://{id}")),
            instance_type: "cpx11".to_owned(),
            zone: String::new(),
            region: "fsn1".to_owned(),
            labels: Default::default(),
            ..instance(&id)
        }
    }

    async fn start(&self) -> TestCloud {
        let cloud =
            TestCloud::speaking(self.dialect, Unknown::Refused, &[1, 2, 3].map(|n| self.machine(n))).await;
        cloud.set(Settings { page_size: Some(2), ..Settings::default() }).await;
        cloud
    }

    /// A page of the list: its status, the names in it, and whether there are others after it.
    async fn page(&self, cloud: &TestCloud, number: u64) -> (u16, Vec<String>, bool) {
        let reply = cloud.get(&format!("{}?page={number}", self.path)).await;
        let status = reply.status;
        let body: Value = serde_json::from_str(&reply.text).expect("JSON");
        let items = body[self.key].as_array().cloned().unwrap_or_default();
        let name = |item: &Value| item[self.name].as_str().expect("a name").to_owned();
        let more = match self.next {
            More::There(next) => body.pointer(next).is_some_and(|next| !next.is_null()),
            More::Pages(pages) => body.pointer(pages).and_then(Value::as_u64) > Some(number),
        };
        (status, items.iter().map(name).collect(), more)
    }
}

fn names(numbers: &[u64]) -> Vec<String> {
    numbers.iter().map(|number| format!("node-{number}")).collect()
}

#[tokio::test]
async fn a_list_can_fail_from_a_page_on() {
    for speech in &SPEECHES {
        let cloud = speech.start().await;
        let later = Match { from_page: Some(2), ..on(Op::InstanceList) };
        cloud.inject(later, Effect::Status { status: 503, retry_after_s: None }).await;
        assert_eq!(speech.page(&cloud, 1).await, (200, names(&[1, 2]), true), "{}", speech.dialect);
        assert_eq!(speech.page(&cloud, 2).await.0, 503, "{}", speech.dialect);
        assert_eq!(cloud.get(&format!("{}/3", speech.path)).await.status, 200, "{}", speech.dialect);
    }
}

#[tokio::test]
async fn a_list_can_begin_with_an_empty_page_that_leads_to_the_others() {
    for speech in &SPEECHES {
        let cloud = speech.start().await;
        let fault = cloud.inject(on(Op::InstanceList), Effect::EmptyFirstPage).await;
        assert_eq!(speech.page(&cloud, 1).await, (200, names(&[]), true), "{}", speech.dialect);
        let entry = cloud.journal().await.pop().expect("an entry");
        assert_eq!(entry.outcome, Outcome::Faulted { status: Some(200), fault });
        assert_eq!(speech.page(&cloud, 2).await, (200, names(&[1, 2]), true), "{}", speech.dialect);
        assert_eq!(speech.page(&cloud, 3).await, (200, names(&[3]), false), "{}", speech.dialect);
    }
}

#[tokio::test]
async fn machines_can_move_to_pages_that_were_read_in_every_second_list() {
    for speech in SPEECHES.iter().filter(|speech| speech.dialect != "openstack") {
        let cloud = speech.start().await;
        cloud.set(Settings { page_size: Some(1), ..Settings::default() }).await;
        cloud.inject(on(Op::InstanceList), Effect::ShiftedPages).await;
        for _ in 0..2 {
            assert_eq!(speech.page(&cloud, 1).await, (200, names(&[1]), true), "{}", speech.dialect);
            assert_eq!(speech.page(&cloud, 2).await, (200, names(&[3]), false), "{}", speech.dialect);
            assert_eq!(speech.page(&cloud, 1).await, (200, names(&[1]), true), "{}", speech.dialect);
            assert_eq!(speech.page(&cloud, 2).await, (200, names(&[2]), true), "{}", speech.dialect);
            assert_eq!(speech.page(&cloud, 3).await, (200, names(&[3]), false), "{}", speech.dialect);
        }
    }
}

#[tokio::test]
async fn a_list_can_be_empty_or_lack_an_object_that_is_there_all_the_same() {
    for speech in &SPEECHES {
        let cloud = speech.start().await;
        let fault = cloud.inject(on(Op::InstanceList), Effect::Empty).await;
        assert_eq!(speech.page(&cloud, 1).await, (200, names(&[]), false), "{}", speech.dialect);
        assert_eq!(cloud.get(&format!("{}/3", speech.path)).await.status, 200, "{}", speech.dialect);
        cloud.driver.clear_fault(fault).await.expect("cleared");
        for known_by in ["2", "node-2", &format!("{}://2", speech.provider)] {
            let without = Effect::Without { names: vec![known_by.to_owned()] };
            let fault = cloud.inject(on(Op::InstanceList), without).await;
            assert_eq!(speech.page(&cloud, 1).await, (200, names(&[1, 3]), false), "{known_by}");
            cloud.driver.clear_fault(fault).await.expect("cleared");
        }
        assert_eq!(speech.page(&cloud, 1).await, (200, names(&[1, 2]), true), "{}", speech.dialect);
    }
}

#[tokio::test]
async fn a_list_can_be_as_old_as_its_fault() {
    for speech in &SPEECHES {
        let cloud = speech.start().await;
        cloud.inject(on(Op::InstanceList), Effect::Stale).await;
        cloud.driver.delete_instance("1").await.expect("deleted");
        cloud.driver.put_instances(&[speech.machine(4)]).await.expect("put");
        assert_eq!(speech.page(&cloud, 1).await, (200, names(&[1, 2]), true), "{}", speech.dialect);
        assert_eq!(speech.page(&cloud, 2).await, (200, names(&[3]), false), "{}", speech.dialect);
        assert_eq!(cloud.get(&format!("{}/1", speech.path)).await.status, 404, "{}", speech.dialect);
        cloud.driver.clear_faults().await.expect("cleared");
        assert_eq!(speech.page(&cloud, 1).await, (200, names(&[2, 3]), true), "{}", speech.dialect);
    }
}

#[tokio::test]
async fn faulty_lists_can_be_for_one_caller_and_of_balancers_too() {
    let cloud = TestCloud::start().await;
    let id = cloud.load_balancer("web", "u-1").await;
    let listed = async || cloud.get("/v1/load-balancers").await.answers(200)["load_balancers"].clone();
    let other = Match { credential: Some("replica-2".to_owned()), ..on(Op::LbList) };
    cloud.inject(other, Effect::Empty).await;
    assert_eq!(listed().await[0]["id"], json!(id));
    cloud.inject(on(Op::LbList), Effect::Without { names: vec!["u-1".to_owned(), String::new()] }).await;
    assert_eq!(listed().await, json!([]));
}

#[tokio::test]
async fn one_deletion_can_take_longer_than_the_others() {
    let cloud = TestCloud::start().await;
    let (slow, quick) = (cloud.load_balancer("slow", "u-1").await, cloud.load_balancer("quick", "u-2").await);
    let deletion = Match { resource: Some("u-1".to_owned()), ..on(Op::LbDelete) };
    cloud.inject(deletion, Effect::SlowDeletion { ms: 3_600_000 }).await;
    cloud.delete(&format!("/v1/load-balancers/{slow}")).await.answers(202);
    cloud.delete(&format!("/v1/load-balancers/{quick}")).await.answers(204);
    let left = cloud.driver.inventory().await.expect("inventory").load_balancers;
    assert_eq!(left.iter().map(|lb| (&lb.id, lb.state)).collect::<Vec<_>>(), [(&slow, LbState::Deleting)]);
    cloud.post("/v1/load-balancers", load_balancer("slow", "u-3")).await.fails(409, "conflict");
}
