//! `RL.PEEK`: what would be answered.

use super::reply::CommandError;
use super::stats::{self, Calls};
use super::{Answer, Command, parse, table};
use crate::limiter::{Charge, Counters, Request, decide, decide_counters};
use crate::redis::{Args, CommandInfo, Context};
use crate::store::Stored;

/// `RL.PEEK key window limit [window limit ...] [COST n] [FORCE] [PRECISION p] [AT t]`
///
/// `FORCE` and `PRECISION` are taken and ignored, so that the arguments of the real call serve.
pub struct Peek;

impl Command for Peek {
    const INFO: CommandInfo = table::PEEK;
    const CALLS: &'static Calls = &stats::PEEK;

    fn run(context: &Context, args: Args, clock_ms: u64) -> Result<Answer, CommandError> {
        let asked = parse::request(args.behind_key(), clock_ms, parse::Syntax::Slide)?;
        let request = Request { charge: Charge::Never, ..asked };
        let verdict = match Stored::look(context, args.key()) {
            Stored::Nothing => decide_counters(&Counters::default(), None, &request).verdict,
            Stored::Counters(stored) => decide_counters(&stored.read()?, None, &request).verdict,
            Stored::Log(mut log) => decide(&mut log, &request)?.verdict,
            Stored::Other => return Err(CommandError::WrongType),
        };
        Ok(Answer::Verdict(verdict, request.charge))
    }
}
