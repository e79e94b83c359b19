//! The line by which a driver that was started says that it answers.

use serde_json::Value;

/// Where it listens, when a line says that it answers; `Some(None)` when it says so and not where.
pub(super) fn ready_line(line: &str) -> Option<Option<String>> {
    let said: Value = serde_json::from_str(line.trim()).ok()?;
    (said["ready"] == true).then(|| said["driver"].as_str().map(str::to_owned))
}
