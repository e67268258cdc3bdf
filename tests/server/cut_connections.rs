//! Connections that are cut in the middle of what they send, and before they have read what they asked:
//! a call is carried out whole or not at all, and the calls of one connection in their order.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::RangeInclusive;
use std::thread;

use crate::client::Client;
use crate::dataset::leaves_everything;
use crate::harness::{Server, Setup, wait_until};
use crate::load::{Asked, Calls, Load};
use crate::random::Random;
use crate::wire::frame_of;

/// Waits until the server has done with every connection but that of the test.
fn wait_until_closed(server: &Client) {
    wait_until("the end of connections", || server.info("connected_clients") == "1");
}

/// A line as it is sent.
fn frame(line: &str) -> Vec<u8> {
    frame_of(&line.split_ascii_whitespace().collect::<Vec<_>>())
}

// --- One call --------------------------------------------------------------------------------------

const CALLS: [&str; 5] = [
    "RL.SLIDE log 1h 9 AT 1796037190000",
    "RL.SLIDE fresh 1h 9 30m 5 COST 2 FORCE AT 1796037190000",
    "RL.SWC counters 1h 9 COST 2 AT 1796037190000",
    "RL.REFUND log 1 AT 1796037190000",
    "RL.REFUND counters 1 AT 1796037190000",
];

/// A server whose `log` and `counters` have each 5 of 9 units left.
fn server() -> Server {
    let server = Server::start();
    server.slide("log 1h 9 COST 4 AT 1796037190000");
    server.swc("counters 1h 9 COST 4 AT 1796037190000");
    server
}

/// Units that these have left, and those that `fresh` has.
fn left(server: &Client) -> [i64; 3] {
    ["log", "counters", "fresh"].map(|key| server.peek(&format!("{key} 1h 9 AT 1796037190000"))[2])
}

/// Sends bytes on a connection of their own, and closes it without having read what they ask for.
fn send_and_close(server: &Server, bytes: &[u8]) {
    let mut wire = server.wire();
    // From now on it is one of the server's connections.
    assert_eq!(wire.ask("PING"), "+PONG\r\n");
    wire.send(bytes);
}

#[test]
fn a_call_that_does_not_arrive_whole_does_nothing() {
    let server = server();
    for call in CALLS {
        // As clients send it, and as it is typed into telnet.
        for whole in [frame(call), format!("{call}\r\n").into_bytes()] {
            leaves_everything(&server, call, || {
                (1..whole.len()).for_each(|sent| send_and_close(&server, &whole[..sent]));
                wait_until_closed(&server);
            });
        }
    }
}

#[test]
fn a_call_that_arrives_whole_is_carried_out_though_nobody_waits() {
    let server = server();
    for used in 1..=5 {
        send_and_close(&server, &frame("RL.SLIDE log 1h 9 AT 1796037190000"));
        send_and_close(&server, b"RL.SWC counters 1h 9 AT 1796037190000\r\n");
        wait_until_closed(&server);
        assert_eq!(left(&server), [5 - used, 5 - used, 9]);
    }
}

#[test]
fn a_transaction_is_carried_out_if_its_exec_arrives() {
    let server = server();
    if server.forbids("keys of several slots in one transaction") {
        return;
    }
    let queued: Vec<u8> = ["MULTI"].iter().chain(&CALLS).flat_map(|line| frame(line)).collect();
    let whole = [queued.clone(), frame("EXEC")].concat();
    leaves_everything(&server, "a transaction that is cut", || {
        for sent in [queued.len() / 2, queued.len(), whole.len() - 1] {
            send_and_close(&server, &whole[..sent]);
        }
        wait_until_closed(&server);
    });
    send_and_close(&server, &whole);
    wait_until_closed(&server);
    assert_eq!(left(&server), [5, 5 - 2 + 1, 9 - 2]);
}

// --- Pipelines -------------------------------------------------------------------------------------

/// Each has a client's limiters for itself.
const CONNECTIONS: usize = 24;

/// As many are open at a time.
const AT_ONCE: usize = 4;

/// Several times what a server reads at once.
const PIPELINED: usize = 600;

/// Replies that are read at most before a cut, far fewer than there are.
const MOST_READ: u64 = 20;

#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The client says that nothing more comes, and the server reads until there.
    HalfClose,
    /// With replies unread, to close is to reset: what the server has not read is thrown away.
    Reset,
    /// Another client has the server close it.
    Kill,
}

/// Sends a pipeline of a client's calls that ends anywhere, reads some replies and cuts the connection.
/// Tells how many calls may have been carried out.
fn run_pipeline(
    port: u16,
    mut calls: Calls,
    mut random: Random,
    control: &Client,
) -> RangeInclusive<usize> {
    let frames: Vec<Vec<u8>> = (0..PIPELINED).map(|_| frame(&calls.next().0)).collect();
    let bytes = frames.concat();
    let sent = bytes.len() - random.below(bytes.len() as u64 / 2) as usize;
    let ends = frames.iter().scan(0, |end, frame| {
        *end += frame.len();
        Some(*end)
    });
    let whole = ends.take_while(|end| *end <= sent).count();
    let read = random.below(MOST_READ) as usize;
    let cut = random.one_of(&[Cut::HalfClose, Cut::Reset, Cut::Kill]);

    let mut pipeline = Pipeline::connect(port);
    pipeline.stream.get_mut().write_all(&bytes[..sent]).unwrap();
    (0..read).for_each(|_| pipeline.read_reply());
    pipeline.cut(cut, control);
    match cut {
        Cut::HalfClose => whole..=whole,
        Cut::Reset | Cut::Kill => read..=whole,
    }
}

/// A connection whose replies are read one by one, the rest of them left where a reset finds them.
struct Pipeline {
    stream: BufReader<TcpStream>,
    id: i64,
}

impl Pipeline {
    fn connect(port: u16) -> Pipeline {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut stream = BufReader::with_capacity(16, stream);
        stream.get_mut().write_all(&frame("CLIENT ID")).unwrap();
        let mut id = String::new();
        stream.read_line(&mut id).unwrap();
        Pipeline { stream, id: id[1..].trim_end().parse().unwrap() }
    }

    /// Reads a verdict, or the units of a refund.
    fn read_reply(&mut self) {
        let mut reply = String::new();
        self.stream.read_line(&mut reply).unwrap();
        if reply == "*6\r\n" {
            (0..6).for_each(|_| assert!(self.stream.read_line(&mut reply).unwrap() > 0));
        }
        assert!(reply.starts_with(['*', ':']) && reply.ends_with("\r\n"), "{reply:?}");
    }

    /// Cuts it, once there is something that nobody has read.
    fn cut(mut self, cut: Cut, control: &Client) {
        assert_eq!(self.stream.get_ref().peek(&mut [0]).unwrap(), 1);
        match cut {
            Cut::HalfClose => {
                self.stream.get_ref().shutdown(Shutdown::Write).unwrap();
                self.stream.read_to_end(&mut Vec::new()).unwrap();
            }
            Cut::Reset => {}
            Cut::Kill => assert_eq!(control.run::<i64>(&format!("CLIENT KILL ID {}", self.id)), 1),
        }
    }
}

#[test]
fn of_a_pipeline_that_is_cut_the_first_calls_are_carried_out() {
    let server = Setup::new().on_tcp().start();
    let load = Load::of(&server);
    let (load_of_all, port) = (&load, server.port());
    let mut random = Random::seeded();
    let mut ranges: Vec<(usize, RangeInclusive<usize>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|worker| {
                let (control, seed) = (server.another_client(), random.below(1 << 32));
                scope.spawn(move || -> Vec<_> {
                    let clients = (worker..CONNECTIONS).step_by(AT_ONCE);
                    let run = |client| {
                        let (_, calls) = load_of_all.start(client);
                        let random = Random(seed + client as u64);
                        (client, run_pipeline(port, calls, random, &control))
                    };
                    clients.map(run).collect()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    ranges.sort_by_key(|(client, _)| *client);
    wait_until_closed(&server);
    for (client, range) in ranges {
        let made = load.assert_goes_on(&server, client, &Asked::default(), range.clone());
        println!("connection {client}: {made} of {range:?} carried out");
    }
}
