"""A FastAPI service whose clients may each send 10 messages a minute and 30 a day.

    pip install -r requirements.txt
    uvicorn server:app

GET / costs one unit, and POST /messages?count=3 costs three.
"""

import logging
import os
import re

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

log = logging.getLogger("uvicorn.error")

# Units and seconds. Both windows go into one call, so a request is charged to both or to none.
POLICIES = {"minute": (10, 60), "day": (30, 86_400)}
WINDOWS = [word for units, seconds in POLICIES.values() for word in (f"{seconds}s", units)]
POLICY_OF_WINDOW = {seconds * 1000: name for name, (_, seconds) in POLICIES.items()}
POLICY_HEADER = ", ".join(f'"{name}";q={units};w={s}' for name, (units, s) in POLICIES.items())

FAIL_CLOSED = os.environ.get("FAIL", "open") == "closed"
TIMEOUT = int(os.environ.get("REDIS_TIMEOUT_MS", "250")) / 1000

redis = Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    # A limiter that hangs must not hang the service.
    socket_connect_timeout=TIMEOUT,
    socket_timeout=TIMEOUT,
    # redis-py resends a command whose reply was lost, three times unless told otherwise. The first
    # may have been charged, so the second would be charged again.
    retry=Retry(NoBackoff(), 0),
)
app = FastAPI()


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
    # Checked here, because an argument that Redis refuses would count as a limiter that failed,
    # and with FAIL=open let the request pass.
    cost = request.query_params.get("count", "1")
    if not re.fullmatch("[1-9][0-9]{0,8}", cost):
        return problem(400, "count must be a number from 1")

    # A real service takes the name that it has authenticated. Behind a proxy, the peer is the proxy.
    client = request.headers.get("x-user") or request.client.host
    try:
        reply = await redis.execute_command("RL.SLIDE", f"rl:{client}", *WINDOWS, "COST", cost)
    except RedisError as error:
        log.warning("the limiter failed: %r", error)
        if FAIL_CLOSED:
            return problem(503, "The rate limiter cannot be reached")
        return await call_next(request)

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
        return problem(413, f"At most {limit} at once", headers)
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
