//! Looks for bugs that no check was written for.
//!
//! A [`Scenario`] is a short history of what users, kubelets and the cloud do. It is carried out once without any fault,
//! to see at which [`Point`]s the CCM can be disturbed: each of its requests to the API server and to the cloud, and each
//! step. Then it is carried out again for each point and each [`Pattern`] that fits: the request is refused or lost, its
//! answer is lost, the CCM is killed and starts again, its watches break off. In the end cluster and cloud must be what
//! the steps require, as if there had been no fault, and the CCM must have come to rest. Anything else is a [`Finding`].
//!
//! The idea is that of Sieve (Sun et al., "Automatic Reliability Testing for Cluster Management Controllers", OSDI 2022:
//! intermediate, unobserved and stale states) and of Acto (Gu et al., "Acto: Automatic End-to-End Testing for Operation
//! Correctness of Cloud System Management", SOSP 2023: the end state as the oracle).

mod divergence;
mod environments;
mod explorer;
mod fault;
mod files;
mod finding;
mod histories;
mod invariants;
mod page;
mod pattern;
mod plan;
mod point;
mod progress;
mod queue;
mod results;
mod scenario;
mod shrink;
mod trial;
mod wanted;
mod world;

pub use divergence::{Divergence, Requests};
pub use explorer::{Exploration, Stopped, explore, replay};
pub use files::{Findings, PAGE_FILE, TRIALS_FILE};
pub use finding::{Finding, Seen};
pub use histories::random;
pub use pattern::{PATTERNS, Pattern};
pub use plan::{Plan, PutFault};
pub use point::Point;
pub use results::{Ended, Results, SharedResults, Subject, Trialed};
pub use scenario::{Scenario, ServiceType, Step};
