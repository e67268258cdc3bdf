//! A stream of calls and refunds to counters, each answered, stored and promised as the model does.

use crate::calls::{MAX_CALLS, Stream, Time, units};
use crate::counter_memory::CounterMemory;
use crate::memory::{reply, request};
use crate::model::{Call, CounterModel};
use crate::promises::{check_peek, check_wait};
use arbitrary::{Result, Unstructured};
use rl::limiter::{Charge, Request, decide_counters};

pub fn run(data: &[u8]) {
    let _ = play(&mut Unstructured::new(data));
}

fn play(input: &mut Unstructured) -> Result<()> {
    let mut stream = Stream::new(input)?;
    let (mut memory, mut model) = (CounterMemory::default(), CounterModel::default());
    for _ in 0..MAX_CALLS {
        if input.is_empty() {
            break;
        }
        if input.ratio(1, 8)? {
            let units = units(input)?.max(1);
            let (now_ms, clock_ms) = (stream.now_ms(), stream.clock_ms());
            let taken = memory.refund(units, now_ms, clock_ms);
            assert_eq!(taken, model.refund(units, now_ms, clock_ms), "{units} taken back");
        } else {
            let call = stream.next(input)?;
            expire(&mut memory, &mut model, &call, stream.time);
            swc(&mut memory, &mut model, &call);
        }
        assert_eq!(stored(&memory), model.stored());
    }
    Ok(())
}

/// Forgets what the key's expiry forgets: while time goes by the clock, nothing that counts.
fn expire(memory: &mut CounterMemory, model: &mut CounterModel, call: &Call, time: Time) {
    if memory.expires_at_ms.is_some_and(|expiry_ms| expiry_ms < call.clock_ms) {
        assert!(time == Time::Own || model.is_empty_at(call.now_ms), "{call:?} on {memory:?}");
        (*memory, *model) = (CounterMemory::default(), CounterModel::default());
    }
}

fn swc(memory: &mut CounterMemory, model: &mut CounterModel, call: &Call) {
    let before = memory.clone();
    let peek = Request { charge: Charge::Never, ..request(call) };
    let peeked = decide_counters(&memory.counters, memory.expires_at_ms, &peek);
    assert!(peeked.change.is_none(), "a peek writes");
    let answer = memory.swc(call);
    assert_eq!(answer, model.swc(call), "{call:?} on {before:?}");
    check_peek(reply(&peeked.verdict), answer, call);
    if (answer[0] == 0 && !call.force) || call.cost == 0 {
        assert_eq!(memory.counters.as_slice(), before.counters.as_slice(), "{call:?} wrote");
    }
    // A counter from a clock far ahead is believed again when that time comes nearer.
    if answer[3] > 0 && !memory.decide(call).clock_ahead {
        check_wait(answer, call, memory, |memory, call| memory.decide(call).verdict.allowed);
    }
}

/// `(window_ms, start_ms, current, previous)`, as the model has them.
fn stored(memory: &CounterMemory) -> Vec<(u64, u64, u64, u64)> {
    let stored = memory.stored();
    let counters = stored.iter().map(|c| (c.window_ms, c.start_ms, c.current, c.previous));
    counters.collect()
}
