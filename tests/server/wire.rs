//! A connection on which bytes are sent and read as they are: for RESP3, pushes, and hostile input.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{read_log, socket_path};

/// A command of these very arguments, as it is sent.
pub fn frame_of(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut frame = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        frame.extend(format!("${}\r\n", arg.as_ref().len()).into_bytes());
        frame.extend(arg.as_ref());
        frame.extend(b"\r\n");
    }
    frame
}

/// A raw connection.
pub struct Wire {
    stream: BufReader<UnixStream>,
    dir: PathBuf,
}

impl Wire {
    /// Connects to the server in `dir`.
    pub fn connect(dir: &Path) -> Wire {
        let stream = UnixStream::connect(socket_path(dir))
            .unwrap_or_else(|error| panic!("cannot connect: {error}; the log:\n{}", read_log(dir)));
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        Wire { stream: BufReader::new(stream), dir: dir.into() }
    }

    /// Sends a command and reads the next frame: its bytes, text where they are no text replaced.
    pub fn ask(&mut self, line: &str) -> String {
        self.ask_args(&line.split_ascii_whitespace().collect::<Vec<_>>())
    }

    /// Sends a command of these very arguments and reads the next frame.
    pub fn ask_args(&mut self, args: &[impl AsRef<[u8]>]) -> String {
        self.send(&frame_of(args));
        self.frame()
    }

    /// Sends bytes, and reads nothing.
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("the server reads");
    }

    /// The same, to a server that may close the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads the next frame, a reply or a push, with everything nested in it.
    pub fn frame(&mut self) -> String {
        let mut bytes = Vec::new();
        self.read_frame(&mut bytes).unwrap_or_else(|error| {
            panic!(
                "no whole frame: {error}; read {bytes:?}; the server's log:\n{}",
                read_log(&self.dir)
            )
        });
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn read_frame(&mut self, bytes: &mut Vec<u8>) -> std::io::Result<()> {
        let start = bytes.len();
        self.stream.read_until(b'\n', bytes)?;
        let line = std::str::from_utf8(&bytes[start..]).unwrap_or("").trim_end();
        let Some(kind) = line.chars().next() else {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        };
        let count = line[1..].parse::<i64>().unwrap_or(0).max(0) as usize;
        match kind {
            '$' | '=' if line != "$-1" => {
                let end = bytes.len() + count + 2;
                let body = bytes.len();
                bytes.resize(end, 0);
                self.stream.read_exact(&mut bytes[body..])
            }
            '*' | '~' | '>' => (0..count).try_for_each(|_| self.read_frame(bytes)),
            '%' => (0..2 * count).try_for_each(|_| self.read_frame(bytes)),
            _ => Ok(()),
        }
    }
}
