//! The bugs, and the tests that must catch each.

/// One deliberate bug.
pub struct Bug {
    /// What `RL_BUG` calls it.
    pub name: &'static str,
    pub file: &'static str,
    /// An expression, or a statement without its semicolon, that is once in the file,
    pub right: &'static str,
    /// and what the bug makes of it.
    pub wrong: &'static str,
    pub caught_by: Group,
}

/// A group of tests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Of the limiter alone, in `tests/limiter/`.
    Limiter(&'static str),
    /// Of the module in a server, in `tests/server/`.
    Server(&'static str),
}

use Group::{Limiter, Server};

pub const BUGS: [Bug; 26] = [
    Bug {
        name: "an entry counts a millisecond too long",
        file: "src/limiter/request.rs",
        right: "now_ms < self.leaves_at_ms(stamp_ms)",
        wrong: "now_ms <= self.leaves_at_ms(stamp_ms)",
        caught_by: Limiter("table::"),
    },
    Bug {
        name: "an entry counts a millisecond too short",
        file: "src/limiter/request.rs",
        right: "(now_ms + 1).saturating_sub(self.window_ms)",
        wrong: "(now_ms + 2).saturating_sub(self.window_ms)",
        caught_by: Limiter("properties::"),
    },
    Bug {
        name: "nothing is trimmed",
        file: "src/limiter/slide.rs",
        right: "kept.is_some_and(|ends| is_ours_alone && has_left(&ends.oldest))",
        wrong: "false",
        caught_by: Server("trimming::"),
    },
    Bug {
        name: "a shorter window trims what a longer one needs",
        file: "src/limiter/slide.rs",
        right: "expiry_ms <= ours_until_ms",
        wrong: "true",
        caught_by: Server("windows::"),
    },
    Bug {
        name: "a denial is charged",
        file: "src/limiter/slide.rs",
        right: "allowed || request.charge == Charge::Always",
        wrong: "true",
        caught_by: Server("side_effects::"),
    },
    Bug {
        name: "a wait is cut to whole seconds",
        file: "src/limiter/slide.rs",
        right: "window.leaves_at_ms(stamp_ms) - self.request.now_ms",
        wrong: "(window.leaves_at_ms(stamp_ms) - self.request.now_ms) / 1000 * 1000",
        caught_by: Limiter("table::"),
    },
    Bug {
        name: "a tie goes to the window written last",
        file: "src/limiter/verdict.rs",
        right: "other.remaining < self.remaining",
        wrong: "other.remaining <= self.remaining",
        caught_by: Limiter("table::"),
    },
    Bug {
        name: "a total that wraps keeps the stamp",
        file: "src/limiter/log.rs",
        right: "self.stamp_ms + u64::from(wrapped)",
        wrong: "self.stamp_ms",
        caught_by: Limiter("totals::"),
    },
    Bug {
        name: "a precision rounds down",
        file: "src/limiter/slide.rs",
        right: "request.now_ms.next_multiple_of(precision_ms.unwrap_or(1))",
        wrong: "request.now_ms - request.now_ms % precision_ms.unwrap_or(1)",
        caught_by: Server("precision::"),
    },
    Bug {
        name: "a clock far ahead is believed",
        file: "src/limiter/slide.rs",
        right: "stored.is_some_and(|ends| ends.run_ahead_of(request, log))",
        wrong: "false",
        caught_by: Limiter("table::"),
    },
    Bug {
        name: "the previous window is dropped early",
        file: "src/limiter/counter.rs",
        right: "Self { previous: self.current, ..fresh }",
        wrong: "fresh",
        caught_by: Limiter("counters::"),
    },
    Bug {
        name: "the estimate is rounded up",
        file: "src/limiter/counter.rs",
        right: "u128::from(self.previous) * u128::from(left_ms) / u128::from(self.window_ms)",
        wrong: "(u128::from(self.previous) * u128::from(left_ms)).div_ceil(u128::from(self.window_ms))",
        caught_by: Limiter("counters::"),
    },
    Bug {
        name: "a counter's window starts without an expiry",
        file: "src/limiter/swc.rs",
        right: "charges[..charges_len].iter().any(|charge| charge.starts)",
        wrong: "false",
        caught_by: Server("counter_windows::"),
    },
    Bug {
        name: "a refund is taken twice",
        file: "src/store/log/apply.rs",
        right: "remove_newest(log, refund.removed)?",
        wrong: "remove_newest(log, 2 * refund.removed)?",
        caught_by: Server("refund_log::"),
    },
    Bug {
        name: "a member of another form is taken for an entry",
        file: "src/store/log/member.rs",
        right: "usize::from(letter.checked_sub(b'a')?) + 1",
        wrong: "sum.iter().position(|byte| *byte == b'+')?",
        caught_by: Server("foreign::"),
    },
    Bug {
        name: "a hash of anybody's is taken for counters",
        file: "src/store/counters/load.rs",
        right: "seen != &[true; FIELDS]",
        wrong: "false",
        caught_by: Server("counter_foreign::"),
    },
    Bug {
        name: "the expiry is lost",
        file: "src/store/log/apply.rs",
        right: "is_new || change.expiry_due",
        wrong: "false",
        caught_by: Server("expiry::"),
    },
    Bug {
        name: "an expiry is not replicated",
        file: "src/store/writer.rs",
        right: "self.context.replicate_pexpireat(self.name, at_ms)",
        wrong: "()",
        caught_by: Server("replication::"),
    },
    Bug {
        name: "the call itself is replicated",
        file: "src/redis/context.rs",
        right: "replicate(self.as_ptr(), command, format, key.as_ptr(), digits, len, member.as_ptr())",
        wrong: "required(raw::RedisModule_ReplicateVerbatim)(self.as_ptr())",
        caught_by: Server("replication::"),
    },
    Bug {
        name: "a key that was only looked at counts as changed",
        file: "src/redis/key.rs",
        right: "Some(Self { raw, context, name, is_changed: false })",
        wrong: "Some(Self { raw, context, name, is_changed: true })",
        caught_by: Server("side_effects::"),
    },
    Bug {
        name: "a key is left open",
        file: "src/redis/key.rs",
        right: "required(raw::RedisModule_CloseKey)(self.as_ptr())",
        wrong: "()",
        caught_by: Server("leaks::"),
    },
    Bug {
        name: "nobody is told of a change",
        file: "src/redis/key.rs",
        right: "signal(self.context.as_ptr(), self.name.as_ptr())",
        wrong: "0",
        caught_by: Server("faults::"),
    },
    Bug {
        name: "a charge needs no memory",
        file: "src/redis/context.rs",
        right: "has(raw::REDISMODULE_CTX_FLAGS_OOM) && !may_evict_after",
        wrong: "false",
        caught_by: Server("memory::"),
    },
    Bug {
        name: "a write that was refused is replicated",
        file: "src/store/log/apply.rs",
        right: "written(log.key.add(member::score_of(entry), member.text()))?",
        wrong: "drop(log.key.add(member::score_of(entry), member.text()))",
        caught_by: Server("faults::"),
    },
    Bug {
        name: "a panic forgets to replicate what was removed",
        file: "src/store/log/apply.rs",
        right: "self.removed == 0",
        wrong: "self.removed == 0 || std::thread::panicking()",
        caught_by: Server("faults::"),
    },
    Bug {
        name: "a denial is not announced",
        file: "src/commands/mod.rs",
        right: r#"context.notify(EventClass::Module, c"rl.denied", key)"#,
        wrong: "()",
        caught_by: Server("events::"),
    },
];
