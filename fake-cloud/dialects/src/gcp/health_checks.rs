//! Legacy HTTP health checks, the only ones that target pools can have.

use super::balancing;
use super::errors::{in_use, invalid};
use super::names::{Scope, short};
use super::resources::{Kind, names};
use super::target_pools::{self, TargetPools};
use fake_cloud_driver::HealthCheck;
use fake_cloud_kit::Error;
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::time::Duration;

/// HTTP health checks.
pub(super) struct HttpHealthChecks;

impl Kind for HttpHealthChecks {
    const COLLECTION: &'static str = "httpHealthChecks";
    const KIND: &'static str = "compute#httpHealthCheck";
    const AUX: &'static str = "http-health-check";
    const FIELDS: &'static [&'static str] = &[
        "description",
        "host",
        "port",
        "requestPath",
        "checkIntervalSec",
        "timeoutSec",
        "healthyThreshold",
        "unhealthyThreshold",
    ];

    fn prepare(
        _cloud: &mut Cloud,
        _scope: &Scope,
        mut fields: Value,
        _before: Option<&Value>,
        _now: Duration,
    ) -> Result<Value, Error> {
        let defaults = [
            ("port", json!(80)),
            ("requestPath", json!("/")),
            ("checkIntervalSec", json!(5)),
            ("timeoutSec", json!(5)),
            ("healthyThreshold", json!(2)),
            ("unhealthyThreshold", json!(2)),
        ];
        for (field, value) in defaults {
            if fields[field].is_null() {
                fields[field] = value;
            }
        }
        if probe(&fields).is_none() {
            return Err(invalid(
                "resource.port",
                &fields["port"].to_string(),
                "Must be a port from 1 to 65535.",
            ));
        }
        Ok(fields)
    }

    fn check_unused(cloud: &mut Cloud, scope: &Scope, name: &str, _now: Duration) -> Result<(), Error> {
        let users = target_pools::all_placed(cloud);
        let user = users.iter().find(|(_, pool)| names(&pool["healthChecks"]).any(|own| own == name));
        match user {
            None => Ok(()),
            Some((place, pool)) => {
                let by = short(
                    place,
                    <TargetPools as Kind>::COLLECTION,
                    pool["name"].as_str().unwrap_or_default(),
                );
                Err(in_use("http_health_check", &short(scope, Self::COLLECTION, name), &by))
            }
        }
    }

    fn changed(
        cloud: &mut Cloud,
        _before: Option<&Value>,
        after: Option<&Value>,
        now: Duration,
    ) -> Result<(), Error> {
        let Some(name) = after.and_then(|check| check["name"].as_str()) else { return Ok(()) };
        for (_, pool) in target_pools::all_placed(cloud) {
            if names(&pool["healthChecks"]).any(|own| own == name) {
                balancing::check_changed(cloud, &pool, now)?;
            }
        }
        Ok(())
    }
}

/// How a health check probes, in the terms of the model.
pub(super) fn probe(check: &Value) -> Option<HealthCheck> {
    let port = check["port"].as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)?;
    let path = check["requestPath"].as_str().filter(|path| path.starts_with('/'))?;
    Some(HealthCheck { protocol: "HTTP".to_owned(), path: path.to_owned(), port })
}
