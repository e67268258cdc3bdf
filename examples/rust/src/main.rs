//! A service whose clients may each send 10 messages a minute and 30 a day.
//!
//!     cargo run
//!
//! GET / costs one unit, and POST /messages?count=3 costs three.

use std::{collections::HashMap, env, net::SocketAddr, num::NonZeroU32, sync::Arc, time::Duration};

use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE, header::RETRY_AFTER};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use serde_json::{Value, json};

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
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

struct Limiter {
    redis: ConnectionManager,
    /// Limits while Redis gives no answer, each process for itself. None: let nothing pass then.
    local: Option<DefaultKeyedRateLimiter<String>>,
}

impl Limiter {
    fn new(url: &str, timeout: Duration, fail_closed: bool) -> redis::RedisResult<Limiter> {
        // A limiter that hangs must not hang the service. Nor may it wait for a server that is away:
        // a request fails at once, and the connection is tried again behind it. The manager resends
        // nothing, as must be: a command whose reply was lost may have been charged.
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_number_of_retries(0);
        let client = redis::Client::open(url)?;
        let units = NonZeroU32::new(POLICIES[0].units).expect("a limit above 0");
        let local = RateLimiter::keyed(Quota::per_minute(units));
        Ok(Limiter {
            redis: ConnectionManager::new_lazy_with_config(client, config)?,
            local: (!fail_closed).then_some(local),
        })
    }

    /// The reply of RL.SLIDE: allowed, limit, remaining, retry_after, reset_after, window.
    async fn decide(&self, client: &str, cost: NonZeroU32) -> redis::RedisResult<[i64; 6]> {
        let mut command = redis::cmd("RL.SLIDE");
        command.arg(format!("rl:{client}"));
        for policy in &POLICIES {
            command.arg(format!("{}s", policy.seconds)).arg(policy.units);
        }
        command.arg("COST").arg(cost.get());
        command.query_async(&mut self.redis.clone()).await
    }

    fn refuse_without_redis(&self, client: String, cost: NonZeroU32) -> Option<Response> {
        let Some(local) = &self.local else {
            let title = "The rate limiter cannot be reached";
            return Some(problem(StatusCode::SERVICE_UNAVAILABLE, title));
        };
        if local.len() > 100_000 {
            local.retain_recent(); // forgets who has not come for a while
        }
        match local.check_key_n(&client, cost) {
            Ok(Ok(())) => None,
            Ok(Err(not_until)) => {
                let wait = not_until.wait_time_from(DefaultClock::default().now());
                Some(too_many_requests(POLICIES[0].name, wait.as_secs() + 1))
            }
            Err(_) => Some(problem(StatusCode::PAYLOAD_TOO_LARGE, "Too many at once")),
        }
    }
}

/// As a layer of tower, it goes around any service.
async fn limit_rate(
    State(limiter): State<Arc<Limiter>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    // Checked here, because an argument that Redis refuses would count as a limiter that failed.
    let Some(cost) = cost_of(&request) else {
        return problem(StatusCode::BAD_REQUEST, "count must be a number from 1");
    };
    // A real service takes the name that it has authenticated. Behind a proxy, the peer is the proxy.
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok());
    let client = user.map_or_else(|| peer.ip().to_string(), str::to_owned);

    let reply = match limiter.decide(&client, cost).await {
        Ok(reply) => reply,
        Err(error) => {
            eprintln!("the limiter failed: {error}");
            return match limiter.refuse_without_redis(client, cost) {
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
        (problem(StatusCode::PAYLOAD_TOO_LARGE, &format!("At most {limit} at once")), None)
    } else {
        (too_many_requests(policy, seconds(retry_after)), Some(retry_after))
    };
    let wait = wait.map_or(String::new(), |ms| format!(";t={}", seconds(ms)));
    let headers = response.headers_mut();
    headers.insert(RATE_LIMIT, text(&format!("\"{policy}\";r={remaining}{wait}")));
    headers.insert(RATE_LIMIT_POLICY, text(&policies()));
    response
}

fn cost_of(request: &Request) -> Option<NonZeroU32> {
    let query = Query::<HashMap<String, String>>::try_from_uri(request.uri()).ok()?;
    query.get("count").map_or(Some(NonZeroU32::MIN), |count| count.parse().ok())
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
    let url = setting("REDIS_URL", "redis://127.0.0.1:6379");
    let limiter = Arc::new(Limiter::new(&url, timeout, setting("FAIL", "open") == "closed")?);
    let service = axum::Router::new()
        .route("/", get(async || "hello world\n"))
        .route("/messages", post(async || "sent\n"))
        .layer(from_fn_with_state(limiter, limit_rate))
        .into_make_service_with_connect_info::<SocketAddr>();
    let address = format!("127.0.0.1:{}", setting("PORT", "8000"));
    axum::serve(tokio::net::TcpListener::bind(address).await?, service).await?;
    Ok(())
}
