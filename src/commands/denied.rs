//! `RL.DENIED`: the keys denied most often.

use super::reply::{self, CommandError};
use super::{parse, table};
use crate::denied::{Denied as DeniedKey, Summary};
use crate::redis::{Args, CommandInfo, Context, Handler};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Denials since the module was loaded, or since the last reset. Commands run on one thread, so the
/// lock is always free.
static SUMMARY: Mutex<Option<Summary>> = Mutex::new(None);

/// `RL.DENIED [COUNT n]`, `RL.DENIED RESET`
pub struct Denied;

impl Handler for Denied {
    const INFO: CommandInfo = table::DENIED;

    fn call(context: &Context, args: Args) {
        match parse::denied(args.behind_name()) {
            Ok(parse::DeniedCall::List { count }) => list(context, count),
            Ok(parse::DeniedCall::Reset) => {
                summary().iter_mut().for_each(Summary::reset);
                context.reply_ok();
            }
            Err(error) => reply::error(context, &CommandError::Usage(error)),
        }
    }

    fn panicked(context: &Context, message: &str) {
        super::answer_panic(context, &table::DENIED, message);
    }
}

/// Makes room for the summary, all that it will ever take.
pub fn start() {
    let seed = RandomState::new().build_hasher().finish();
    *summary() = Some(Summary::new(seed));
}

/// Gives the room back.
pub fn stop() {
    *summary() = None;
}

/// Counts a denial of `key`.
pub fn record(key: &[u8]) {
    if let Some(summary) = summary().as_mut() {
        summary.record(key);
    }
}

fn list(context: &Context, count: usize) {
    let top = summary().as_ref().map(|summary| summary.top(count)).unwrap_or_default();
    // Made before the reply begins: a fault in the middle of one would leave the client waiting.
    let rows: Vec<_> = top.iter().map(|key| (shown_name(key), key)).collect();
    context.reply_array(rows.len());
    for (name, key) in rows {
        context.reply_array(3);
        context.reply_bytes(&name);
        context.reply_integer(reply::on_wire(key.count));
        context.reply_integer(reply::on_wire(key.error));
    }
}

/// The name, with dots behind it if it goes on. A character that was cut through is left out, so that
/// what was text stays text.
fn shown_name(key: &DeniedKey) -> Vec<u8> {
    let mut name = key.name.clone();
    if key.is_cut() {
        if let Err(error) = str::from_utf8(&name)
            && error.error_len().is_none()
        {
            name.truncate(error.valid_up_to());
        }
        name.extend_from_slice(b"...");
    }
    name
}

fn summary() -> MutexGuard<'static, Option<Summary>> {
    SUMMARY.lock().unwrap_or_else(PoisonError::into_inner)
}
