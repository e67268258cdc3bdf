"""Calls a third party that allows two calls a second, once for each line of its input.

    printf 'a\nb\nc\n' | python worker.py https://api.example.com/notify

All workers share the limit, because they share the key. Nobody waits behind this program, so it does
not decide whether to let pass or not when Redis cannot be reached: it waits until it can be.
"""

import logging
import os
import sys
import time
import urllib.request

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

KEY = "rl:third-party"
WINDOWS = ("1s", 2)
# How long a worker waits for a server that cannot be reached.
PAUSE_SECONDS = 1

TIMEOUT = int(os.environ.get("REDIS_TIMEOUT_MS", "250")) / 1000

redis = Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    socket_connect_timeout=TIMEOUT,
    socket_timeout=TIMEOUT,
    # Otherwise redis-py resends what may have been charged already.
    retry=Retry(NoBackoff(), 0),
)


def wait_for_turn() -> None:
    """Returns when a call may be made, and has been charged."""
    while True:
        try:
            reply = redis.execute_command("RL.SLIDE", KEY, *WINDOWS)
        except RedisError as error:
            # If only the reply was lost, a turn is lost with it. That is the safe side.
            logging.warning("the limiter failed: %r", error)
            time.sleep(PAUSE_SECONDS)
            continue
        allowed, _limit, _remaining, retry_after, _reset_after, _window = reply
        if allowed == 1:
            return
        if retry_after == -1:
            raise ValueError("one call costs more than the whole limit")
        # Exact, and yet no promise: another worker may have been quicker. Then this asks again.
        time.sleep(retry_after / 1000)


def main(url: str) -> None:
    for line in sys.stdin:
        wait_for_turn()
        job = urllib.request.Request(url, data=line.rstrip("\n").encode())
        with urllib.request.urlopen(job, timeout=10) as response:
            print(line.rstrip("\n"), response.status, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
