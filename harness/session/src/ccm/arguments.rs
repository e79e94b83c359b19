//! Arguments of the CCM's container. Pure.

use super::manifests::{array_at, pod_spec_mut};
use harness_core::ledger::SetBy;
use serde_json::{Value, json};
use std::fmt;

/// A flag to set.
#[derive(Clone, Debug)]
pub struct Flag {
    /// Its name without dashes, e.g. `leader-elect-lease-duration`.
    pub name: String,
    /// Its value, e.g. `6s`; `None` for a flag without a value.
    pub value: Option<String>,
    /// Who sets it.
    pub from: SetBy,
}

impl Flag {
    /// The flag that an argument sets, with or without a value.
    pub fn of(argument: &str, from: SetBy) -> Flag {
        let bare = argument.trim_start_matches('-');
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (bare, None),
        };
        Flag { name: name.to_owned(), value, from }
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}", self.name)?;
        self.value.iter().try_for_each(|value| write!(f, "={value}"))
    }
}

/// Sets a flag on a container, replacing either spelling of it; in `args` if the CCM has some.
pub(super) fn set_flag(workload: &mut Value, container: usize, flag: &Flag) {
    let container = &mut pod_spec_mut(workload)["containers"][container];
    let (bare, with_value) = (format!("--{}", flag.name), format!("--{}=", flag.name));
    let wanted = flag.to_string();
    for field in ["args", "command"] {
        let Some(list) = container[field].as_array_mut() else { continue };
        let Some(at) =
            list.iter().position(|a| a.as_str().is_some_and(|a| a == bare || a.starts_with(&with_value)))
        else {
            continue;
        };
        let separate = list[at] == bare.as_str()
            && list.get(at + 1).and_then(Value::as_str).is_some_and(|next| !next.starts_with('-'));
        list[at] = json!(wanted);
        if separate {
            list.remove(at + 1);
        }
        return;
    }
    let field =
        if container["args"].is_array() || !container["command"].is_array() { "args" } else { "command" };
    array_at(container, field).push(json!(wanted));
}

/// The value of a flag in the command line of a container, in either spelling; the last one counts.
pub(super) fn flag_of(container: &Value, flag: &str) -> Option<String> {
    let (bare, with_value) = (format!("--{flag}"), format!("--{flag}="));
    let words =
        ["command", "args"].into_iter().flat_map(|field| container[field].as_array().into_iter().flatten());
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    let value = |(at, word): (usize, &&str)| match word.strip_prefix(&with_value) {
        Some(value) => Some(value.to_owned()),
        None if *word == bare => {
            let next = words.get(at + 1).filter(|next| !next.starts_with('-'));
            // A boolean flag.
            Some(next.map_or("true", |value| value).to_owned())
        }
        None => None,
    };
    words.iter().enumerate().filter_map(value).next_back()
}
