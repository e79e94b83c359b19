//! The offers of this cloud: locations and types of load balancers. The facts are from the vendor's
//! documentation, without prices.

use serde::Serialize;

/// A location.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Location<'a> {
    pub(super) id: u64,
    pub(super) name: &'a str,
    description: &'a str,
    country: &'a str,
    city: &'a str,
    latitude: f64,
    longitude: f64,
    pub(super) network_zone: &'a str,
}

const fn location(
    id: u64,
    name: &'static str,
    description: &'static str,
    (country, city): (&'static str, &'static str),
    (latitude, longitude): (f64, f64),
    network_zone: &'static str,
) -> Location<'static> {
    Location { id, name, description, country, city, latitude, longitude, network_zone }
}

/// All locations.
pub(super) const LOCATIONS: &[Location<'static>] = &[
    location(1, "fsn1", "Falkenstein DC Park 1", ("DE", "Falkenstein"), (50.47612, 12.370071), "eu-central"),
    location(2, "nbg1", "Nuremberg DC Park 1", ("DE", "Nuremberg"), (49.452102, 11.076665), "eu-central"),
    location(3, "hel1", "Helsinki DC Park 1", ("FI", "Helsinki"), (60.169855, 24.938379), "eu-central"),
    location(4, "ash", "Ashburn, VA", ("US", "Ashburn, VA"), (39.045821, -77.487073), "us-east"),
    location(5, "hil", "Hillsboro, OR", ("US", "Hillsboro, OR"), (45.54222, -122.951924), "us-west"),
    location(6, "sin", "Singapore", ("SG", "Singapore"), (1.283333, 103.833333), "ap-southeast"),
];

/// The location with this name. A location that this cloud does not have is invented, because a test may have
/// machines anywhere.
pub(super) fn place(name: &str) -> Location<'_> {
    match LOCATIONS.iter().find(|location| location.name == name) {
        Some(location) => *location,
        None => Location {
            id: 0,
            name,
            description: name,
            country: "",
            city: "",
            latitude: 0.0,
            longitude: 0.0,
            network_zone: "eu-central",
        },
    }
}

/// The location with this name; the first one if a test has invented the name.
pub(super) fn location_named(name: &str) -> Location<'static> {
    *LOCATIONS.iter().find(|location| location.name == name).unwrap_or(&LOCATIONS[0])
}

/// A type of load balancers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct BalancerType {
    pub(super) id: u64,
    pub(super) name: &'static str,
    description: &'static str,
    max_connections: u64,
    pub(super) max_services: usize,
    pub(super) max_targets: usize,
    max_assigned_certificates: u64,
    prices: [(); 0],
    deprecated: Option<&'static str>,
    deprecation: Option<&'static str>,
}

const fn balancer_type(
    id: u64,
    (name, description): (&'static str, &'static str),
    max_connections: u64,
    (max_services, max_targets): (usize, usize),
    max_assigned_certificates: u64,
) -> BalancerType {
    BalancerType {
        id,
        name,
        description,
        max_connections,
        max_services,
        max_targets,
        max_assigned_certificates,
        prices: [],
        deprecated: None,
        deprecation: None,
    }
}

/// All types of load balancers, the smallest first.
pub(super) const BALANCER_TYPES: &[BalancerType] = &[
    balancer_type(1, ("lb11", "LB11"), 10_000, (5, 25), 10),
    balancer_type(2, ("lb21", "LB21"), 20_000, (15, 75), 25),
    balancer_type(3, ("lb31", "LB31"), 40_000, (30, 150), 50),
];

/// The type with this name; the smallest if a test has invented the name.
pub(super) fn type_named(name: &str) -> &'static BalancerType {
    BALANCER_TYPES.iter().find(|kind| kind.name == name).unwrap_or(&BALANCER_TYPES[0])
}
