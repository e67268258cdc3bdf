//! The whole data set as bytes, to prove that a call left everything as it was.

use std::collections::BTreeMap;

use crate::client::Client;

/// What one key holds: its type, its contents as bytes and the time of its expiry.
#[derive(Debug, PartialEq)]
pub struct KeyState {
    kind: String,
    payload: Vec<u8>,
    expiry_ms: i64,
}

/// Every key of the present database.
pub type Dataset = BTreeMap<Vec<u8>, KeyState>;

/// Reads every key. A data set without keys proves nothing, so it fails the test.
pub fn dataset(client: &Client) -> Dataset {
    let keys: Vec<Vec<u8>> = client.run("KEYS *");
    assert!(!keys.is_empty(), "there is something to leave untouched");
    keys.into_iter().map(|key| (key.clone(), key_state(client, &key))).collect()
}

fn key_state(client: &Client, key: &[u8]) -> KeyState {
    KeyState {
        kind: client.args(&[b"TYPE", key]),
        payload: payload(client, key),
        expiry_ms: client.expiry(key),
    }
}

/// The `DUMP` of a key. A hash table's is in an order that moves while the table grows, even under
/// reads: it is told by its digest instead.
fn payload(client: &Client, key: &[u8]) -> Vec<u8> {
    let encoding: String = client.args(&[b"OBJECT".as_slice(), b"ENCODING", key]);
    if encoding != "hashtable" {
        return client.args(&[b"DUMP", key]);
    }
    let digests: Vec<String> = client.args(&[b"DEBUG".as_slice(), b"DIGEST-VALUE", key]);
    digests.concat().into_bytes()
}

/// Runs a call and fails unless it left every key, every expiry and the dirty counter alone.
pub fn leaves_everything<T>(client: &Client, what: &str, call: impl FnOnce() -> T) -> T {
    let before = (dataset(client), client.dirty());
    let answer = call();
    let after = (dataset(client), client.dirty());
    assert!(before == after, "{what} changed the data set:\nbefore {before:?}\nafter  {after:?}");
    answer
}

/// One number for the whole data set: equal on two servers that hold the same.
pub fn digest(client: &Client) -> String {
    client.run("DEBUG DIGEST")
}

/// The keys and their expiries, in order.
pub fn expiries(client: &Client) -> BTreeMap<String, i64> {
    let keys: Vec<String> = client.run("KEYS *");
    keys.into_iter().map(|key| (key.clone(), client.expiry(&key))).collect()
}

/// Both: what must be the same on two servers, or after a restart.
pub fn contents(client: &Client) -> (String, BTreeMap<String, i64>) {
    (digest(client), expiries(client))
}
