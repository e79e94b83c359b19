//! Legacy HTTP health checks, the only ones that target pools can have.

use super::balancing;
use super::errors::{in_use, invalid};
use super::names::{Scope, short};
use super::parts::{CHECK, CHECKS, POOLS, names, placed_pools, probe};
use super::resources::Kind;
use fake_cloud_kit::Error;
use fake_cloud_model::Cloud;
use serde_json::{Value, json};
use std::time::Duration;

/// HTTP health checks.
pub(super) struct HttpHealthChecks;

impl Kind for HttpHealthChecks {
    const COLLECTION: &'static str = CHECKS;
    const KIND: &'static str = "compute#httpHealthCheck";
    const AUX: &'static str = CHECK;
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
        let users = placed_pools(cloud);
        let user = users.iter().find(|(_, pool)| names(&pool["healthChecks"]).any(|own| own == name));
        match user {
            None => Ok(()),
            Some((place, pool)) => {
                let by = short(place, POOLS, pool["name"].as_str().unwrap_or_default());
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
        for (_, pool) in placed_pools(cloud) {
            if names(&pool["healthChecks"]).any(|own| own == name) {
                balancing::check_changed(cloud, &pool, now)?;
            }
        }
        Ok(())
    }
}
