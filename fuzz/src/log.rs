//! A stream of calls and refunds to a log, each answered, stored and promised as the model does.

use crate::calls::{MAX_CALLS, Stream, Time, units};
use crate::memory::Memory;
use crate::model::{Call, Model};
use crate::promises::{check_peek, check_wait};
use arbitrary::{Result, Unstructured};
use rl::limiter::{LogError, MAX_STORED_UNITS};

pub fn run(data: &[u8]) {
    // What is too short to say what happens next has come to its end.
    let _ = play(&mut Unstructured::new(data));
}

fn play(input: &mut Unstructured) -> Result<()> {
    let mut stream = Stream::new(input)?;
    let mut log = first_log(input, stream.now_ms())?;
    let mut model = Model { max_entries: log.max_entries as usize, ..Model::of(log.charged()) };
    let mut admitted = Admitted::default();
    for _ in 0..MAX_CALLS {
        if input.is_empty() {
            break;
        }
        if input.ratio(1, 8)? {
            let units = units(input)?.max(1);
            assert_eq!(log.refund(units), model.refund(units), "{units} taken back");
            admitted = Admitted::default();
        } else {
            let call = stream.next(input)?;
            if slide(&mut log, &mut model, &call, &stream) && stream.time == Time::Forward {
                admitted.add(&call, stream.kept_ms());
            }
        }
        assert_eq!(log.charged(), model.entries);
        assert_eq!(log.expires_at_ms, model.expires_at_ms);
    }
    Ok(())
}

/// An empty log, or one that a first charge of any size is in: near the end of totals, or of room.
fn first_log(input: &mut Unstructured, now_ms: u64) -> Result<Memory> {
    let max_entries = match input.ratio(1, 4)? {
        true => input.int_in_range(1..=20)?,
        false => 0,
    };
    if input.ratio(3, 4)? {
        return Ok(Memory { max_entries, ..Memory::default() });
    }
    let cost = match input.arbitrary()? {
        true => MAX_STORED_UNITS - units(input)?,
        false => units(input)?.max(1),
    };
    let total = 0_u64.wrapping_sub(units(input)?);
    Ok(Memory { max_entries, ..Memory::of(&[(now_ms, total, cost)]) })
}

/// One call to both; whether it was admitted without force.
fn slide(log: &mut Memory, model: &mut Model, call: &Call, stream: &Stream) -> bool {
    log.expire(call.clock_ms);
    let before = log.clone();
    let Some(expected) = model.try_slide(call) else {
        assert_eq!(log.try_slide(call), Err(LogError::Full), "{call:?} on {before:?}");
        assert_eq!(*log, before);
        return false;
    };
    if !call.force {
        check_peek(log.peek(call), expected, call);
    }
    let reply = log.slide(call);
    assert_eq!(reply, expected, "{call:?} on {before:?}");
    if (reply[0] == 0 && !call.force) || call.cost == 0 {
        assert_eq!(*log, before, "{call:?} wrote");
    }
    if reply[3] > 0 {
        // Other windows, or another time, may find the key expired and be admitted sooner.
        let expiring = stream.windows_stay() && stream.time != Time::Own;
        check_wait(reply, call, log, |log, call| log.admits(call, expiring));
    }
    reply[0] == 1 && !call.force
}

/// What was admitted, by the times of the requests themselves.
#[derive(Default)]
struct Admitted {
    units: Vec<(u64, u64)>,
}

impl Admitted {
    /// No window that ends now holds more than its limit, if all calls keep what it counts.
    fn add(&mut self, call: &Call, kept_ms: u64) {
        self.units.push((call.now_ms, call.cost));
        for (window_ms, limit) in call.windows.iter().filter(|window| window.0 <= kept_ms) {
            let inside = self.units.iter().filter(|(at_ms, _)| call.now_ms < at_ms + window_ms);
            let units: u128 = inside.map(|(_, cost)| u128::from(*cost)).sum();
            assert!(units <= u128::from(*limit), "{units} of {limit} in {window_ms} ms: {call:?}");
        }
    }
}
