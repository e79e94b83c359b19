//! The fake cloud as its callers see it: the real server on free ports, used over HTTP.

mod access;
mod answers;
mod bad_input;
mod barriers;
mod binary;
mod changes;
mod digitalocean;
mod digitalocean_cloud;
mod digitalocean_load_balancers;
mod digitalocean_owned;
mod driver;
mod exchanges;
mod faults;
mod firewalls;
mod hcloud;
mod instances;
mod journal;
mod linode;
mod lists;
mod load_balancers;
mod metadata;
mod openstack;
mod routes;
mod secrets;
mod support;
