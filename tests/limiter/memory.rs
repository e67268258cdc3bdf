//! A log in a vector, and a limiter over it: what the sorted set is in the server.

use crate::model::{Call, Charged, Reply};
use rl::limiter::{
    Change, Charge, Entry, Log, LogError, MAX_TRIMMED, Request, Verdict, Window, Windows, decide,
    plan_log_refund,
};

/// A log in memory, with the expiry of its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub entries: Vec<Entry>,
    pub expires_at_ms: Option<u64>,
    /// As the setting says; 0 for no bound.
    pub max_entries: u64,
}

impl Log for Memory {
    fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    fn expires_at_ms(&self) -> Option<u64> {
        self.expires_at_ms
    }

    fn oldest(&mut self) -> Result<Option<Entry>, LogError> {
        Ok(self.entries.first().copied())
    }

    fn newest(&mut self) -> Result<Option<Entry>, LogError> {
        Ok(self.entries.last().copied())
    }

    fn first_from(&mut self, from_ms: u64) -> Result<Option<Entry>, LogError> {
        Ok(self.entries.iter().find(|entry| entry.stamp_ms >= from_ms).copied())
    }

    fn last_until(&mut self, until_ms: u64) -> Result<Option<Entry>, LogError> {
        Ok(self.entries.iter().rfind(|entry| entry.stamp_ms <= until_ms).copied())
    }
}

impl Memory {
    /// A log of `(stamp_ms, total, cost)`.
    pub fn of(entries: &[(u64, u64, u64)]) -> Self {
        let entry = |&(stamp_ms, total, cost)| Entry { stamp_ms, total, cost };
        Self { entries: entries.iter().map(entry).collect(), ..Self::default() }
    }

    /// Answers as `RL.SLIDE` does: decides, then writes what was decided.
    pub fn slide(&mut self, call: &Call) -> Reply {
        self.try_slide(call).unwrap_or_else(|error| panic!("{error:?} for {call:?} on {self:?}"))
    }

    pub fn try_slide(&mut self, call: &Call) -> Result<Reply, LogError> {
        self.expire(call.clock_ms);
        let request = Request { max_entries: self.max_entries, ..request(call) };
        let decision = decide(self, &request)?;
        if let Some(change) = &decision.change {
            self.apply(change);
        }
        Ok(reply(&decision.verdict))
    }

    /// Answers as `RL.PEEK` does.
    pub fn peek(&self, call: &Call) -> Reply {
        let request = Request { max_entries: self.max_entries, ..request(call) };
        let peek = Request { charge: Charge::Never, ..request };
        let decision = decide(&mut self.clone(), &peek).unwrap();
        assert_eq!(decision.change, None);
        reply(&decision.verdict)
    }

    /// Whether the windows would admit the call, though the log may be too full for it; `expiring`,
    /// the key is gone when its time has come.
    pub fn admits(&self, call: &Call, expiring: bool) -> bool {
        let mut log = self.clone();
        if expiring {
            log.expire(call.clock_ms);
        }
        match decide(&mut log, &request(call)) {
            Ok(decision) => decision.verdict.allowed,
            Err(error) => error == LogError::Full,
        }
    }

    /// What the server does before a call touches the key.
    pub fn expire(&mut self, clock_ms: u64) {
        if self.expires_at_ms.is_some_and(|expiry_ms| expiry_ms < clock_ms) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        *self = Self { max_entries: self.max_entries, ..Self::default() };
    }

    pub fn apply(&mut self, change: &Change) {
        if change.drop_log {
            self.forget();
        }
        let was_empty = self.entries.is_empty();
        self.entries.push(change.entry);
        self.entries.retain(|entry| Some(*entry) != change.replaced);
        for _ in 0..MAX_TRIMMED {
            let oldest_ms = self.entries[0].stamp_ms;
            if change.trim_until_ms.is_none_or(|until_ms| oldest_ms > until_ms) {
                break;
            }
            self.entries.remove(0);
        }
        if change.expiry_due || was_empty {
            self.expires_at_ms = Some(change.expires_at_ms);
        }
    }

    /// Takes units back as `RL.REFUND` does, and answers how many.
    pub fn refund(&mut self, units: u64) -> u64 {
        let newest_first = self.entries.iter().rev().map(|entry| Ok(*entry));
        let refund = plan_log_refund(newest_first, units).unwrap();
        self.entries.truncate(self.entries.len() - refund.removed as usize);
        if let Some((former, shrunk)) = refund.shrunk {
            assert_eq!(self.entries.pop(), Some(former));
            self.entries.push(shrunk);
        }
        if self.entries.is_empty() {
            self.forget();
        }
        refund.units
    }

    /// The entries in the model's words.
    pub fn charged(&self) -> Vec<Charged> {
        let charged = |entry: &Entry| Charged {
            stamp_ms: entry.stamp_ms,
            total: entry.total,
            cost: entry.cost,
        };
        self.entries.iter().map(charged).collect()
    }
}

/// The call as the limiter takes it.
pub fn request(call: &Call) -> Request {
    let mut list = call
        .windows
        .iter()
        .map(|(window_ms, limit)| Window { window_ms: *window_ms, limit: *limit });
    let mut windows = Windows::new(list.next().unwrap());
    list.for_each(|window| windows.push(window).unwrap());
    Request {
        windows,
        cost: call.cost,
        charge: if call.force { Charge::Always } else { Charge::IfAllowed },
        precision_ms: call.precision_ms,
        max_entries: 0,
        now_ms: call.now_ms,
        clock_ms: call.clock_ms,
    }
}

/// The six fields as they go on the wire.
pub fn reply(verdict: &Verdict) -> Reply {
    [
        i64::from(verdict.allowed),
        verdict.limit as i64,
        verdict.remaining as i64,
        verdict.retry_after_ms.map_or(-1, |wait_ms| wait_ms as i64),
        verdict.reset_after_ms as i64,
        verdict.window_ms as i64,
    ]
}
