//! Taints and tolerations, and when one matches the other (`k8s.io/component-helpers` `ToleratesTaint`).

use crate::manifest::Place;
use std::fmt;

/// Taint of an uninitialised Node (kubelet, `initialNode`); it has the value `true`.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// Taint of a Node that is not Ready (admission plugin `TaintNodesByCondition`, node lifecycle controller).
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a Node whose kubelet does not report.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Taint of a Node whose condition `NetworkUnavailable` is true.
pub const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";
/// kubeadm's taint and label of a control plane.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// kubeadm's older taint (until 1.24) and label (until 1.23) of a control plane.
pub const MASTER: &str = "node-role.kubernetes.io/master";

/// The effect of a taint on Pods without a toleration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// They are not scheduled to the Node.
    NoSchedule,
    /// They are scheduled elsewhere if possible.
    PreferNoSchedule,
    /// They are not scheduled to the Node, and evicted from it.
    NoExecute,
}

impl Effect {
    /// The effect of this name, if there is one.
    pub fn parse(text: &str) -> Option<Effect> {
        match text {
            "NoSchedule" => Some(Effect::NoSchedule),
            "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
            "NoExecute" => Some(Effect::NoExecute),
            _ => None,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A taint of a Node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value, often empty.
    pub value: String,
    /// Its effect.
    pub effect: Effect,
}

impl Taint {
    /// Builds a taint.
    pub fn new(key: &str, value: &str, effect: Effect) -> Taint {
        Taint { key: key.to_owned(), value: value.to_owned(), effect }
    }
}

impl std::str::FromStr for Taint {
    type Err = String;

    /// Reads `KEY[=VALUE]:EFFECT`, as `kubectl taint` writes it.
    fn from_str(text: &str) -> Result<Taint, String> {
        let form =
            || format!("invalid taint '{text}': expected KEY[=VALUE]:EFFECT, e.g. dedicated=true:NoSchedule");
        let (left, effect) = text.rsplit_once(':').ok_or_else(form)?;
        let effect = Effect::parse(effect).ok_or_else(|| {
            format!("invalid taint '{text}': the effect is NoSchedule, PreferNoSchedule or NoExecute, not '{effect}'")
        })?;
        let (key, value) = left.split_once('=').unwrap_or((left, ""));
        if key.is_empty() { Err(form()) } else { Ok(Taint::new(key, value, effect)) }
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.as_str() {
            "" => write!(f, "{}:{}", self.key, self.effect),
            value => write!(f, "{}={value}:{}", self.key, self.effect),
        }
    }
}

/// A toleration of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// The key; empty for every key.
    pub key: String,
    /// Whether it matches any value (`operator: Exists`).
    pub exists: bool,
    /// The value that it matches otherwise.
    pub value: String,
    /// The effect; `None` for every effect.
    pub effect: Option<Effect>,
    /// How long a NoExecute taint is tolerated, in seconds; `None` for ever.
    pub seconds: Option<i64>,
    /// Its place; `None` if Kubernetes adds it.
    pub place: Option<Place>,
}

impl Toleration {
    /// Returns a toleration for a key with any value.
    pub fn of(key: &str, effect: Option<Effect>, seconds: Option<i64>) -> Toleration {
        Toleration { key: key.to_owned(), exists: true, value: String::new(), effect, seconds, place: None }
    }

    /// Whether it tolerates the taint.
    pub fn bears(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let key = self.key.is_empty() || self.key == taint.key;
        effect && key && (self.exists || self.value == taint.value)
    }
}

/// Whether any of the tolerations tolerates the taint.
pub fn borne(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| toleration.bears(taint))
}

#[cfg(test)]
mod tests {
    use super::{Effect, Taint, Toleration, UNINITIALIZED};

    #[test]
    fn a_toleration_without_operator_wants_the_empty_value() {
        let taint = Taint::new(UNINITIALIZED, "true", Effect::NoSchedule);
        let exists = Toleration::of(UNINITIALIZED, Some(Effect::NoSchedule), None);
        let bare = Toleration { exists: false, ..exists.clone() };
        let valued = Toleration { value: String::from("true"), ..bare.clone() };
        let other_effect = Toleration { effect: Some(Effect::NoExecute), ..exists.clone() };
        let everything = Toleration::of("", None, None);
        let verdicts = [&exists, &bare, &valued, &other_effect, &everything].map(|t| t.bears(&taint));
        assert_eq!(verdicts, [true, false, true, false, true]);
    }

    #[test]
    fn taints_are_read_as_kubectl_writes_them() {
        let read = |text: &str| text.parse::<Taint>().map(|taint| taint.to_string());
        assert_eq!(read("a/b=true:NoExecute").as_deref(), Ok("a/b=true:NoExecute"));
        assert_eq!(read("a:NoSchedule").as_deref(), Ok("a:NoSchedule"));
        for wrong in ["a", "a:Never", "=x:NoSchedule", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
