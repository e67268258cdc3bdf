"""A client of redis-py that is spoken to in lines, and asks Sentinels for the primary: a command in, its
integers out, or the name of the error that the library raised."""

import sys

from redis.exceptions import ConnectionError, ReadOnlyError, TimeoutError
from redis.sentinel import Sentinel

client = Sentinel([("127.0.0.1", int(port)) for port in sys.argv[1:]]).master_for("limits")
for line in sys.stdin:
    try:
        print(*client.execute_command(*line.split()), flush=True)
    except (ConnectionError, ReadOnlyError, TimeoutError) as error:
        print(type(error).__name__, flush=True)
