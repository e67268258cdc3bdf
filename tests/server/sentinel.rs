//! A Sentinel that watches one primary: the server under test in its other role.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::client::Client;
use crate::harness::{Dir, server_binary, socket_path, wait_until};

/// What it calls the primary.
const NAME: &str = "limits";

/// A running Sentinel, of which one alone decides.
pub struct Sentinel {
    child: Child,
    client: Client,
    // Last, for it is to be removed when the process has ended.
    _dir: Dir,
}

impl Sentinel {
    /// Watches the primary on this port, and knows the replica that it has. It is patient: it takes no
    /// server for dead that is only slow.
    pub fn of(port: u16) -> Sentinel {
        let dir = Dir::fresh();
        let file = dir.join("sentinel.conf");
        let lines = [
            "port 0".to_string(),
            format!("unixsocket {}", socket_path(&dir).display()),
            format!("dir {}", dir.display()),
            format!("logfile {}", dir.join("server.log").display()),
            format!("sentinel monitor {NAME} 127.0.0.1 {port} 1"),
            format!("sentinel down-after-milliseconds {NAME} 60000"),
            format!("sentinel failover-timeout {NAME} 10000"),
        ];
        fs::write(&file, lines.join("\n")).unwrap();
        let mut command = Command::new(server_binary());
        command.arg(&file).arg("--sentinel").stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut client = None;
        wait_until("the Sentinel", || {
            client = Client::try_connect(&dir);
            client.is_some()
        });
        let sentinel = Sentinel { child, client: client.unwrap(), _dir: dir };
        wait_until("the Sentinel to know the replica", || sentinel.knows_the_replica());
        sentinel
    }

    fn knows_the_replica(&self) -> bool {
        let replicas: Vec<Vec<String>> = self.client.run(&format!("SENTINEL REPLICAS {NAME}"));
        let is_linked = |pair: &[String]| pair == ["master-link-status", "ok"];
        replicas.iter().any(|fields| fields.chunks(2).any(is_linked))
    }

    /// The port of the server that it holds for the primary.
    pub fn primary_port(&self) -> u16 {
        let address: [String; 2] =
            self.client.run(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}"));
        address[1].parse().unwrap()
    }

    /// Makes a replica the primary though nothing is wrong.
    pub fn fail_over(&self) {
        self.client.does(&format!("SENTINEL FAILOVER {NAME}"));
    }

    /// From now on, whatever is silent for a second is dead.
    pub fn lose_patience(&self) {
        self.client.does(&format!("SENTINEL SET {NAME} down-after-milliseconds 1000"));
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
