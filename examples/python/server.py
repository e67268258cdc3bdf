"""A FastAPI service whose clients may each send 10 messages a minute and 30 a day.

    pip install -r requirements.txt
    python server.py

GET / costs one unit, and POST /messages?count=3 costs three.
"""

import hashlib
import ipaddress
import logging
import os
import re

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

log = logging.getLogger("uvicorn.error")

# Units and seconds. Both windows go into one call, so a request is charged to both or to none.
POLICIES = {"minute": (10, 60), "day": (30, 86_400)}
WINDOWS = [word for units, seconds in POLICIES.values() for word in (f"{seconds}s", units)]
POLICY_OF_WINDOW = {seconds * 1000: name for name, (_, seconds) in POLICIES.items()}
POLICY_HEADER = ", ".join(f'"{name}";q={units};w={s}' for name, (units, s) in POLICIES.items())

# Any other word stops the program here: a typing error must not switch the limiter off.
FAIL_CLOSED = {"open": False, "closed": True}[os.environ.get("FAIL", "open")]
TIMEOUT = int(os.environ.get("REDIS_TIMEOUT_MS", "250")) / 1000
# When to come back if the limiter gives no answer.
OUTAGE_SECONDS = 5

redis = Redis.from_pool(
    BlockingConnectionPool.from_url(
        os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
        # A limiter that hangs must not hang the service. Requests beyond so many connections wait
        # for a free one, and no longer than for a reply.
        max_connections=32,
        timeout=TIMEOUT,
        socket_connect_timeout=TIMEOUT,
        socket_timeout=TIMEOUT,
        # A command whose reply was lost may have been charged, and sent again it would be charged
        # again. redis-py resends up to three times in some of its set-ups, so say that it must not.
        retry=Retry(NoBackoff(), 0),
    )
)
app = FastAPI()


def is_away(error: exceptions.RedisError) -> bool:
    """Whether Redis cannot be asked just now: not reached, too slow, or in no state to be charged.

    All else is for you to mend: a right, a key of another type, memory that is used up. It must not
    let anybody pass.
    """
    # Mistakes, though redis-py makes them ConnectionErrors.
    mistakes = (exceptions.AuthenticationError, exceptions.AuthorizationError)
    if isinstance(error, mistakes) or str(error) == "max number of clients reached":
        return False
    away = (
        exceptions.ConnectionError,  # LOADING is one, too
        exceptions.TimeoutError,
        exceptions.ReadOnlyError,
        exceptions.ClusterDownError,  # MASTERDOWN is one, too
    )
    return isinstance(error, away) or str(error).startswith(("NOREPLICAS ", "MISCONF ", "BUSY "))


def key_of(request: Request) -> str:
    """The limiter's key. Names and addresses have each a prefix, so that none poses as another."""
    # X-User stands for the name that your service has authenticated: as it is, anybody may send
    # any. A hash is short, however long the name is.
    if user := request.headers.get("x-user"):
        return f"rl:http:user:{hashlib.sha256(user.encode('latin-1')).hexdigest()}"
    if request.client is None:
        return "rl:http:address:none"  # uvicorn listens on a Unix socket
    # Behind a proxy, this is the proxy's.
    address = ipaddress.ip_address(request.client.host)
    if address.version == 6:
        # Whoever has one address of a /64 has them all.
        address = address.ipv4_mapped or ipaddress.IPv6Network((int(address), 64), strict=False)
    return f"rl:http:address:{address}"


def problem(status: int, title: str, headers: dict[str, str] | None = None, **more) -> Response:
    """An error as RFC 9457 has it."""
    return JSONResponse(
        {"type": "about:blank", "title": title, "status": status, **more},
        status,
        headers,
        media_type="application/problem+json",
    )


@app.middleware("http")
async def limit_rate(request: Request, call_next) -> Response:
    # Plain digits, and once: what is charged must be what the service goes by.
    costs = request.query_params.getlist("count") or ["1"]
    if len(costs) != 1 or not re.fullmatch("[1-9][0-9]{0,8}", costs[0]):
        return problem(400, "count must be a number from 1")

    call = ("RL.SLIDE", key_of(request), *WINDOWS, "COST", costs[0])
    try:
        reply = await redis.execute_command(*call)
    except exceptions.RedisError as error:
        if is_away(error) and not FAIL_CLOSED:
            log.warning("let pass, as Redis is away: %r", error)
            return await call_next(request)
        log.error("denied, as the limiter failed: %r", error)
        return problem(503, "The rate limiter failed", {"Retry-After": str(OUTAGE_SECONDS)})

    allowed, limit, remaining, retry_after, reset_after, window = reply
    policy = POLICY_OF_WINDOW[window]
    headers = {"RateLimit-Policy": POLICY_HEADER, "RateLimit": f'"{policy}";r={remaining}'}
    if allowed == 1:
        headers["RateLimit"] += f";t={seconds(reset_after)}"
        response = await call_next(request)
        response.headers.update(headers)
        return response
    if retry_after == -1:
        # More than the whole limit: it can never pass, so nothing tells the client to come back.
        return problem(400, f"At most {limit} at once", headers)
    headers["RateLimit"] += f";t={seconds(retry_after)}"
    headers["Retry-After"] = str(seconds(retry_after))
    return problem(
        429,
        "Too many requests",
        headers,
        type="https://iana.org/assignments/http-problem-types#quota-exceeded",
        **{"violated-policies": [policy]},
    )


def seconds(ms: int) -> int:
    """Rounded up: who comes back sooner is denied again."""
    return -(-ms // 1000)


@app.get("/")
async def hello() -> dict:
    return {"hello": "world"}


@app.post("/messages")
async def send(count: int = 1) -> dict:
    return {"sent": count}


if __name__ == "__main__":
    uvicorn.run(
        app,
        host=os.environ.get("HOST", "127.0.0.1"),
        port=int(os.environ.get("PORT", "8000")),
        # Otherwise uvicorn believes the X-Forwarded-For of whoever connects from this machine.
        # Behind a proxy, turn it on, with the proxy's address in forwarded_allow_ips.
        proxy_headers=False,
    )
