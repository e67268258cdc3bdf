//! What holds of every answer, whatever was asked of whatever key.

use redis::Value;

use super::calls::{Call, Way};
use super::grammar::{Asked, Limits};

/// Keys that `RL.DENIED` shows at most.
const MOST_DENIED: u64 = 512;

/// What is at a key: its type, its contents as bytes, and when it expires.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub kind: String,
    pub payload: Value,
    /// In Unix milliseconds; -1 never.
    pub expiry_ms: i64,
}

impl State {
    /// There is no key.
    pub fn none() -> State {
        State { kind: "none".into(), payload: Value::Nil, expiry_ms: -1 }
    }
}

/// A key before a call and after it.
pub struct Change<'a> {
    pub before: &'a State,
    pub after: &'a State,
    /// A time after the call: a key that expires before it may have gone by itself.
    pub seen_ms: i64,
    /// Whether the key, if there was one, was of the module's form, if that is known.
    pub is_ours: Option<bool>,
}

impl Change<'_> {
    /// Whether the key may have expired at any moment of all this.
    pub fn may_expire(&self) -> bool {
        self.has_passed(self.before) || self.has_passed(self.after)
    }

    fn has_passed(&self, state: &State) -> bool {
        (0..=self.seen_ms).contains(&state.expiry_ms)
    }

    fn is_none(&self) -> bool {
        let (before, after) = (self.before, self.after);
        // Before 7.0 a script tells the expiry, and to it one that has just passed is the present.
        let is_going = self.has_passed(before)
            && self.has_passed(after)
            && (&before.kind, &before.payload) == (&after.kind, &after.payload);
        let is_gone = self.may_expire() && *after == State::none();
        before == after || is_going || is_gone
    }
}

/// Judges the answer to `call`, which asked for `asked` if that is known: what sort of an answer it
/// is.
///
/// # Errors
/// The rule that it breaks.
pub fn judge(
    call: &Call,
    asked: Option<&Asked>,
    answer: &Value,
    change: &Change,
) -> Result<&'static str, &'static str> {
    let sort = match (answer, asked) {
        (Value::ServerError(error), _) => error_sort(error.code(), error.details(), call.way)?,
        (_, Some(Asked::Wrong)) => return Err("wrong words are answered with an error"),
        (_, Some(Asked::Verdict(limits))) => verdict_sort(call, limits, six(answer)?, change)?,
        (_, Some(Asked::Refund { units })) => refund_sort(*units, answer, change)?,
        (_, Some(Asked::Denied { count })) => list_sort(*count, answer)?,
        (Value::Okay, Some(Asked::Reset)) => "reset",
        (_, Some(Asked::Reset)) => return Err("a reset is answered with OK"),
        (_, None) => "at the clock's edge",
    };
    let changes_nothing = matches!(answer, Value::ServerError(_))
        || matches!(call.command, "rl.peek" | "rl.denied")
        || sort == "denied";
    rule(!changes_nothing || change.is_none(), "what is refused, denied or shown changes nothing")?;
    fits(call, asked, sort, change)?;
    Ok(sort)
}

/// The sort of an error, of which there are few.
fn error_sort(code: &str, detail: Option<&str>, way: Way) -> Result<&'static str, &'static str> {
    let detail = detail.unwrap_or_default();
    let begins = |start: &str| detail.starts_with(start);
    match code {
        "WRONGTYPE" => Ok("wrong type"),
        "ERR" if begins("the sorted set at this key was not written by RL.SLIDE") => {
            Ok("foreign log")
        }
        "ERR" if begins("the hash at this key was not written by RL.SWC") => Ok("foreign hash"),
        "ERR" if begins("the log at this key cannot take the cost") => Ok("full log"),
        "ERR" if begins("Write commands are not allowed") && way == Way::ReadOnlyScript => {
            Ok("read-only script")
        }
        "ERR" if begins("internal error") => Err("nothing panics"),
        "ERR" if begins("the server refused") => Err("no write is refused"),
        "ERR" => Ok("wrong words"),
        _ => Err("no other error is ever answered"),
    }
}

/// Whether an answer of this sort fits what was asked, and the type of the key.
fn fits(
    call: &Call,
    asked: Option<&Asked>,
    sort: &str,
    change: &Change,
) -> Result<(), &'static str> {
    if sort == "read-only script" {
        return rule(call.command != "rl.peek", "a read-only script may peek");
    }
    match asked {
        Some(Asked::Wrong) => rule(sort == "wrong words", "wrong words come before the key")?,
        Some(_) => rule(sort != "wrong words", "good words are taken")?,
        None => {}
    }
    if change.may_expire() || matches!(asked, None | Some(Asked::Wrong)) {
        return Ok(());
    }
    let kind = change.before.kind.as_str();
    let takes: &[&str] = match call.command {
        "rl.slide" => &["none", "zset"],
        "rl.swc" => &["none", "hash"],
        "rl.denied" => &[kind],
        _ => &["none", "zset", "hash"],
    };
    rule(takes.contains(&kind) == (sort != "wrong type"), "WRONGTYPE is of another type")?;
    let only = match sort {
        "foreign log" | "full log" => "zset",
        "foreign hash" => "hash",
        _ => kind,
    };
    rule(kind == only, "an error of a log is of a sorted set, one of counters of a hash")?;
    let can_tell = !matches!(sort, "wrong type" | "listed" | "reset") && kind != "none";
    match change.is_ours.filter(|_| can_tell) {
        Some(true) => rule(!sort.starts_with("foreign"), "what the module writes, it takes"),
        Some(false) => rule(sort.starts_with("foreign"), "what is of another form is refused"),
        None => Ok(()),
    }
}

fn verdict_sort(
    call: &Call,
    limits: &Limits,
    fields: [i64; 6],
    change: &Change,
) -> Result<&'static str, &'static str> {
    let [allowed, limit, remaining, retry_after_ms, reset_after_ms, window_ms] = fields;
    let cost = limits.cost as i64;
    let never = limits.windows.iter().any(|(_, limit)| limits.cost > *limit);
    rule(matches!(allowed, 0 | 1), "allowed is 0 or 1")?;
    rule(
        limits.windows.contains(&(window_ms as u64, limit as u64)),
        "the window is one of those asked for, and has its limit",
    )?;
    rule((0..=limit).contains(&remaining), "remaining is 0 to the limit")?;
    rule((retry_after_ms == 0) == (allowed == 1), "there is a wait just if it is denied")?;
    rule((retry_after_ms == -1) == never, "the wait is -1 just if the cost is above a limit")?;
    rule(retry_after_ms >= -1, "a wait is positive")?;
    rule(reset_after_ms >= retry_after_ms.max(0), "an empty window has room")?;
    rule(reset_after_ms > 0 || remaining == limit, "a window that is not empty must empty")?;
    rule(
        reset_after_ms == 0 || remaining < limit || limit == 0,
        "a window that is empty need not",
    )?;
    let peeks = call.command == "rl.peek";
    let forces = limits.force && !peeks;
    if allowed == 1 && !forces {
        let least = if peeks { cost } else { 0 };
        rule((least..=limit - cost + least).contains(&remaining), "there was room for the cost")?;
    }
    if peeks || limits.cost == 0 || (allowed == 0 && !forces) {
        rule(change.is_none(), "a peek, a cost of 0 and a denial change nothing")?;
    } else if !forces && !change.may_expire() {
        // Only a key of short windows may have come and gone.
        let longest_ms = limits.windows.iter().map(|(window_ms, _)| *window_ms).max();
        let may_be_gone = longest_ms < Some(60_000) && *change.after == State::none();
        rule(may_be_gone || change.before != change.after, "what is admitted is charged")?;
    }
    Ok(match (allowed, forces) {
        (1, false) => "admitted",
        (_, false) => "denied",
        (1, true) => "admitted by force",
        (_, true) => "denied by force",
    })
}

fn refund_sort(units: u64, answer: &Value, change: &Change) -> Result<&'static str, &'static str> {
    let Value::Int(taken) = answer else { return Err("a refund is an integer") };
    rule((0..=units as i64).contains(taken), "a refund is 0 to what was asked for")?;
    if *taken == 0 {
        rule(change.is_none(), "a refund of nothing changes nothing")?;
        return Ok("refunded nothing");
    }
    rule(change.may_expire() || change.before != change.after, "a refund takes something back")?;
    Ok("refunded")
}

fn list_sort(count: u64, answer: &Value) -> Result<&'static str, &'static str> {
    let Value::Array(keys) = answer else { return Err("a list is an array") };
    rule(keys.len() as u64 <= count.min(MOST_DENIED), "a list is no longer than asked for")?;
    let mut most = i64::MAX;
    for key in keys {
        let Value::Array(fields) = key else { return Err("each key listed is an array") };
        let [Value::BulkString(_), Value::Int(denied), Value::Int(error)] = fields[..] else {
            return Err("each key listed has a name, a count and a bound");
        };
        rule((1..=most).contains(&denied), "the key denied most often is the first")?;
        rule((0..denied).contains(&error), "a bound is below its count")?;
        most = denied;
    }
    Ok("listed")
}

fn six(answer: &Value) -> Result<[i64; 6], &'static str> {
    let Value::Array(fields) = answer else { return Err("a verdict is an array") };
    let integers = fields.iter().map(|field| match field {
        Value::Int(integer) => Ok(*integer),
        _ => Err("a verdict is integers"),
    });
    let integers: Result<Vec<i64>, _> = integers.collect();
    integers?.try_into().map_err(|_| "a verdict is six integers")
}

fn rule(holds: bool, rule: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(rule) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::bytes::words;
    use crate::hostile::grammar::asked;

    fn log(payload: &str) -> State {
        let payload = Value::BulkString(payload.into());
        State { kind: "zset".into(), payload, expiry_ms: -1 }
    }

    fn integers(fields: &[i64]) -> Value {
        Value::Array(fields.iter().map(|field| Value::Int(*field)).collect())
    }

    fn error(text: &str) -> Value {
        redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).unwrap()
    }

    /// Judges an answer to the call of that line, which made `after` of the log "before".
    fn judged(line: &str, answer: Value, after: State) -> Result<&'static str, &'static str> {
        judged_of_form(line, answer, after, None)
    }

    fn judged_of_form(
        line: &str,
        answer: Value,
        after: State,
        is_ours: Option<bool>,
    ) -> Result<&'static str, &'static str> {
        let commands = ["rl.slide", "rl.swc", "rl.peek", "rl.refund", "rl.denied"];
        let command = commands.into_iter().find(|command| line.starts_with(command)).unwrap();
        let call = Call { command, words: words(line), way: Way::Direct };
        let change = Change { before: &log("before"), after: &after, seen_ms: 1_000_000, is_ours };
        judge(&call, asked(&call, 1_000_000).as_ref(), &answer, &change)
    }

    #[test]
    fn answers_as_they_should_be_pass() {
        let slide = "rl.slide k 60s 5 COST 2";
        for (line, answer, after, sort) in [
            (slide, integers(&[1, 5, 3, 0, 60_000, 60_000]), "after", "admitted"),
            (slide, integers(&[0, 5, 1, 10, 20, 60_000]), "before", "denied"),
            ("rl.peek k 60s 5", integers(&[1, 5, 5, 0, 0, 60_000]), "before", "admitted"),
            ("rl.refund k 5", Value::Int(5), "after", "refunded"),
            ("rl.refund k 5", Value::Int(0), "before", "refunded nothing"),
            ("rl.denied RESET", Value::Okay, "before", "reset"),
            ("rl.slide k 60 5", error("ERR window '60' is"), "before", "wrong words"),
            ("rl.swc k 60s 5", error("WRONGTYPE Operation"), "before", "wrong type"),
            (slide, error("ERR the log at this key cannot take the cost"), "before", "full log"),
        ] {
            assert_eq!(judged(line, answer, log(after)), Ok(sort), "{line}");
        }
    }

    #[test]
    fn answers_that_break_a_rule_do_not() {
        let slide = "rl.slide k 60s 5 1s 9 COST 2";
        for (line, answer, after) in [
            // Not what a verdict looks like.
            (slide, Value::Int(1), "after"),
            (slide, integers(&[1, 5, 3, 0, 60_000]), "after"),
            (slide, integers(&[2, 5, 3, 0, 60_000, 60_000]), "after"),
            // A window or a limit that nobody asked for.
            (slide, integers(&[1, 9, 3, 0, 60_000, 60_000]), "after"),
            (slide, integers(&[1, 5, 3, 0, 60_000, 1]), "after"),
            // Too much or too little left.
            (slide, integers(&[1, 5, 4, 0, 60_000, 60_000]), "after"),
            (slide, integers(&[0, 5, 6, 10, 20, 60_000]), "before"),
            (slide, integers(&[0, 5, -1, 10, 20, 60_000]), "before"),
            // Waits.
            (slide, integers(&[1, 5, 3, 1, 60_000, 60_000]), "after"),
            (slide, integers(&[0, 5, 0, 0, 20, 60_000]), "before"),
            (slide, integers(&[0, 5, 0, -1, 20, 60_000]), "before"),
            (slide, integers(&[0, 5, 0, -2, 20, 60_000]), "before"),
            (slide, integers(&[0, 5, 0, 30, 20, 60_000]), "before"),
            (slide, integers(&[0, 5, 0, 30, 0, 60_000]), "before"),
            ("rl.slide k 60s 5 COST 6", integers(&[0, 5, 0, 30, 40, 60_000]), "before"),
            // Writes that should not be, and one that should.
            (slide, integers(&[0, 5, 1, 10, 20, 60_000]), "after"),
            (slide, integers(&[1, 5, 3, 0, 60_000, 60_000]), "before"),
            ("rl.peek k 60s 5", integers(&[1, 5, 4, 0, 9, 60_000]), "after"),
            ("rl.slide k 60s 5 COST 0", integers(&[1, 5, 4, 0, 9, 60_000]), "after"),
            ("rl.denied", Value::Array(Vec::new()), "after"),
            // Refunds and lists.
            ("rl.refund k 5", Value::Int(6), "after"),
            ("rl.refund k 5", Value::Int(-1), "after"),
            ("rl.refund k 5", Value::Int(0), "after"),
            ("rl.refund k 5", Value::Int(5), "before"),
            ("rl.denied COUNT 1", Value::Array(vec![Value::Nil, Value::Nil]), "before"),
            // Errors that change something, or should not be.
            (slide, error("ERR the log at this key cannot take the cost"), "after"),
            (slide, error("ERR the hash at this key was not written by RL.SWC"), "before"),
            (slide, error("ERR internal error: see the server's log"), "before"),
            (slide, error("ERR the server refused a write"), "before"),
            (slide, error("ERR window '60s' is wrong"), "before"),
            (slide, error("ERR Write commands are not allowed from read-only scripts."), "before"),
            (slide, error("WRONGTYPE Operation"), "before"),
            (slide, error("OOM command not allowed"), "before"),
            // An answer to what is wrong, or to a key of another type.
            ("rl.slide k 60 5", integers(&[1, 5, 3, 0, 60_000, 60_000]), "after"),
            ("rl.slide k 60s 5 60000 6", integers(&[1, 5, 3, 0, 60_000, 60_000]), "after"),
            ("rl.swc k 60s 5 COST 2", integers(&[1, 5, 3, 0, 60_000, 60_000]), "after"),
        ] {
            let found = judged(line, answer.clone(), log(after));
            assert!(found.is_err(), "{line}, {answer:?}: {found:?}");
        }
    }

    #[test]
    fn a_foreign_key_must_be_refused_and_no_other() {
        let (line, refused) =
            ("rl.refund k 5", "ERR the sorted set at this key was not written by RL.SLIDE");
        let judged = |answer, is_ours| judged_of_form(line, answer, log("before"), Some(is_ours));
        assert_eq!(judged(error(refused), false), Ok("foreign log"));
        assert!(judged(error(refused), true).is_err());
        assert_eq!(judged(Value::Int(0), true), Ok("refunded nothing"));
        assert!(judged(Value::Int(0), false).is_err());
    }
}
