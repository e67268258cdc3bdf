//! What the broken build has in place of the truth: bugs and faults that a test switches on.

use std::fs;
use std::sync::OnceLock;

/// Whether `RL_BUG` switches this bug on.
pub fn has(bug: &str) -> bool {
    static BUG: OnceLock<String> = OnceLock::new();
    BUG.get_or_init(|| std::env::var("RL_BUG").unwrap_or_default()) == bug
}

/// Whether this write is to fail. Panics if it is to do that.
///
/// The file that `RL_FAULT_FILE` names, if it is there, says which write and how: `fail 2` is the
/// third from now on. It is gone when the fault has struck.
pub fn write_fails() -> bool {
    let Ok(path) = std::env::var("RL_FAULT_FILE") else { return false };
    let Ok(order) = fs::read_to_string(&path) else { return false };
    let (kind, writes) = order.split_once(' ').expect("a kind and a number");
    let writes: u32 = writes.parse().expect("a number");
    if writes > 0 {
        fs::write(&path, format!("{kind} {}", writes - 1)).expect("the file can be written");
        return false;
    }
    fs::remove_file(&path).expect("the file can be removed");
    assert_ne!(kind, "panic", "a fault");
    true
}
