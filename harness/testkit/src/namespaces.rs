//! A check's own namespaces.

use super::undo_steps::{Undo, gone};
use super::{CheckCx, Subject};
use harness_clouds::Entry;
use harness_core::check::{CheckError, SubjectName};
use harness_core::probe::{ReadError, ReadSource};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, PostParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The check's namespace.
#[derive(Clone, Copy)]
pub struct OwnNamespace<'a> {
    cx: &'a CheckCx,
}

impl Subject for OwnNamespace<'_> {
    type Snapshot = Option<Arc<Namespace>>;

    fn cx(&self) -> &CheckCx {
        self.cx
    }

    fn name(&self) -> SubjectName {
        SubjectName { kind: "Namespace", name: self.cx.prefix.clone(), uid: None }
    }

    async fn read(&self, _: ReadSource) -> Result<Self::Snapshot, ReadError> {
        let api: Api<Namespace> = Api::all(self.cx.client.clone());
        Ok(api.get_opt(&self.cx.prefix).await?.map(Arc::new))
    }

    fn concerns(&self, _: &Entry) -> bool {
        false
    }
}

impl CheckCx {
    /// The namespace that this check's Services are in.
    pub fn own_namespace(&self) -> OwnNamespace<'_> {
        OwnNamespace { cx: self }
    }

    /// Starts the deletion of that namespace with everything in it; does not wait for its end.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete_namespace(&self) -> Result<(), CheckError> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        api.delete(&self.prefix, &DeleteParams::background()).await?;
        Ok(())
    }

    /// This check's namespace, created on first use; it is removed when the check ends.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn namespace(&self) -> Result<String, CheckError> {
        self.made_namespace(&self.namespace, self.prefix.clone()).await
    }

    pub(super) async fn made_namespace(
        &self,
        cell: &OnceCell<String>,
        name: String,
    ) -> Result<String, CheckError> {
        let made = cell.get_or_try_init(|| async {
            let labels = BTreeMap::from([("ccm-conformance.io/check".to_owned(), self.id.to_string())]);
            let namespace = Namespace {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    labels: Some(labels),
                    ..ObjectMeta::default()
                },
                ..Namespace::default()
            };
            let api: Api<Namespace> = Api::all(self.client.clone());
            self.on_end(Undo::Namespace(name.clone()));
            api.create(&PostParams::default(), &namespace).await?;
            Ok::<String, CheckError>(name)
        });
        made.await.cloned()
    }

    /// A cluster that is removed with the run takes its namespaces with it, and those of the checks are empty by then.
    /// Deleting one would make the control plane look for every kind of object in it.
    pub(super) async fn undo_namespace(&self, name: &str) -> Result<(), String> {
        if self.session.state().cluster.is_ours() {
            return Ok(());
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        gone(async || api.delete(name, &DeleteParams::background()).await).await
    }
}
