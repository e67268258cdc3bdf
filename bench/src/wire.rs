//! A connection: commands out, pipelined, and their replies in, in order.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What the server answers.
#[derive(Debug, PartialEq)]
pub enum Reply {
    /// A status, or a string; a missing one is empty.
    Text(String),
    /// An error, as the server says it.
    Error(String),
    /// An integer.
    Integer(i64),
    /// An array; a missing one is empty.
    Array(Vec<Reply>),
}

impl Reply {
    /// The integer that this is.
    pub fn integer(&self) -> i64 {
        match self {
            Reply::Integer(integer) => *integer,
            other => panic!("no integer: {other:?}"),
        }
    }

    /// The text that this is.
    pub fn text(&self) -> &str {
        match self {
            Reply::Text(text) => text,
            other => panic!("no text: {other:?}"),
        }
    }

    /// The first error in it, if there is one.
    pub fn error(&self) -> Option<&str> {
        match self {
            Reply::Error(error) => Some(error),
            Reply::Array(replies) => replies.iter().find_map(Reply::error),
            Reply::Text(_) | Reply::Integer(_) => None,
        }
    }
}

/// Adds a command, given by its words, to the bytes to send.
pub fn encode(bytes: &mut Vec<u8>, words: &[impl AsRef<[u8]>]) {
    write!(bytes, "*{}\r\n", words.len()).unwrap();
    for word in words {
        let word = word.as_ref();
        write!(bytes, "${}\r\n", word.len()).unwrap();
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
}

/// Adds commands, one a line, each the words between spaces: how many they are.
pub fn encode_lines(bytes: &mut Vec<u8>, lines: &str) -> usize {
    let commands = lines.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    commands.map(|words| encode(bytes, &words)).count()
}

/// A connection to a server.
pub struct Wire {
    reader: BufReader<UnixStream>,
}

impl Wire {
    /// Connects to a socket, if somebody listens there.
    pub fn connect(socket: &Path) -> std::io::Result<Wire> {
        Ok(Wire { reader: BufReader::new(UnixStream::connect(socket)?) })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).expect("the server reads");
    }

    /// Reads the next reply.
    pub fn receive(&mut self) -> Reply {
        read_reply(&mut self.reader).expect("the server replies")
    }

    /// Sends the words of a line and reads the reply, which may be no error.
    pub fn run(&mut self, line: &str) -> Reply {
        self.run_words(&line.split_ascii_whitespace().collect::<Vec<_>>())
    }

    /// Sends words as they are and reads the reply, which may be no error.
    pub fn run_words(&mut self, words: &[&str]) -> Reply {
        let mut bytes = Vec::new();
        encode(&mut bytes, words);
        self.send(&bytes);
        let reply = self.receive();
        assert!(reply.error().is_none(), "{words:?} was answered: {reply:?}");
        reply
    }

    /// Sends commands, one a line, in batches, for their effect.
    pub fn run_all(&mut self, lines: impl IntoIterator<Item = String>) {
        let mut lines = lines.into_iter().peekable();
        while lines.peek().is_some() {
            let mut bytes = Vec::new();
            let sent = lines.by_ref().take(50).map(|line| encode_lines(&mut bytes, &line)).sum();
            self.send(&bytes);
            for _ in 0..sent {
                let reply = self.receive();
                assert!(reply.error().is_none(), "a command was answered: {reply:?}");
            }
        }
    }
}

fn read_reply(reader: &mut impl BufRead) -> std::io::Result<Reply> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let Some(kind) = line.chars().next() else {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    };
    let rest = line[1..].trim_end();
    let number = || rest.parse::<i64>().unwrap_or_else(|_| panic!("no number: {line:?}"));
    Ok(match kind {
        '+' => Reply::Text(rest.to_string()),
        '-' => Reply::Error(rest.to_string()),
        ':' => Reply::Integer(number()),
        '$' => Reply::Text(read_string(reader, number())?),
        '*' => {
            let replies = (0..number()).map(|_| read_reply(reader));
            Reply::Array(replies.collect::<std::io::Result<_>>()?)
        }
        _ => panic!("no reply: {line:?}"),
    })
}

/// Reads a string of so many bytes and the end of its line; none at all if the length is negative.
fn read_string(reader: &mut impl Read, length: i64) -> std::io::Result<String> {
    let Ok(length) = usize::try_from(length) else { return Ok(String::new()) };
    let mut bytes = vec![0; length + 2];
    reader.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_encoded_line_by_line() {
        let mut bytes = Vec::new();
        assert_eq!(encode_lines(&mut bytes, "PING\nGET  key"), 2);
        assert_eq!(bytes, b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    }

    #[test]
    fn replies_are_read_in_order() {
        let mut bytes: &[u8] =
            b"+OK\r\n-ERR no\r\n$-1\r\n$3\r\na\nb\r\n*2\r\n:1\r\n*1\r\n-ERR in\r\n";
        let mut next = || read_reply(&mut bytes).unwrap();
        assert_eq!(next(), Reply::Text("OK".into()));
        assert_eq!(next().error(), Some("ERR no"));
        assert_eq!(next(), Reply::Text(String::new()));
        assert_eq!(next(), Reply::Text("a\nb".into()));
        assert_eq!(next().error(), Some("ERR in"));
        assert!(read_reply(&mut bytes).is_err(), "the end is an error");
    }
}
