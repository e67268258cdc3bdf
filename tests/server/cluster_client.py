"""A cluster client of redis-py that is spoken to in lines: a command in, its integers out, or the name of
the error that the library raised. It follows the cluster, and sends nothing twice."""

import sys

from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisError
from redis.retry import Retry

nodes = [ClusterNode("127.0.0.1", int(port)) for port in sys.argv[1:]]
client = RedisCluster(startup_nodes=nodes, retry=Retry(NoBackoff(), 0))
for line in sys.stdin:
    try:
        answer = client.execute_command(*line.split())
        print(*(answer if isinstance(answer, list) else [answer]), flush=True)
    except RedisError as error:
        print(type(error).__name__, flush=True)
