//! The table of commands: what `COMMAND INFO`, `COMMAND DOCS` and the documentation say of each.

use crate::redis::{Access, Arg, ArgKind, CommandInfo};

const KEY: Arg = Arg::new(c"key", ArgKind::Key);
const WINDOWS: Arg = Arg::new(
    c"window-limit",
    ArgKind::Block(&[Arg::new(c"window", ArgKind::Text), Arg::new(c"limit", ArgKind::Integer)]),
)
.repeated();
const COST: Arg = Arg::option(c"COST", c"n", ArgKind::Integer);
const FORCE: Arg = Arg::option(c"FORCE", c"force", ArgKind::Token);
const PRECISION: Arg = Arg::option(c"PRECISION", c"p", ArgKind::Text);
const AT: Arg = Arg::option(c"AT", c"t", ArgKind::UnixTime);

/// The version of the module that had the commands first.
const SINCE: &std::ffi::CStr = c"0.1.0";

/// The sliding window log.
pub const SLIDE: CommandInfo = CommandInfo {
    name: c"rl.slide",
    // Not `deny-oom`: a denial must be answered when memory is short.
    flags: c"write fast",
    acl_categories: c"write sortedset fast",
    access: Some(Access::Update),
    summary: c"Limits by an exact sliding window log: says whether a request may pass, and charges it if so.",
    complexity: c"O(W*log(N)) for W windows and a log of N entries; at most 128 old entries are removed.",
    since: SINCE,
    args: &[KEY, WINDOWS, COST, FORCE, PRECISION, AT],
};

/// The sliding window counter.
pub const SWC: CommandInfo = CommandInfo {
    name: c"rl.swc",
    flags: c"write fast",
    acl_categories: c"write hash fast",
    access: Some(Access::Update),
    summary: c"Limits by a sliding window counter: says whether a request may pass, and charges it if so.",
    complexity: c"O(W) for W windows.",
    since: SINCE,
    args: &[KEY, WINDOWS, COST, FORCE, AT],
};

/// What either would answer.
pub const PEEK: CommandInfo = CommandInfo {
    name: c"rl.peek",
    flags: c"readonly fast",
    acl_categories: c"read fast",
    access: Some(Access::Read),
    summary: c"Tells what RL.SLIDE or RL.SWC would answer, and charges nothing.",
    complexity: c"O(W*log(N)) for W windows and a log of N entries; O(W) for counters.",
    since: SINCE,
    args: &[KEY, WINDOWS, COST, FORCE, PRECISION, AT],
};

/// Taking units back.
pub const REFUND: CommandInfo = CommandInfo {
    name: c"rl.refund",
    // Not `fast`, for it may touch thousands of entries, and not `deny-oom`, for it frees memory.
    flags: c"write",
    acl_categories: c"write slow",
    access: Some(Access::Update),
    summary: c"Takes back up to n of the newest units of a limiter, and says how many.",
    complexity:
        c"O(K*log(N)) for K entries taken back, at most 4096, of a log of N; O(1) for counters.",
    since: SINCE,
    args: &[KEY, Arg::new(c"n", ArgKind::Integer), AT],
};

/// The keys denied most often.
pub const DENIED: CommandInfo = CommandInfo {
    name: c"rl.denied",
    // `admin`, for it shows key names past the key patterns of users. It touches no data.
    flags: c"admin allow-stale allow-loading",
    acl_categories: c"admin dangerous slow",
    access: None,
    summary: c"Lists the keys denied most often by this server, or forgets them.",
    complexity: c"O(1): a summary of 512 keys is sorted.",
    since: SINCE,
    args: &[Arg {
        optional: true,
        ..Arg::new(
            c"what",
            ArgKind::OneOf(&[
                Arg::option(c"RESET", c"reset", ArgKind::Token).required(),
                Arg::option(c"COUNT", c"n", ArgKind::Integer).required(),
            ]),
        )
    }],
};

/// All of them, in the order in which the documentation has them.
pub const ALL: [&CommandInfo; 5] = [&SLIDE, &SWC, &PEEK, &REFUND, &DENIED];
