//! Counters in memory, and a limiter over them: what the hash is in the server.

use crate::memory::{reply, request};
use crate::model::{Call, Reply};
use rl::limiter::{Counter, CounterDecision, Counters, decide_counters, plan_counter_refunds};

/// A hash in memory, with the expiry of its key.
#[derive(Clone, Debug, Default)]
pub struct CounterMemory {
    pub counters: Counters,
    pub expires_at_ms: Option<u64>,
}

impl CounterMemory {
    pub fn of(counters: &[Counter]) -> Self {
        let mut memory = Self::default();
        for counter in counters {
            assert!(memory.counters.push(*counter));
        }
        memory
    }

    pub fn stored(&self) -> Vec<Counter> {
        let mut stored = self.counters.as_slice().to_vec();
        stored.sort_by_key(|counter| counter.window_ms);
        stored
    }

    pub fn decide(&self, call: &Call) -> CounterDecision {
        decide_counters(&self.counters, self.expires_at_ms, &request(call))
    }

    /// Takes units back as `RL.REFUND` does, and answers how many.
    pub fn refund(&mut self, units: u64, now_ms: u64, clock_ms: u64) -> u64 {
        let refunds = plan_counter_refunds(&self.counters, units, now_ms, clock_ms);
        for refund in refunds.as_slice() {
            let window_ms = refund.counter.window_ms;
            self.counters.retain(|counter| counter.window_ms != window_ms);
            assert!(self.counters.push(refund.counter));
        }
        refunds.units()
    }

    /// Answers as `RL.SWC` does: decides, then writes what was decided.
    pub fn swc(&mut self, call: &Call) -> Reply {
        if self.expires_at_ms.is_some_and(|expiry_ms| expiry_ms < call.clock_ms) {
            *self = Self::default();
        }
        let decision = self.decide(call);
        if let Some(change) = &decision.change {
            let is_new = self.counters.as_slice().is_empty();
            // First, for unlike a hash this has room for no more than stays.
            for removed in change.removed() {
                self.counters.retain(|counter| counter != removed);
            }
            for charge in change.charges() {
                let window_ms = charge.counter.window_ms;
                if !charge.starts {
                    // Only the current count is written: the rest is as it is stored.
                    let mut stored = *self.counters.find(window_ms).unwrap();
                    stored.current += charge.added;
                    assert_eq!(stored, charge.counter);
                }
                self.counters.retain(|counter| counter.window_ms != window_ms);
                assert!(self.counters.push(charge.counter));
            }
            if is_new || change.expiry_due {
                self.expires_at_ms = Some(change.expires_at_ms);
            }
        }
        reply(&decision.verdict)
    }
}
