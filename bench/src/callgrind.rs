//! Instructions of the whole server for a call, counted by valgrind's callgrind.

use std::fs;
use std::path::Path;

use crate::contenders::Contender;
use crate::server::{Server, Setup};
use crate::wire::Wire;
use crate::workloads::{Run, Workload};

/// Calls that are sent before a reply is read.
const PIPELINE: usize = 50;

/// Instructions for each of the calls from the first length of a run to the second.
///
/// The counters are put to zero at the first and read at the second. What callgrind has then counted is
/// copied to `kept`.
pub fn instructions(
    contender: &Contender,
    workload: &Workload,
    [from, to]: [u64; 2],
    kept: Option<&Path>,
) -> u64 {
    let server = start(workload);
    let mut wire = server.connect();
    let run = Run::prepare(contender, workload, to, &mut wire);
    run.send(0..from, PIPELINE, &mut wire);
    mark(&mut wire);
    run.send(from..to, PIPELINE, &mut wire);
    mark(&mut wire);
    let profile = server.dir().join("profile.2");
    if let Some(kept) = kept {
        fs::copy(&profile, kept).expect("the folder for profiles is there");
    }
    total(&profile) / (to - from)
}

/// A server that does nothing by itself that could be put off.
fn start(workload: &Workload) -> Server {
    let setup =
        ["valgrind", "--tool=callgrind", "--dump-before=echoCommand", "--compress-strings=no"]
            .into_iter()
            .fold(Setup::plain(), Setup::behind)
            .behind_file("--callgrind-out-file=", "profile")
            .option("hz 1")
            .option("activerehashing no");
    workload.options.iter().fold(setup, |setup, line| setup.option(line)).start()
}

/// Ends a part of the run: callgrind writes what it has counted, and starts anew, when it comes to this.
fn mark(wire: &mut Wire) {
    wire.run("ECHO mark");
}

/// The instructions in one of callgrind's files.
fn total(profile: &Path) -> u64 {
    let text = fs::read_to_string(profile).expect("callgrind writes at a mark");
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    total.expect("a profile has a summary").trim().parse().expect("it is a number")
}
