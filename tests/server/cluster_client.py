"""A cluster client of redis-py that is spoken to in lines: a command in, its integers out."""

import sys

from redis.cluster import ClusterNode, RedisCluster

nodes = [ClusterNode("127.0.0.1", int(port)) for port in sys.argv[1:]]
client = RedisCluster(startup_nodes=nodes)
for line in sys.stdin:
    answer = client.execute_command(*line.split())
    print(*(answer if isinstance(answer, list) else [answer]), flush=True)
