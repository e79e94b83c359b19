//! Routes.

use super::{Model, Refusal};
use crate::admin::Route;

impl Model {
    /// Every route, by id.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.values()
    }

    /// Creates a route; its id is given here.
    ///
    /// # Errors
    /// When the destination is taken or no CIDR, or the instance does not exist.
    pub fn create_route(&mut self, mut route: Route) -> Result<Route, Refusal> {
        if !is_cidr(&route.destination) {
            return Err(Refusal::Invalid(format!("{:?} is not a CIDR", route.destination)));
        }
        if self.routes.values().any(|other| other.destination == route.destination) {
            return Err(Refusal::Conflict(format!("a route to {} exists already", route.destination)));
        }
        if let Some(instance) = &route.target_instance {
            let Some(found) = self.instances.get(instance) else {
                return Err(Refusal::Invalid(format!("instance {instance} does not exist")));
            };
            if route.target_addresses.is_empty() {
                let internal = found.addresses.iter().filter(|a| a.kind == "InternalIP");
                route.target_addresses = internal.map(|a| a.address.clone()).collect();
            }
        }
        self.last_route += 1;
        route.id = format!("r-{}", self.last_route);
        self.routes.insert(route.id.clone(), route.clone());
        Ok(route)
    }

    /// Puts a route as it is, behind everybody's back.
    pub fn force_route(&mut self, route: Route) {
        self.routes.insert(route.id.clone(), route);
    }

    /// Deletes a route.
    ///
    /// # Errors
    /// When there is none of that id.
    pub fn delete_route(&mut self, id: &str) -> Result<(), Refusal> {
        self.routes.remove(id).map(|_| ()).ok_or_else(|| Refusal::NotFound(format!("route {id}")))
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((ip, bits)) = text.split_once('/') else { return false };
    match (ip.parse::<std::net::IpAddr>(), bits.parse::<u8>()) {
        (Ok(std::net::IpAddr::V4(_)), Ok(bits)) => bits <= 32,
        (Ok(std::net::IpAddr::V6(_)), Ok(bits)) => bits <= 128,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(destination: &str, instance: Option<&str>) -> Route {
        Route {
            id: String::new(),
            destination: destination.into(),
            target_instance: instance.map(str::to_owned),
            target_addresses: Vec::new(),
            blackhole: false,
        }
    }

    #[test]
    fn destinations_are_unique_cidrs_of_known_instances() {
        let mut model = Model::default();
        assert_eq!(model.create_route(route("10.0.0.0/24", None)).expect("fine").id, "r-1");
        assert!(matches!(model.create_route(route("10.0.0.0/24", None)), Err(Refusal::Conflict(_))));
        for bad in ["10.0.0.0", "10.0.0.0/33", "x/24", "::/129"] {
            assert!(matches!(model.create_route(route(bad, None)), Err(Refusal::Invalid(_))), "{bad}");
        }
        assert!(matches!(model.create_route(route("10.0.1.0/24", Some("i-9"))), Err(Refusal::Invalid(_))));
        assert!(model.delete_route("r-1").is_ok() && model.delete_route("r-1").is_err());
    }
}
