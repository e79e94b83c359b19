//! Cached JSON of objects in a dialect's form.
//!
//! Vendors show an object with many more fields than the model has, and callers list the same objects again
//! and again. The cache keeps the JSON together with the object that it was made from, and uses it only for
//! an equal object. So nothing has to be invalidated.

use serde::ser::{Error, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many texts are kept. Beyond that, all are removed: deleted objects leave theirs behind.
const LIMIT: usize = 20_000;

/// The texts of one kind of object.
#[derive(Debug)]
pub struct Texts<T>(Mutex<TextMap<T>>);

impl<T> Default for Texts<T> {
    fn default() -> Texts<T> {
        Texts(Mutex::new(TextMap(HashMap::new())))
    }
}

impl<T> Texts<T> {
    /// The texts, for the duration of one call.
    pub fn open(&self) -> MutexGuard<'_, TextMap<T>> {
        // Every entry is complete, even if another call has panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Texts by the ids of their objects.
#[derive(Debug)]
pub struct TextMap<T>(HashMap<String, CachedText<T>>);

#[derive(Debug)]
struct CachedText<T> {
    object: T,
    related: Vec<String>,
    text: Text,
}

impl<T: Clone + PartialEq> TextMap<T> {
    /// The text of an object. `related` contains other data that is shown with it; `show` makes the shown form
    /// if there is no text for exactly this yet.
    pub fn text<S: Serialize>(
        &mut self,
        id: &str,
        object: &T,
        related: &[&str],
        show: impl FnOnce() -> S,
    ) -> Text {
        if let Some(kept) = self.0.get(id)
            && kept.object == *object
            && kept.related == related
        {
            return kept.text.clone();
        }
        let text = Text(to_raw_value(&show()).map(Arc::from).map_err(|error| error.to_string()));
        if self.0.len() >= LIMIT && !self.0.contains_key(id) {
            self.0.clear();
        }
        let related = related.iter().map(|&text| text.to_owned()).collect();
        self.0.insert(id.to_owned(), CachedText { object: object.clone(), related, text: text.clone() });
        text
    }
}

/// The JSON of an object, or the reason why there is none.
#[derive(Clone, Debug)]
pub struct Text(Result<Arc<RawValue>, String>);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(text) => text.as_ref().serialize(serializer),
            Err(error) => Err(S::Error::custom(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_rendered_again_when_its_data_has_changed() {
        let (texts, mut made) = (Texts::default(), 0);
        let mut text = |object: &u32, related: &[&str]| {
            let text = texts.open().text("a", object, related, || {
                made += 1;
                (*object, made)
            });
            serde_json::to_string(&text).expect("JSON")
        };
        assert_eq!([text(&1, &[]), text(&1, &[])], ["[1,1]", "[1,1]"]);
        assert_eq!([text(&2, &[]), text(&2, &["x"]), text(&2, &["x"])], ["[2,2]", "[2,3]", "[2,3]"]);
    }

    #[test]
    fn it_forgets_rather_than_grow_for_ever() {
        let texts = Texts::default();
        (0..=LIMIT).for_each(|id| drop(texts.open().text(&id.to_string(), &(), &[], || 1)));
        assert_eq!(texts.open().0.len(), 1);
    }
}
