//! Makes a finding smaller: fewer faults, fewer objects, fewer steps.

use crate::plan::{Plan, PutFault};
use crate::point::Point;
use crate::scenario::{Scenario, Step};

/// Smaller plans that may show the same, the smallest first: one of two faults, a scenario without one of its objects, a
/// scenario without one of its steps.
pub(crate) fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut all: Vec<Plan> = Vec::new();
    if plan.faults.len() > 1 {
        let alone = |fault: &PutFault| Plan { faults: vec![fault.clone()], ..plan.clone() };
        all.extend(plan.faults.iter().map(alone));
    }
    let steps = &plan.scenario.steps;
    for object in plan.scenario.objects() {
        all.extend(without(plan, |at| steps[at].object() == Some(object.as_str())));
    }
    for left_out in (0..steps.len().saturating_sub(1)).rev() {
        all.extend(without(plan, |at| at == left_out));
    }
    all
}

/// The plan without these steps; `None` if that makes no sense.
fn without(plan: &Plan, leaves_out: impl Fn(usize) -> bool) -> Option<Plan> {
    let (mut steps, mut new_place) = (Vec::new(), Vec::new());
    for (at, step) in plan.scenario.steps.iter().enumerate() {
        let repeats = *step == Step::Settle && steps.last().is_none_or(|last| *last == Step::Settle);
        let stays = !leaves_out(at) && !repeats;
        new_place.push(stays.then_some(steps.len()));
        steps.extend(stays.then(|| step.clone()));
    }
    let moved = |fault: &PutFault| match fault.at {
        Point::Step { step } => {
            let step = new_place.get(step).copied().flatten()?;
            Some(PutFault { at: Point::Step { step }, ..fault.clone() })
        }
        _ => Some(fault.clone()),
    };
    let faults = plan.faults.iter().map(moved).collect::<Option<Vec<PutFault>>>()?;
    let scenario = Scenario { steps, ..plan.scenario.clone() };
    let is_smaller = scenario.steps.len() < plan.scenario.steps.len();
    let possible = is_smaller && scenario.check().is_ok();
    possible.then_some(Plan { scenario, faults })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn plan(name: &str, faults: Vec<PutFault>) -> Plan {
        let scenario = Scenario::built_in(&[name.to_owned()]).expect("a scenario").remove(0);
        Plan { scenario, faults }
    }

    #[test]
    fn a_smaller_plan_lacks_a_fault_an_object_or_a_step() {
        let fault = |step, pattern| PutFault { at: Point::Step { step }, pattern };
        let both = plan("two-services", vec![fault(3, Pattern::Down), fault(4, Pattern::Unseen)]);
        let all = smaller(&both);
        assert!(all.iter().all(|plan| plan.scenario.check().is_ok()));
        assert_eq!(all.iter().filter(|plan| plan.faults.len() == 1).count(), 2);
        // Without Service b, the step with the first fault is one earlier, and the second fault has no step.
        let alone = plan("two-services", vec![fault(3, Pattern::Down)]);
        let objects: Vec<Plan> =
            smaller(&alone).into_iter().filter(|plan| plan.scenario.objects() == ["a"]).collect();
        assert_eq!(objects[0].faults, [fault(2, Pattern::Down)]);
        assert_eq!(objects[0].scenario.steps.len(), 6, "{:#?}", objects[0].scenario.steps);
    }

    #[test]
    fn waits_are_not_repeated_and_the_last_one_stays() {
        let life = plan("service-life", Vec::new());
        for smaller in smaller(&life) {
            let steps = smaller.scenario.steps;
            assert_eq!(steps.last(), Some(&Step::Settle));
            assert!(!steps.windows(2).any(|two| two == [Step::Settle, Step::Settle]), "{steps:?}");
        }
    }
}
