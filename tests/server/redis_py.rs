//! A client of redis-py, in a process of its own, that is spoken to in lines.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct RedisPy {
    process: Child,
    lines: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl RedisPy {
    /// A script that lies beside these tests, which finds its servers on these ports.
    pub fn run(script: &str, ports: impl IntoIterator<Item = u16>) -> RedisPy {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("python");
        assert!(library.join("redis").is_dir(), "redis-py is missing: make setup");
        let mut process = Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server").join(script))
            .args(ports.into_iter().map(|port| port.to_string()))
            .env("PYTHONPATH", library)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let lines = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        RedisPy { process, lines, answers }
    }

    /// Sends the words of a line: the integers of the answer, or else the line that was answered.
    pub fn try_call(&mut self, line: &str) -> Result<Vec<i64>, String> {
        writeln!(self.lines, "{line}").expect("redis-py reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("redis-py answers");
        let integers: Result<Vec<i64>, _> = answer.split_whitespace().map(str::parse).collect();
        integers.ok().filter(|integers| !integers.is_empty()).ok_or(answer)
    }
}

impl Drop for RedisPy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
