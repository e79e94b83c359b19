//! Lists of everything, which name no object: faults that meet whoever lists, and pages.

use super::made::Undo;
use super::{CheckCx, Cloud, Subject, Target};
use crate::check::Stop;
use crate::cloud::Settings;

impl<'a> Cloud<'a> {
    /// Faults and barriers for calls about anything, such as lists, which name no object. Whoever calls meets them, so a
    /// check that uses them has to run alone.
    pub fn anything(&self) -> Target<'a> {
        Target { cx: self.cx, about: self.name(), names: Vec::new() }
    }

    /// On how many pages a list of so many items comes.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn pages_of(&self, items: usize) -> Result<usize, Stop> {
        let size = self.cx.cloud.settings().await?.page_size.unwrap_or(u32::MAX);
        Ok(items.div_ceil(usize::try_from(size).unwrap_or(usize::MAX)).max(1))
    }

    /// Every list comes in pages of so many items until the check ends. Whoever lists meets that, so a check that wants
    /// it has to run alone.
    ///
    /// # Errors
    /// When the cloud does not answer.
    pub async fn comes_in_pages_of(&self, items: u32) -> Result<(), Stop> {
        let before = self.cx.cloud.settings().await?;
        self.cx.on_end(Undo::Settings(before));
        let settings = Settings { page_size: Some(items), ..Settings::default() };
        self.cx.cloud.change_settings(&settings).await?;
        Ok(())
    }
}

impl CheckCx {
    pub(super) async fn undo_settings(&self, before: &Settings) -> Result<(), String> {
        self.cloud.change_settings(before).await.map(drop).map_err(|error| crate::check::chain(&error))
    }
}
