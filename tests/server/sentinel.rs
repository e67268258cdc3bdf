//! Three Sentinels that watch one primary: the server under test in its other role.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::client::Client;
use crate::harness::{Dir, free_port, server_binary, socket_path, wait_until};

/// What they call the primary.
pub const NAME: &str = "limits";

/// Three Sentinels, of which two must agree that the primary is gone.
pub struct Sentinels([Sentinel; 3]);

impl Sentinels {
    /// They watch the primary on this port, and know each other and the replica that it has. They are
    /// patient: they take no server for dead that is only slow.
    pub fn of(primary_port: u16) -> Sentinels {
        let sentinels = Sentinels([(); 3].map(|()| Sentinel::start(primary_port)));
        wait_until("the Sentinels to know all", || sentinels.0.iter().all(Sentinel::knows_all));
        sentinels
    }

    /// Where clients find them.
    pub fn ports(&self) -> [u16; 3] {
        self.0.each_ref().map(|sentinel| sentinel.port)
    }

    /// Whether all of them hold the server on this port for the primary.
    pub fn name(&self, port: u16) -> bool {
        self.0.iter().all(|sentinel| sentinel.primary_port() == port)
    }

    /// Makes a replica the primary though nothing is wrong.
    pub fn fail_over(&self) {
        self.0[0].client.does(&format!("SENTINEL FAILOVER {NAME}"));
    }

    /// From now on, whatever is silent for a second is dead.
    pub fn lose_patience(&self) {
        for sentinel in &self.0 {
            sentinel.client.does(&format!("SENTINEL SET {NAME} down-after-milliseconds 1000"));
        }
    }
}

struct Sentinel {
    child: Child,
    client: Client,
    port: u16,
    // Last, for it is to be removed when the process has ended.
    _dir: Dir,
}

impl Sentinel {
    fn start(primary_port: u16) -> Sentinel {
        // A port that was free may be taken before it is bound: then the Sentinel gives up.
        let started = (0..10).find_map(|_| Sentinel::try_start(primary_port, free_port()));
        started.expect("a Sentinel starts")
    }

    fn try_start(primary_port: u16, port: u16) -> Option<Sentinel> {
        let dir = Dir::fresh();
        let file = dir.join("sentinel.conf");
        let lines = [
            format!("port {port}"),
            "bind 127.0.0.1".to_string(),
            format!("unixsocket {}", socket_path(&dir).display()),
            format!("dir {}", dir.display()),
            format!("logfile {}", dir.join("server.log").display()),
            format!("sentinel monitor {NAME} 127.0.0.1 {primary_port} 2"),
            format!("sentinel down-after-milliseconds {NAME} 60000"),
            format!("sentinel failover-timeout {NAME} 10000"),
        ];
        fs::write(&file, lines.join("\n")).unwrap();
        let mut command = Command::new(server_binary());
        command.arg(&file).arg("--sentinel").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut client = None;
        wait_until("the Sentinel", || {
            client = Client::try_connect(&dir);
            client.is_some() || child.try_wait().unwrap().is_some()
        });
        Some(Sentinel { child, client: client?, port, _dir: dir })
    }

    fn knows_all(&self) -> bool {
        let primary: Vec<String> = self.client.run(&format!("SENTINEL MASTER {NAME}"));
        let replicas: Vec<Vec<String>> = self.client.run(&format!("SENTINEL REPLICAS {NAME}"));
        let tells =
            |fields: &[String], field, value| fields.chunks(2).any(|pair| pair == [field, value]);
        tells(&primary, "num-other-sentinels", "2")
            && replicas.iter().any(|replica| tells(replica, "master-link-status", "ok"))
    }

    fn primary_port(&self) -> u16 {
        let address: [String; 2] =
            self.client.run(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}"));
        address[1].parse().unwrap()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
