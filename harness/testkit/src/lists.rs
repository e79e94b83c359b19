//! Lists of everything, which name no object: faults for all callers, and pages.

use super::undo_steps::Undo;
use super::{CheckCx, Cloud, Subject, Target};
use harness_clouds::{LbAddressing, Settings};
use harness_core::check::CheckError;
use std::time::Duration;

impl<'a> Cloud<'a> {
    /// The target of faults and barriers for calls about anything, such as lists. They affect all callers, so a check
    /// that uses them must run alone.
    pub fn anything(&self) -> Target<'a> {
        Target { cx: self.cx, about: self.name(), names: Vec::new() }
    }

    /// The number of pages of a list with this many items.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn pages_of(&self, items: usize) -> Result<usize, CheckError> {
        let size = self.cx.cloud.settings().await?.page_size.unwrap_or(u32::MAX);
        Ok(items.div_ceil(usize::try_from(size).unwrap_or(usize::MAX)).max(1))
    }

    /// Limits the pages of all lists to this many items until the check ends. This affects all callers, so a check that
    /// uses it must run alone.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn comes_in_pages_of(&self, items: u32) -> Result<(), CheckError> {
        self.is_set(Settings { page_size: Some(items), ..Settings::default() }).await
    }

    /// Delays all calls by this time until the check ends. This affects all callers, so a check that uses it must run
    /// alone.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn answers_after(&self, latency: Duration) -> Result<(), CheckError> {
        let ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        self.is_set(Settings { latency_ms: Some(ms), ..Settings::default() }).await
    }

    /// Gives new load balancers an address of each IP family until the check ends. This affects all callers, so a check
    /// that uses it must run alone.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn gives_both_families(&self) -> Result<(), CheckError> {
        self.is_set(Settings { addresses: Some(LbAddressing::DualStack), ..Settings::default() }).await
    }

    async fn is_set(&self, settings: Settings) -> Result<(), CheckError> {
        let before = self.cx.cloud.settings().await?;
        self.cx.on_end(Undo::Settings(before));
        self.cx.cloud.change_settings(&settings).await?;
        Ok(())
    }
}

impl CheckCx {
    pub(super) async fn undo_settings(&self, before: &Settings) -> Result<(), String> {
        self.cloud.change_settings(before).await.map(drop).map_err(|error| harness_core::check::chain(&error))
    }
}
