//! The size and depth of objects, for limits.

use serde_json::Value;
use std::io::{Result, Write};

/// The length of a value's JSON in bytes, computed without writing it.
pub fn of(value: &Value) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail, and every value can be written.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// How deep containers are nested: 0 for a value that is not a container.
pub fn depth(value: &Value) -> usize {
    let inner: &mut dyn Iterator<Item = &Value> = match value {
        Value::Array(items) => &mut items.iter(),
        Value::Object(members) => &mut members.values(),
        _ => return 0,
    };
    1 + inner.map(depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn size_is_that_of_the_text_and_depth_that_of_containers() {
        let value = json!({"a": [1, "\u{1b}", {"b": []}], "c": 1.5});
        assert_eq!(of(&value), value.to_string().len());
        assert_eq!((depth(&value), depth(&json!([])), depth(&json!("x"))), (4, 1, 0));
    }
}
