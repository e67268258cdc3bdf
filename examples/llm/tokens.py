"""Limits the tokens that each user may spend on a language model.

    python tokens.py USER ESTIMATE USED    # a call that was thought to take ESTIMATE, and took USED

How many tokens a call takes is known only afterwards. So an estimate is reserved before the call;
what was not used is given back, and what was used beyond it is charged whatever the limit says.
"""

import json
import logging
import os
import sys
from collections.abc import Callable

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

# Tokens. All three windows are in one call: a reservation fits all of them, or takes from none.
WINDOWS = ("1s", 2_000, "60s", 20_000, "1d", 100_000)

TIMEOUT = int(os.environ.get("REDIS_TIMEOUT_MS", "250")) / 1000

redis = Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    socket_connect_timeout=TIMEOUT,
    socket_timeout=TIMEOUT,
    # Neither a charge nor a refund may be made twice, so resend nothing that got no reply, as
    # redis-py does in some of its set-ups.
    retry=Retry(NoBackoff(), 0),
)


class Denied(Exception):
    """`retry_after_ms` is None if it can never pass: the estimate is above a limit."""

    def __init__(self, window_ms: int, retry_after_ms: int | None):
        super().__init__(f"denied by the window of {window_ms} ms")
        self.window_ms = window_ms
        self.retry_after_ms = retry_after_ms


def reserve(key: str, estimate: int) -> None:
    # An error passes to the caller: tokens cost money, so without a limiter there are none.
    reply = redis.execute_command("RL.SLIDE", key, *WINDOWS, "COST", estimate)
    allowed, _limit, _remaining, retry_after, _reset_after, window = reply
    if allowed != 1:
        raise Denied(window, None if retry_after == -1 else retry_after)


def settle(key: str, estimate: int, used: int) -> None:
    """Makes of the reservation what was used."""
    try:
        if used < estimate:
            # It takes back the newest units of the key. If another call was charged meanwhile,
            # those are that one's, and the sum is right all the same.
            redis.execute_command("RL.REFUND", key, estimate - used)
        elif used > estimate:
            # They are spent, whatever the limits say. The next reservation waits the longer.
            redis.execute_command("RL.SLIDE", key, *WINDOWS, "COST", used - estimate, "FORCE")
    except RedisError as error:
        # The answer is paid for, so it must not be lost for this. What is not given back leaves
        # with its windows; what is not charged is in this line.
        logging.error("%s: %d reserved and %d used, not settled: %r", key, estimate, used, error)


def ask(user: str, estimate: int, model: Callable[[], tuple[str, int]]) -> tuple[str, int]:
    """Calls a model, which answers a text, and how many tokens it took."""
    key = f"rl:tokens:{user}"
    reserve(key, estimate)
    try:
        text, used = model()
    except Exception:
        # Whoever stops the program leaves the reservation as it is: the call may go on, and cost.
        settle(key, estimate, 0)  # say what yours charges for a call that fails
        raise
    settle(key, estimate, used)
    return text, used


def main(user: str, estimate: int, used: int) -> None:
    try:
        text, used = ask(user, estimate, lambda: call_model(used))
        print(json.dumps({"text": text, "used": used}))
    except Denied as denied:
        print(json.dumps({"window_ms": denied.window_ms, "retry_after_ms": denied.retry_after_ms}))
        sys.exit(1)


def call_model(used: int) -> tuple[str, int]:
    """Stands for the model that you call. Fails where `used` is negative."""
    if used < 0:
        raise ConnectionError("the model failed")
    return "Hello!", used


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
