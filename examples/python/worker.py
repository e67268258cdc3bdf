"""Calls a third party that allows two calls a second, once for each line of its input.

    printf 'a\nb\nc\n' | python worker.py https://api.example.com/notify

All workers share the limit, because they share the key. Nobody waits behind this program, so when
Redis is away it does not decide whether to let pass or not: it waits.
"""

import logging
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid

from redis import Redis, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

KEY = "rl:third-party"
WINDOWS = ("1s", 2)
# How long a worker waits for whoever is away and does not say for how long.
PAUSE_SECONDS = 1
# At most so much longer: those who wait together should not come back together.
JITTER_SECONDS = 0.1
# The third party is busy, or behind a proxy that does not reach it.
AWAY = {429, 502, 503, 504}

TIMEOUT = int(os.environ.get("REDIS_TIMEOUT_MS", "250")) / 1000

redis = Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    socket_connect_timeout=TIMEOUT,
    socket_timeout=TIMEOUT,
    # Resend nothing that may have been charged already, as redis-py does in some of its set-ups.
    retry=Retry(NoBackoff(), 0),
)


def is_away(error: exceptions.RedisError) -> bool:
    """Whether Redis cannot be asked just now. All else is a mistake, which no waiting mends."""
    # Mistakes, though redis-py makes them ConnectionErrors.
    if isinstance(error, (exceptions.AuthenticationError, exceptions.AuthorizationError)):
        return False
    away = (
        exceptions.ConnectionError,  # LOADING is one, too
        exceptions.TimeoutError,
        exceptions.ReadOnlyError,
        exceptions.ClusterDownError,  # MASTERDOWN is one, too
    )
    return isinstance(error, away) or str(error).startswith(("NOREPLICAS ", "MISCONF ", "BUSY "))


def wait(seconds: float) -> None:
    time.sleep(seconds + random.uniform(0, JITTER_SECONDS))


def wait_for_turn() -> None:
    """Returns when a call may be made, and has been charged."""
    while True:
        try:
            reply = redis.execute_command("RL.SLIDE", KEY, *WINDOWS)
        except exceptions.RedisError as error:
            if not is_away(error):
                raise
            # If only the reply was lost, a turn is lost with it. That is the safe side.
            logging.warning("Redis is away: %r", error)
            wait(PAUSE_SECONDS)
            continue
        allowed, _limit, _remaining, retry_after, _reset_after, _window = reply
        if allowed == 1:
            return
        if retry_after == -1:
            raise ValueError("one call costs more than the whole limit")
        # Exact, and yet no promise: another worker may have been quicker. Then this asks again.
        wait(retry_after / 1000)


def call(url: str, job: str) -> int:
    """Calls until the third party answers for good, and returns the status."""
    # If an answer is lost, the job may have been done. By this the third party can tell.
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    request = urllib.request.Request(url, data=job.encode(), headers=headers)
    while True:
        wait_for_turn()  # each try is a call
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status
        except urllib.error.HTTPError as error:
            if error.code not in AWAY:
                return error.code
            logging.warning("the third party is away: %r", error)
            retry_after = error.headers.get("Retry-After", "")
            wait(int(retry_after) if retry_after.isdecimal() else PAUSE_SECONDS)
        except OSError as error:  # no connection, or no answer
            logging.warning("the third party is away: %r", error)
            wait(PAUSE_SECONDS)


def main(url: str) -> None:
    for line in sys.stdin:
        job = line.rstrip("\n")
        print(job, call(url, job), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
