//! Replies: six integers, or an error that says what to do.

use super::parse::UsageError;
use crate::limiter::{LogError, Verdict};
use crate::redis::Context;
use crate::store::{ForeignHash, WriteFailed, WrongType};
use std::borrow::Cow;

/// Why a call has no verdict.
pub enum CommandError {
    /// An argument is wrong.
    Usage(UsageError),
    /// The key holds another type.
    WrongType,
    /// The key's sorted set cannot be judged or charged.
    Log(LogError),
    /// The key's hash holds no counters of ours.
    ForeignHash,
    /// The server is over `maxmemory`.
    OutOfMemory,
    /// The server refused a write.
    WriteFailed,
    /// A panic was caught.
    Internal,
}

impl CommandError {
    fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Usage(error) => format!("ERR {error}").into(),
            Self::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value".into()
            }
            Self::Log(LogError::Foreign) => "ERR the sorted set at this key was not written by \
                 RL.SLIDE: use another key, or delete it"
                .into(),
            Self::Log(LogError::Full) => "ERR the log at this key cannot take the cost: its units \
                 would pass 9223372036854775807; use another key, or delete it"
                .into(),
            Self::ForeignHash => "ERR the hash at this key was not written by RL.SWC: use another \
                 key, or delete it"
                .into(),
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.".into(),
            Self::WriteFailed => {
                "ERR the server refused a write: see its log, and report it".into()
            }
            Self::Internal => "ERR internal error: see the server's log".into(),
        }
    }
}

impl From<UsageError> for CommandError {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

impl From<WrongType> for CommandError {
    fn from(WrongType: WrongType) -> Self {
        Self::WrongType
    }
}

impl From<ForeignHash> for CommandError {
    fn from(ForeignHash: ForeignHash) -> Self {
        Self::ForeignHash
    }
}

impl From<LogError> for CommandError {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<WriteFailed> for CommandError {
    fn from(WriteFailed: WriteFailed) -> Self {
        Self::WriteFailed
    }
}

/// Answers with a verdict: allowed, limit, remaining, retry_after, reset_after, window.
pub fn verdict(context: &Context, verdict: &Verdict) {
    context.reply_integers(&[
        i64::from(verdict.allowed),
        on_wire(verdict.limit),
        on_wire(verdict.remaining),
        verdict.retry_after_ms.map_or(-1, on_wire),
        on_wire(verdict.reset_after_ms),
        on_wire(verdict.window_ms),
    ]);
}

/// Answers with a number of units.
pub fn units(context: &Context, units: u64) {
    context.reply_integer(on_wire(units));
}

/// Answers with an error.
pub fn error(context: &Context, error: &CommandError) {
    context.reply_error(&error.message());
}

/// A number as the wire has it. Nothing comes near 2^63: limits end at 2^53, times at some 2^55, and
/// counting that far takes centuries.
pub fn on_wire(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
