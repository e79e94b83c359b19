//! Rules for what answers from Pods: webhooks, and Services through which CCMs reach their clouds.

use super::build::{Model, number};
use super::fact::{Change, Fact, Premise};
use bootstrap_manifests::known::Behind;

impl Model<'_> {
    pub(super) fn webhook(&mut self, hook: usize) {
        let webhook = &self.set.webhooks[hook];
        let head = Fact::WebhookAnswers(number(hook));
        let Some(backends) = &webhook.backends else {
            return self.give(head);
        };
        if backends.is_empty() {
            let words = format!("no workload of the manifests is behind the Service of {}", webhook.title);
            let change = Change::FailOpen(number(hook));
            let missing = self.never(words, Some(webhook.place.clone()), Some(change));
            return self.rule(head, vec![missing]);
        }
        for backend in backends {
            for node in 0..self.machines.len() {
                let mut body = vec![self.needs(Fact::Runs(number(*backend), number(node)))];
                // The API server connects to the Service's address from its own machine, and to the Pod's from there.
                if let Some(own) = self.machines.iter().position(|machine| machine.control_plane) {
                    body.push(self.needs(Fact::ServicesAnswer(number(own))));
                    if !self.set.workloads[*backend].host_network {
                        body.push(self.needs(Fact::Networked(number(own))));
                    }
                }
                self.rule(head, body);
            }
        }
    }

    /// What a Service needs through which a CCM reaches its cloud.
    pub(super) fn cloud_service(&mut self, at: usize) {
        let service = &self.set.cloud_services[at];
        for node in 0..self.machines.len() {
            let head = Fact::CloudAnswers(number(at), number(node));
            match &service.behind {
                Behind::Nothing(why) => {
                    let words = format!("{} leads nowhere: {why}", service.title);
                    let advice = format!("correct what is behind {}", service.title);
                    let change = Change::Amend(number(service.ccm), advice);
                    let nothing = self.never(words, Some(service.place.clone()), Some(change));
                    self.rule(head, vec![nothing]);
                }
                Behind::Addresses => {
                    let answers = self.service_addresses(service.direct, node);
                    self.rule(head, answers);
                }
                Behind::Pods(pods) => {
                    let places = (0..self.machines.len()).filter(|own| !service.local || *own == node);
                    let all: Vec<(usize, usize)> =
                        places.flat_map(|own| pods.iter().map(move |pod| (*pod, own))).collect();
                    for (pod, own) in all {
                        let mut body = vec![self.needs(Fact::Runs(number(pod), number(own)))];
                        body.extend(self.service_addresses(service.direct, node));
                        self.rule(head, body);
                    }
                }
            }
        }
    }

    /// What a Service needs besides what is behind it: nothing if its name leads to that directly.
    fn service_addresses(&mut self, direct: bool, node: usize) -> Vec<Premise> {
        if direct { Vec::new() } else { vec![self.needs(Fact::ServicesAnswer(number(node)))] }
    }

    /// The premise that a webhook answers.
    pub(super) fn answer_of(&mut self, hook: usize) -> Premise {
        let place = self.set.webhooks[hook].place.clone();
        self.needs_at(Fact::WebhookAnswers(number(hook)), place, Some(Change::FailOpen(number(hook))))
    }
}
