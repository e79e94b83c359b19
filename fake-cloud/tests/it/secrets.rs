//! No token is ever shown: not in the journal, not in errors, not by `Debug`.

use crate::support::{OTHER_TOKEN, Reply, TOKEN, TestCloud};
use fake_cloud::Config;
use fake_cloud_driver::{Client, Credential, Settings};
use reqwest::Method;

#[tokio::test]
async fn the_cloud_never_repeats_a_token() {
    let cloud = TestCloud::start().await;
    let driver_token = cloud.running.driver_token().to_owned();
    let secrets = [TOKEN, OTHER_TOKEN, driver_token.as_str()];
    let mut seen = String::new();
    // Callers with their token in the wrong place.
    for path in [
        format!("/v1/instances/{TOKEN}"),
        format!("/v1/instances?name={OTHER_TOKEN}"),
        format!("/?token={TOKEN}"),
    ] {
        cloud.get(&path).await;
    }
    for method in [Method::GET, Method::PUT] {
        let request = cloud.http.request(method, cloud.url("/v1/instances/i-1")).bearer_auth(&driver_token);
        seen += &Reply::of(request).await.text;
    }
    seen += &format!("{:?}", cloud.journal().await);
    let bad = format!("{{\"name\": \"a\", \"token\": {{\"{OTHER_TOKEN}\": 1}}}}");
    let url = format!("http://{}/driver/v1/credentials", cloud.running.driver_addr());
    seen += &Reply::of(cloud.http.put(url).bearer_auth(&driver_token).body(bad)).await.text;
    let shared = Credential { name: "other".to_owned(), token: TOKEN.to_owned() };
    seen += &format!("{:?}", cloud.driver.put_credential(&shared).await.expect_err("taken"));
    let missing = cloud.driver.get_instance("i-9").await.expect_err("missing");
    seen += &format!("{missing} {missing:?} {:?} {:?}", cloud.driver, cloud.running);
    let unreachable = Client::new("127.0.0.1:1", TOKEN).expect("a client");
    let error = unreachable.set_settings(&Settings::default()).await.expect_err("nothing listens there");
    seen += &format!("{error} {error:?} {unreachable:?}");
    let config = Config {
        driver_token: Some(driver_token.clone()),
        credentials: vec![shared],
        ..Config::local("native")
    };
    seen += &format!("{config:?}");
    for secret in secrets {
        assert!(!seen.contains(secret), "{secret} in {seen}");
    }
    assert!(seen.contains("<redacted>"));
}
