//! Instances.

use super::{Model, Refusal};
use crate::admin::Instance;

impl Model {
    /// Every instance, by id.
    pub fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values()
    }

    /// One instance.
    ///
    /// # Errors
    /// When there is none of that id.
    pub fn instance(&self, id: &str) -> Result<&Instance, Refusal> {
        self.instances.get(id).ok_or_else(|| Refusal::NotFound(format!("instance {id}")))
    }

    /// Creates or replaces an instance.
    ///
    /// # Errors
    /// When it has no id.
    pub fn put_instance(&mut self, instance: Instance) -> Result<(), Refusal> {
        if instance.id.is_empty() {
            return Err(Refusal::Invalid("an instance needs an id".to_owned()));
        }
        self.instances.insert(instance.id.clone(), instance);
        Ok(())
    }

    /// Deletes an instance. It leaves the load balancers it was a backend of, as a cloud would see to it.
    ///
    /// # Errors
    /// When there is none of that id.
    pub fn delete_instance(&mut self, id: &str) -> Result<(), Refusal> {
        self.instances.remove(id).map(|_| ()).ok_or_else(|| Refusal::NotFound(format!("instance {id}")))?;
        self.forget_backend(id);
        Ok(())
    }
}
