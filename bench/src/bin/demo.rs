//! Sends bursts through three limiters of a server of its own, and draws what they let pass. SPEED says
//! how many times as fast as its own time the show runs; 0 waits for nothing.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use redis_rl_bench::demo::{COLOURS, END_MS, NAMES, PLAIN, Track, ask, table, timelines, times_ms};
use redis_rl_bench::server::{Setup, number};

/// The show takes 40 s.
const SPEED: u64 = 6;
const INTERRUPTED: u8 = 130;

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_TO_END_OF_LINE: &str = "\x1b[K";

fn main() -> ExitCode {
    let (interrupt, interrupted) = mpsc::channel();
    let interrupts = move || interrupt.send(()).unwrap_or_default();
    ctrlc::set_handler(interrupts).expect("it is the only handler");
    let mut screen = Screen::new();
    let shown = show(&mut screen, &interrupted);
    // Brings the cursor back.
    drop(screen);
    match shown {
        Ok(Outcome::Ended) => ExitCode::SUCCESS,
        Ok(Outcome::Interrupted) => ExitCode::from(INTERRUPTED),
        // Whoever was reading has gone.
        Err(_) => ExitCode::FAILURE,
    }
}

enum Outcome {
    Ended,
    Interrupted,
}

fn show(screen: &mut Screen, interrupted: &Receiver<()>) -> io::Result<Outcome> {
    let speed = number("SPEED", SPEED);
    // In a session of its own, so that Ctrl-C, which is sent to all in the terminal, ends only us. The
    // server ends with its handle.
    let server = Setup::plain().behind("setsid").start();
    let mut wire = server.connect();
    let mut tracks: [Track; 3] = Default::default();
    screen.begin()?;
    let start = Instant::now();
    for at_ms in times_ms() {
        let due = start + Duration::from_millis(at_ms.checked_div(speed).unwrap_or(0));
        if waits_until(due, interrupted) {
            return Ok(Outcome::Interrupted);
        }
        let answers = ask(&mut wire, at_ms);
        for (track, admitted) in tracks.iter_mut().zip(answers) {
            track.note(at_ms, admitted);
        }
        screen.draw(at_ms, answers, &tracks)?;
    }
    screen.end(&tracks)?;
    Ok(Outcome::Ended)
}

/// Waits until then, or until Ctrl-C: whether that came.
fn waits_until(due: Instant, interrupted: &Receiver<()>) -> bool {
    let wait = due.saturating_duration_since(Instant::now());
    interrupted.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
}

/// Where the show is seen: drawn again and again in a terminal, line by line anywhere else.
struct Screen {
    is_terminal: bool,
    lines_drawn: usize,
}

impl Screen {
    fn new() -> Screen {
        Screen { is_terminal: io::stdout().is_terminal(), lines_drawn: 0 }
    }

    fn begin(&mut self) -> io::Result<()> {
        let seconds = END_MS / 1000;
        let mut out = io::stdout().lock();
        writeln!(out, "The same requests through three limiters of 10 in 60 s, for {seconds} s.")?;
        writeln!(out, "In the timelines, a digit says how many of them in 5 s.\n")?;
        match self.is_terminal {
            true => write!(out, "{HIDE_CURSOR}")?,
            false => writeln!(out, "{:>8}  {:14}{:14}{}", "s", NAMES[0], NAMES[1], NAMES[2])?,
        }
        out.flush()
    }

    fn draw(&mut self, at_ms: u64, answers: [bool; 3], tracks: &[Track; 3]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !self.is_terminal {
            let words = answers.map(|admitted| if admitted { "admitted" } else { "denied" });
            let seconds = at_ms as f64 / 1000.0;
            writeln!(out, "{seconds:8.1}  {:14}{:14}{}", words[0], words[1], words[2])?;
            return out.flush();
        }
        if self.lines_drawn > 0 {
            write!(out, "\x1b[{}A", self.lines_drawn)?;
        }
        let lines = timelines(tracks, &COLOURS);
        for line in &lines {
            writeln!(out, "{line}{CLEAR_TO_END_OF_LINE}")?;
        }
        self.lines_drawn = lines.len();
        out.flush()
    }

    fn end(&mut self, tracks: &[Track; 3]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out)?;
        // In a terminal the timelines stand there already.
        let timelines = if self.is_terminal { Vec::new() } else { timelines(tracks, &PLAIN) };
        let between = (!self.is_terminal).then(String::new);
        for line in timelines.into_iter().chain(between).chain(table(tracks)) {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_terminal {
            print!("{SHOW_CURSOR}");
            let _ = io::stdout().flush();
        }
    }
}
