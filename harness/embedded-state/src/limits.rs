//! Limits how much of the server each user may use at a time. Requests beyond the limit are answered with 429
//! and `Retry-After`, as by the priority and fairness of a real server.
//!
//! The harness's own clients in this process and `system:masters` are exempt, as in a real server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::auth::user::{MASTERS, User};

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The watches, and followed logs, of one user.
    pub watches: usize,
    /// Other requests of one user that are not answered yet, or whose answer is not read yet.
    pub requests: usize,
    /// The connections of one user.
    pub connections: usize,
    /// The bytes of one user's bodies and answers in memory. A single answer may be larger when it is the only one.
    pub bytes: usize,
    /// The watches of all users.
    pub all_watches: usize,
    /// The connections of all users, including those whose user is not known yet.
    pub all_connections: usize,
    /// The bytes of all users' bodies and answers in memory.
    pub all_bytes: usize,
}

impl Default for Limits {
    /// Limits far above the needs of a CCM with several replicas in a cluster of 5,000 Nodes.
    fn default() -> Self {
        Self {
            watches: 512,
            requests: 256,
            connections: 512,
            bytes: 256 << 20,
            all_watches: 2048,
            all_connections: 2048,
            all_bytes: 512 << 20,
        }
    }
}

/// A resource with a limit for simultaneous use by one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A watch, or a followed log.
    Watch,
    /// Any other request.
    Request,
    /// A connection.
    Connection,
}

/// The limit that would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests: the user's {0}")]
pub struct Exceeded(&'static str);

/// The resources in use.
#[derive(Debug)]
pub struct Usage {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    all: Counts,
    users: HashMap<Arc<str>, Counts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    watches: usize,
    requests: usize,
    connections: usize,
    bytes: usize,
}

impl Counts {
    fn of(&mut self, used: Use) -> &mut usize {
        match used {
            Use::Watch => &mut self.watches,
            Use::Request => &mut self.requests,
            Use::Connection => &mut self.connections,
        }
    }
}

impl Usage {
    /// Usage with nothing in use.
    #[must_use]
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one more of a resource for a user; `None` for a user who is exempt. Dropping the returned value
    /// gives it back.
    ///
    /// # Errors
    ///
    /// The user, or all users together, already use the maximum.
    pub fn take(self: &Arc<Self>, user: &User, used: Use) -> Result<Option<Share>, Exceeded> {
        if user.in_group(MASTERS) {
            return Ok(None);
        }
        let (own, all, what) = match used {
            Use::Watch => (self.limits.watches, self.limits.all_watches, "watches"),
            Use::Request => (self.limits.requests, usize::MAX, "requests"),
            // The connections of all users are counted where they are accepted.
            Use::Connection => (self.limits.connections, usize::MAX, "connections"),
        };
        let name: Arc<str> = user.name.as_str().into();
        let mut state = self.state();
        let has = state.users.get_mut(&name).map_or(0, |counts| *counts.of(used));
        if has >= own || *state.all.of(used) >= all {
            return Err(Exceeded(what));
        }
        *state.users.entry(Arc::clone(&name)).or_default().of(used) += 1;
        *state.all.of(used) += 1;
        drop(state);
        Ok(Some(Share { usage: Arc::clone(self), user: name, used: Some(used), bytes: 0 }))
    }
}

/// The resources that one user has in use. Dropping it gives them back.
#[derive(Debug)]
pub struct Share {
    usage: Arc<Usage>,
    user: Arc<str>,
    used: Option<Use>,
    bytes: usize,
}

impl Share {
    /// A share of the same user with nothing in use yet, for bytes.
    #[must_use]
    pub fn of_bytes(&self) -> Share {
        Share { usage: Arc::clone(&self.usage), user: Arc::clone(&self.user), used: None, bytes: 0 }
    }

    /// Replaces the number of bytes in use.
    ///
    /// # Errors
    ///
    /// The user, or all users together, would exceed the maximum. The number does not change then.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Exceeded> {
        let Usage { limits, state } = &*self.usage;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { all, users } = &mut *state;
        let own = users.entry(Arc::clone(&self.user)).or_default();
        let (others, others_of_all) = (own.bytes - self.bytes, all.bytes - self.bytes);
        let fits = bytes <= self.bytes
            || ((others == 0 || others + bytes <= limits.bytes)
                && (others_of_all == 0 || others_of_all + bytes <= limits.all_bytes));
        if fits {
            own.bytes = others + bytes;
            all.bytes = others_of_all + bytes;
            self.bytes = bytes;
        }
        if *own == Counts::default() {
            users.remove(&self.user);
        }
        if fits { Ok(()) } else { Err(Exceeded("bytes under way")) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.usage.state();
        let State { all, users } = &mut *state;
        all.bytes -= self.bytes;
        if let Some(used) = self.used {
            *all.of(used) -= 1;
        }
        let Some(own) = users.get_mut(&self.user) else { return };
        own.bytes -= self.bytes;
        if let Some(used) = self.used {
            *own.of(used) -= 1;
        }
        if *own == Counts::default() {
            users.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> Arc<Usage> {
        let (watches, requests, connections, bytes) = (2, 3, 2, 100);
        Usage::new(Limits {
            watches,
            requests,
            connections,
            bytes,
            all_watches: 3,
            all_connections: 9,
            all_bytes: 150,
        })
    }

    #[test]
    fn a_user_has_so_many_and_gets_them_back() {
        let usage = usage();
        let (a, b) = (User::service_account("x", "a", ""), User::service_account("x", "b", ""));
        let first = usage.take(&a, Use::Watch).expect("the first");
        let second = usage.take(&a, Use::Watch).expect("the second");
        usage.take(&a, Use::Watch).expect_err("one more than there may be");
        assert!(usage.take(&a, Use::Request).is_ok(), "requests are counted apart");
        let other = usage.take(&b, Use::Watch).expect("another user's");
        usage.take(&b, Use::Watch).expect_err("all together have as many as they may");
        drop((first, other));
        let third = usage.take(&a, Use::Watch).expect("one was given back");
        drop((second, third));
        assert!(usage.state().users.is_empty() && usage.state().all == Counts::default());
    }

    #[test]
    fn bytes_are_bounded_for_each_user_and_for_all() {
        let usage = usage();
        let share = |name: &str| {
            let user = User::service_account("x", name, "");
            usage.take(&user, Use::Request).expect("a request").expect("not exempt")
        };
        let (mut one, mut two, mut other) = (share("a"), share("a"), share("b"));
        one.hold(500).expect("one large answer alone");
        two.hold(1).expect_err("not at the same time");
        one.hold(60).expect("less than before");
        two.hold(40).expect("exactly what is left");
        two.hold(41).expect_err("one more");
        other.hold(51).expect_err("more than all may have");
        other.hold(50).expect("what is left for all");
        drop((one, two, other));
        assert!(usage.state().users.is_empty() && usage.state().all == Counts::default());
    }

    #[test]
    fn masters_are_exempt() {
        for used in [Use::Watch, Use::Watch, Use::Watch, Use::Watch] {
            assert!(usage().take(&User::master("x"), used).expect("no limit").is_none());
        }
    }
}
