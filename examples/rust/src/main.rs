//! A service whose clients may each send 10 messages a minute and 30 a day.
//!
//!     cargo run
//!
//! GET / costs one unit, and POST /messages?count=3 costs three.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::{env, time::Duration};

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE, header::RETRY_AFTER};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{ErrorKind, RedisError, RedisResult};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

struct Policy {
    name: &'static str,
    units: u32,
    seconds: u32,
}

/// Both windows go into one call, so a request is charged to both or to none.
const POLICIES: [Policy; 2] = [
    Policy { name: "minute", units: 10, seconds: 60 },
    Policy { name: "day", units: 30, seconds: 86_400 },
];
/// When to come back if the limiter gives no answer.
const OUTAGE_SECONDS: u64 = 5;
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

// --- Redis ---------------------------------------------------------------------------------------

/// One connection is enough: commands go out on it without waiting for the replies of earlier ones.
struct Redis {
    client: redis::Client,
    config: ConnectionManagerConfig,
    connection: Mutex<Arc<ConnectionManager>>,
}

impl Redis {
    fn new(url: &str, timeout: Duration) -> RedisResult<Redis> {
        // A limiter that hangs must not hang the service. Nor may it wait for a server that is
        // away: a request fails at once, and the connection is tried again behind it. The manager
        // resends nothing, as must be: a command whose reply was lost may have been charged.
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_number_of_retries(0);
        let client = redis::Client::open(url)?;
        let connection = ConnectionManager::new_lazy_with_config(client.clone(), config.clone())?;
        Ok(Redis { client, config, connection: Mutex::new(Arc::new(connection)) })
    }

    /// The reply of RL.SLIDE: allowed, limit, remaining, retry_after, reset_after, window.
    async fn decide(&self, key: &str, cost: NonZeroU32) -> RedisResult<[i64; 6]> {
        let mut command = redis::cmd("RL.SLIDE");
        command.arg(key);
        for policy in &POLICIES {
            command.arg(format!("{}s", policy.seconds)).arg(policy.units);
        }
        command.arg("COST").arg(cost.get());
        let connection = self.connection.lock().expect("never poisoned").clone();
        let reply = command.query_async(&mut ConnectionManager::clone(&connection)).await;
        if let Err(error) = &reply {
            self.replace_if_stuck(&connection, error)?;
        }
        reply
    }

    /// The manager connects again when a connection breaks. One that is silent it keeps, and one
    /// that was denied by its password it does not try again.
    fn replace_if_stuck(
        &self,
        used: &Arc<ConnectionManager>,
        error: &RedisError,
    ) -> RedisResult<()> {
        if error.is_timeout() || error.kind() == ErrorKind::AuthenticationFailed {
            let mut connection = self.connection.lock().expect("never poisoned");
            // Once for all requests that have failed with it.
            if Arc::ptr_eq(&connection, used) {
                let (client, config) = (self.client.clone(), self.config.clone());
                *connection = Arc::new(ConnectionManager::new_lazy_with_config(client, config)?);
            }
        }
        Ok(())
    }
}

/// Whether Redis cannot be asked just now: not reached, too slow, or in no state to be charged. All
/// else is for you to mend: a password, a right, a key of another type, memory that is used up. It
/// must not let anybody pass.
fn is_away(error: &RedisError) -> bool {
    let codes =
        ["LOADING", "READONLY", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "BUSY"];
    error.is_io_error() || error.code().is_some_and(|code| codes.contains(&code))
}

// --- While Redis is away -------------------------------------------------------------------------

/// Limits inside this process, by the minute alone: the day is not counted.
struct Local {
    /// What is this process's part of the limit.
    share: NonZeroU32,
    /// Clients share buckets, so that memory is bounded however many come.
    buckets: DefaultKeyedRateLimiter<u64>,
    /// Differs from process to process, so that nobody can choose whom to share with.
    hasher: RandomState,
}

impl Local {
    const BUCKETS: u64 = 1 << 18;

    fn new(processes: NonZeroU32) -> Local {
        let share = NonZeroU32::new(POLICIES[0].units / processes).unwrap_or(NonZeroU32::MIN);
        let buckets = RateLimiter::keyed(Quota::per_minute(share));
        Local { share, buckets, hasher: RandomState::new() }
    }

    fn refusal(&self, key: &str, cost: NonZeroU32) -> Option<Response> {
        let limit = POLICIES[0].units;
        if cost.get() > limit {
            return Some(problem(StatusCode::BAD_REQUEST, &format!("At most {limit} at once")));
        }
        // What fits the limit but not the share takes all of it: it would never pass otherwise.
        let cost = cost.min(self.share);
        let bucket = self.hasher.hash_one(key) % Local::BUCKETS;
        let checked = self.buckets.check_key_n(&bucket, cost).expect("a cost within the share");
        let wait = checked.err()?.wait_time_from(DefaultClock::default().now());
        Some(too_many_requests(POLICIES[0].name, wait.as_secs() + 1))
    }
}

// --- The layer -----------------------------------------------------------------------------------

struct Limiter {
    redis: Redis,
    /// None: let nothing pass while Redis is away.
    local: Option<Local>,
}

impl Limiter {
    fn refusal_without_redis(
        &self,
        error: &RedisError,
        key: &str,
        cost: NonZeroU32,
    ) -> Option<Response> {
        if let Some(local) = &self.local
            && is_away(error)
        {
            eprintln!("limited by this process, as Redis is away: {error}");
            return local.refusal(key, cost);
        }
        eprintln!("denied, as the limiter failed: {error}");
        let mut refusal = problem(StatusCode::SERVICE_UNAVAILABLE, "The rate limiter failed");
        refusal.headers_mut().insert(RETRY_AFTER, OUTAGE_SECONDS.into());
        Some(refusal)
    }
}

/// As a layer of tower, it goes around any service.
async fn limit_rate(
    State(limiter): State<Arc<Limiter>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let Some(cost) = cost_of(&request) else {
        return problem(StatusCode::BAD_REQUEST, "count must be a number from 1");
    };
    let key = key_of(&request, peer);
    let reply = match limiter.redis.decide(&key, cost).await {
        Ok(reply) => reply,
        Err(error) => {
            return match limiter.refusal_without_redis(&error, &key, cost) {
                Some(refusal) => refusal,
                None => next.run(request).await,
            };
        }
    };

    let [allowed, limit, remaining, retry_after, reset_after, window] = reply;
    let policy = POLICIES.iter().find(|policy| i64::from(policy.seconds) * 1000 == window);
    let policy = policy.expect("a window that was asked for").name;
    let (mut response, wait) = if allowed == 1 {
        (next.run(request).await, Some(reset_after))
    } else if retry_after == -1 {
        // More than the whole limit: it can never pass, so nothing tells the client to come back.
        (problem(StatusCode::BAD_REQUEST, &format!("At most {limit} at once")), None)
    } else {
        (too_many_requests(policy, seconds(retry_after)), Some(retry_after))
    };
    let wait = wait.map_or(String::new(), |ms| format!(";t={}", seconds(ms)));
    let headers = response.headers_mut();
    headers.insert(RATE_LIMIT, text(&format!("\"{policy}\";r={remaining}{wait}")));
    headers.insert(RATE_LIMIT_POLICY, text(&policies()));
    response
}

/// Plain digits, and once: what is charged must be what the service goes by.
fn cost_of(request: &Request) -> Option<NonZeroU32> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok()?;
    let mut counts = query.iter().filter(|(name, _)| name == "count").map(|(_, count)| count);
    let Some(count) = counts.next() else {
        return Some(NonZeroU32::MIN);
    };
    let plain = count.len() <= 9
        && !count.starts_with('0')
        && count.bytes().all(|byte| byte.is_ascii_digit())
        && counts.next().is_none();
    plain.then(|| count.parse().ok())?
}

/// The limiter's key. Names and addresses have each a prefix, so that none poses as another.
fn key_of(request: &Request, peer: SocketAddr) -> String {
    // X-User stands for the name that your service has authenticated: as it is, anybody may send
    // any. A hash is short, however long the name is.
    let user = request.headers().get("x-user").filter(|user| !user.is_empty());
    if let Some(user) = user {
        return format!("rl:http:user:{:x}", Bytes::copy_from_slice(&Sha256::digest(user)));
    }
    // Behind a proxy, this is the proxy's.
    match peer.ip().to_canonical() {
        IpAddr::V4(address) => format!("rl:http:address:{address}"),
        // Whoever has one address of a /64 has them all.
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
            format!("rl:http:address:{network}/64")
        }
    }
}

fn policies() -> String {
    let item = |p: &Policy| format!("\"{}\";q={};w={}", p.name, p.units, p.seconds);
    POLICIES.iter().map(item).collect::<Vec<_>>().join(", ")
}

/// Rounded up: who comes back sooner is denied again.
fn seconds(ms: i64) -> u64 {
    ms.unsigned_abs().div_ceil(1000)
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).expect("visible ASCII")
}

fn problem(status: StatusCode, title: &str) -> Response {
    describe(status, json!({"type": "about:blank", "title": title, "status": status.as_u16()}))
}

fn too_many_requests(policy: &str, wait_seconds: u64) -> Response {
    let status = StatusCode::TOO_MANY_REQUESTS;
    let body = json!({
        "type": QUOTA_EXCEEDED,
        "title": "Too many requests",
        "status": status.as_u16(),
        "violated-policies": [policy],
    });
    let mut response = describe(status, body);
    response.headers_mut().insert(RETRY_AFTER, wait_seconds.into());
    response
}

/// An error as RFC 9457 has it.
fn describe(status: StatusCode, problem: Value) -> Response {
    (status, [(CONTENT_TYPE, "application/problem+json")], problem.to_string()).into_response()
}

fn setting(name: &str, otherwise: &str) -> String {
    env::var(name).unwrap_or_else(|_| otherwise.to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timeout = Duration::from_millis(setting("REDIS_TIMEOUT_MS", "250").parse()?);
    let local = match setting("FAIL", "open").as_str() {
        "open" => Some(Local::new(setting("PROCESSES", "1").parse()?)),
        "closed" => None,
        // A typing error must not switch the limiter off.
        other => return Err(format!("FAIL must be open or closed, not {other}").into()),
    };
    let redis = Redis::new(&setting("REDIS_URL", "redis://127.0.0.1:6379"), timeout)?;
    let service = axum::Router::new()
        .route("/", get(async || "hello world\n"))
        .route("/messages", post(async || "sent\n"))
        .layer(from_fn_with_state(Arc::new(Limiter { redis, local }), limit_rate))
        .into_make_service_with_connect_info::<SocketAddr>();
    let host = setting("HOST", "127.0.0.1");
    let port: u16 = setting("PORT", "8000").parse()?;
    axum::serve(tokio::net::TcpListener::bind((host.as_str(), port)).await?, service).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_local_limiter_keeps_no_more_than_its_buckets() {
        let local = Local::new(NonZeroU32::MIN);
        for client in 0..2 * Local::BUCKETS {
            local.refusal(&client.to_string(), NonZeroU32::MIN);
        }
        assert!(local.buckets.len() as u64 > Local::BUCKETS / 2);
        assert!(local.buckets.len() as u64 <= Local::BUCKETS);
    }
}
