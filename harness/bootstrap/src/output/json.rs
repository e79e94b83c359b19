//! The result as JSON.

use super::Checkup;
use crate::check::Cell;
use serde_json::{Value, json as object};

/// The whole result, for programs.
pub(crate) fn json(checkup: &Checkup, exit: u8) -> String {
    let value = object!({
        "version": 1,
        "exitCode": exit,
        "unreadable": checkup.unreadable,
        "assumptions": checkup.assumptions,
        "cells": checkup.cells.iter().map(cell).collect::<Vec<_>>(),
        "findings": checkup.findings,
    });
    format!("{value:#}\n")
}

fn cell(cell: &Cell) -> Value {
    let cluster = &cell.cluster;
    let mut value = serde_json::to_value(cell).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        map.insert(String::from("topology"), object!(cluster.topology));
        map.insert(String::from("cni"), object!(cluster.cni));
        map.insert(String::from("kubeProxy"), object!(cluster.kube_proxy));
        map.insert(String::from("nodeIp"), object!(cluster.node_ip));
        map.insert(String::from("kubernetes"), object!(cluster.version.to_string()));
    }
    value
}
