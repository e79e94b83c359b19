//! The cluster as its users see it: through its public interface alone.

mod clients;
mod parts;
mod remote;
mod request_faults;

use kube::runtime::wait::await_condition;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// The longest time that a test waits for something that has to happen.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until the object meets the condition; fails with its last state.
async fn wait<K>(api: &Api<K>, name: &str, what: &str, holds: impl Fn(&K) -> bool) -> K
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
{
    let condition = |object: Option<&K>| object.is_some_and(&holds);
    match tokio::time::timeout(LIMIT, await_condition(api.clone(), name, condition)).await {
        Ok(Ok(Some(object))) => object,
        Ok(other) => panic!("{what}: {other:?}"),
        Err(_) => panic!("{what}: not within {LIMIT:?}; last seen: {:#?}", api.get_opt(name).await),
    }
}
