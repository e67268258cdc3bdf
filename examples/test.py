"""Starts every example against a server of its own, and calls it over HTTP.

    make test-examples                # all of them
    make test-examples ONLY=Worker    # one class of them
"""

import contextlib
import functools
import hashlib
import http.client
import http.server
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
BUILT = pathlib.Path(os.environ["CARGO_TARGET_DIR"]).resolve() / "examples"
sys.path.insert(0, str(BUILT / "python"))

import redis  # noqa: E402  (it is kept in the build folder)

# Long enough for a busy machine. Nothing waits for it to pass but what has failed.
DEADLINE_SECONDS = 60
# Where something may be fetched and built first.
BUILD_SECONDS = 600


def until(what, done, seconds=DEADLINE_SECONDS):
    """Asks again and again until `done` answers something, and returns that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := done():
            return answer
        time.sleep(0.02)
    raise TimeoutError(what)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class RedisServer:
    """A server with the module, that can be killed and started again on its port."""

    def __init__(self):
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.client = redis.Redis(port=self.port)
        self.directory = tempfile.mkdtemp()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [os.environ["REDIS_SERVER"], "--port", str(self.port), "--bind", "127.0.0.1"]
            + ["--dir", self.directory, "--save", "", "--loadmodule", os.environ["RL_MODULE"]],
            stdout=subprocess.DEVNULL,
        )
        until("redis-server", self.answers)

    def answers(self):
        assert self.process.poll() is None, "redis-server did not start"
        try:
            return self.client.ping()
        except redis.RedisError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.client.close()
        self.kill()
        shutil.rmtree(self.directory)

    def charged(self, key):
        """The units that a limiter holds: its newest member begins with the total."""
        newest = self.client.zrange(key, -1, -1)
        return int(newest[0][1:].split(b"+")[0]) if newest else 0


class Proxy:
    """Stands between an example and the server, and does to replies what a network may."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.lose_next = False  # the reply to the next charge, and its connection with it
        self.answer = None  # what is answered to charges instead
        self.deliver = threading.Event()  # clear: replies to charges wait
        self.deliver.set()
        self.mute = False  # nothing is answered on new connections
        self.silent = set()  # the connections on which nothing is answered
        self.charges = []  # as they were sent
        self.accepted = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets = [self.listener]
        self.threads = []
        self.spawn(self.serve)

    def spawn(self, target, *args):
        thread = threading.Thread(target=target, args=args)
        self.threads.append(thread)
        thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(("127.0.0.1", self.upstream))
            self.accepted.append(client)
            if self.mute:
                self.silent.add(client)
            self.sockets += [client, server]
            charging = threading.Event()
            self.spawn(self.requests, client, server, charging)
            self.spawn(self.replies, server, client, charging)

    def requests(self, client, server, charging):
        while data := receive(client):
            if charges := data.count(b"RL.SLIDE"):
                charging.set()
                self.charges += [client] * charges
            server.sendall(data)
        hang_up(server)

    def replies(self, server, client, charging):
        while data := receive(server):
            if client in self.silent:
                continue
            if charging.is_set():
                charging.clear()
                if self.lose_next:
                    self.lose_next = False
                    break
                self.deliver.wait()
                data = self.answer or data
            try:
                client.sendall(data)
            except OSError:
                break  # it did not wait
        hang_up(client)
        hang_up(server)

    def fall_silent(self):
        """Keeps all connections and takes new ones, and answers on none of them."""
        self.mute = True
        self.silent.update(self.accepted)

    def speak(self):
        """Answers again, on new connections alone: nobody closes the others."""
        self.mute = False

    def close(self):
        self.deliver.set()
        hang_up(self.listener)
        self.threads[0].join()  # so there will be no more sockets
        for end in self.sockets:
            hang_up(end)
        for thread in self.threads:
            thread.join()
        for end in self.sockets:
            end.close()


def listens(process, log, host, port):
    if process.poll() is not None:
        log.seek(0)
        raise RuntimeError(log.read().decode())
    try:
        socket.create_connection((host, port)).close()
        return True
    except ConnectionRefusedError:
        return False


def receive(end):
    try:
        return end.recv(65536)
    except OSError:
        return b""


def hang_up(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # the other side was first


def key_of(user):
    """The key by which a service limits this name."""
    return f"rl:http:user:{hashlib.sha256(user.encode('latin-1')).hexdigest()}"


class Service:
    """A running example."""

    def __init__(self, command, redis_url, HOST="127.0.0.1", **settings):
        self.host = HOST
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command,
            env=environment(HOST=HOST, PORT=str(self.port), REDIS_URL=redis_url, **settings),
            cwd=HERE,
            stdout=self.log,
            stderr=self.log,
        )
        try:
            until(command, lambda: listens(self.process, self.log, self.host, self.port))
        except BaseException:
            self.close()
            raise

    def ask(self, user=None, method="GET", path="/", timeout=DEADLINE_SECONDS, headers=()):
        headers = dict(headers) if user is None else {"X-User": user, **dict(headers)}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())

    def send(self, user, count):
        return self.ask(user, "POST", f"/messages?count={count}")

    def close(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.body = body
        self.headers = headers

    def __getitem__(self, header):
        return self.headers[header]

    def problem(self):
        assert self["Content-Type"].split(";")[0] == "application/problem+json", self.headers
        problem = json.loads(self.body)
        assert problem["status"] == self.status, problem
        return problem


def environment(**settings):
    python = {"PYTHONPATH": str(BUILT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **python, **settings}


# What a server answers that cannot be charged just now, and what is a mistake.
OUTAGES = (
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "NOREPLICAS Not enough good replicas to write.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "CLUSTERDOWN The cluster is down",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist.",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
)
MISTAKES = (
    "OOM command not allowed when used memory > 'maxmemory'.",
    "NOPERM this user has no permissions to run the 'rl.slide' command",
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "ERR max number of clients reached",
    "ERR unknown command 'RL.SLIDE', with args beginning with: 'rl:http:address:127.0.0.1'",
    "ERR window '60' is 60 milliseconds: write 60ms, or 60s for seconds",
    "ERR the sorted set at this key was not written by RL.SLIDE: use another key, or delete it",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
)


class HttpExample:
    """What every service must do. Each client has 10 units a minute and 30 a day."""

    command = []
    # How many it may have to Redis.
    connections = 1

    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer()
        cls.addClassCleanup(cls.server.close)
        cls.service = cls.start(cls.server.url)
        cls.limited(cls.service)

    @classmethod
    def start(cls, redis_url, REDIS_TIMEOUT_MS="30000", **settings):
        service = Service(cls.command, redis_url, REDIS_TIMEOUT_MS=REDIS_TIMEOUT_MS, **settings)
        cls.addClassCleanup(service.close)
        return service

    def start_behind_proxy(self, **settings):
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        service = self.start(proxy.url, **settings)
        self.limited(service)
        return proxy, service

    @classmethod
    def limited(cls, service):
        """Waits until the service reaches its limiter."""
        until("a limited reply", lambda: service.ask("somebody")["RateLimit"])
        cls.server.client.delete(key_of("somebody"))

    def check_failed(self, reply):
        self.assertEqual(reply.status, 503)
        self.assertEqual(reply["Retry-After"], "5")
        self.assertIsNone(reply["RateLimit"])
        reply.problem()

    def check_let_pass(self, reply):
        """No header says that it was counted."""
        self.assertEqual((reply.status, reply["RateLimit"]), (200, None))

    def test_the_headers_count_down(self):
        for remaining in range(9, -1, -1):
            reply = self.service.ask("count")
            self.assertEqual(reply.status, 200)
            self.assertEqual(reply["RateLimit-Policy"], '"minute";q=10;w=60, "day";q=30;w=86400')
            self.assertRegex(reply["RateLimit"], rf'^"minute";r={remaining};t=60$')
            self.assertIsNone(reply["Retry-After"])
        denied = self.service.ask("count")
        self.assertEqual(denied.status, 429)
        self.assertEqual(denied["RateLimit-Policy"], '"minute";q=10;w=60, "day";q=30;w=86400')
        self.assertEqual(denied["RateLimit"], f'"minute";r=0;t={denied["Retry-After"]}')
        self.assertIn(int(denied["Retry-After"]), range(1, 61))
        self.assertEqual(denied.problem()["violated-policies"], ["minute"])
        self.assertEqual(self.server.charged(key_of("count")), 10)

    def test_as_many_pass_at_once_as_may(self):
        with ThreadPoolExecutor(25) as pool:
            statuses = list(pool.map(lambda _: self.service.ask("crowd").status, range(25)))
        self.assertEqual(sorted(statuses), [200] * 10 + [429] * 15)

    def test_the_day_binds_when_the_minute_is_free(self):
        seconds, _ = self.server.client.time()
        for minutes_ago in (6, 4, 2):
            then = (seconds - 60 * minutes_ago) * 1000
            charge = ("RL.SLIDE", key_of("day"), "60s", 10, "86400s", 30, "COST", 9, "AT", then)
            self.assertEqual(self.server.client.execute_command(*charge)[0], 1)
        self.assertRegex(self.service.send("day", 3)["RateLimit"], '^"day";r=0;t=[0-9]+$')
        denied = self.service.ask("day")
        self.assertEqual(denied.status, 429)
        self.assertEqual(denied.problem()["violated-policies"], ["day"])
        # The first nine leave six minutes before the day is over.
        self.assertIn(int(denied["Retry-After"]), range(1, 86400 - 6 * 60 + 1))
        self.assertGreater(int(denied["Retry-After"]), 60)

    def test_a_request_takes_its_cost(self):
        self.assertIn(";r=7;", self.service.send("cost", 3)["RateLimit"])
        self.assertEqual(self.service.send("cost", 8).status, 429)
        self.assertIn(";r=0;", self.service.send("cost", 7)["RateLimit"])

    def test_what_can_never_pass_is_not_told_to_come_back(self):
        reply = self.service.send("never", 11)
        self.assertEqual(reply.status, 400)
        self.assertIsNone(reply["Retry-After"])
        self.assertEqual(reply["RateLimit"], '"minute";r=10')
        self.assertEqual(reply.problem()["title"], "At most 10 at once")
        self.assertEqual(self.server.charged(key_of("never")), 0)

    def test_a_cost_is_plain_digits_and_said_once(self):
        numbers = ("0", "-1", "1.5", "1e3", "99999999999999999999", "+5", "%2B5", "007", "0x5")
        others = ("", "x", "%205", "5%20", "%EF%BC%95", "%zz", "1&count=1", "1&count=9")
        for count in numbers + others:
            reply = self.service.send("arguments", count)
            self.assertEqual(reply.status, 400, count)
            reply.problem()
        self.assertEqual(self.server.charged(key_of("arguments")), 0)

    # --- Whose limit ---

    def test_a_name_of_any_length_has_a_key_of_its_own(self):
        for user in ("127.0.0.1", "third-party", "caf\xe9", "a{b}", "x" * 4000):
            self.assertEqual(self.service.ask(user).status, 200)
            self.assertEqual(self.server.charged(key_of(user)), 1, user)

    def test_without_a_name_the_address_of_the_connection_counts(self):
        self.service.ask()
        self.service.ask("")
        self.service.ask(headers={"X-Forwarded-For": "192.0.2.7", "Forwarded": "for=192.0.2.7"})
        self.assertEqual(self.server.charged("rl:http:address:127.0.0.1"), 3)

    def test_an_ipv6_address_counts_as_its_network(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        self.start(self.server.url, HOST="::1").ask()
        self.assertEqual(self.server.charged("rl:http:address:::/64"), 1)

    # --- When the limiter does not answer ---

    def test_a_killed_server_and_its_return(self):
        closed = self.start(self.server.url, FAIL="closed")
        for service in (self.service, closed):
            self.limited(service)
        self.server.kill()
        self.check_open(self.service)
        for _ in range(15):
            self.check_failed(closed.ask("outage"))
        self.server.start()
        for service in (self.service, closed):
            self.limited(service)
        self.assertEqual(self.server.charged(key_of("outage")), 0)
        self.assertEqual([closed.ask("back").status for _ in range(11)], [200] * 10 + [429])

    def check_open(self, service):
        """Everything passes."""
        for _ in range(15):
            self.check_let_pass(service.ask("outage"))

    def test_only_an_outage_opens(self):
        proxy, service = self.start_behind_proxy()
        for outage in OUTAGES:
            proxy.answer = f"-{outage}\r\n".encode()
            self.check_let_pass(service.ask(outage))
        for mistake in MISTAKES:
            proxy.answer = f"-{mistake}\r\n".encode()
            self.check_failed(service.ask(mistake))
        proxy.answer = None
        self.limited(service)

    def test_a_key_of_another_type_lets_nobody_pass(self):
        self.server.client.set(key_of("taken"), "x")
        self.check_failed(self.service.ask("taken"))

    def test_memory_that_is_used_up_lets_nobody_pass(self):
        self.service.send("spent", 10)
        self.addCleanup(self.server.client.config_set, "maxmemory", 0)
        self.server.client.config_set("maxmemory", 1)
        self.check_failed(self.service.ask("stranger"))
        self.assertEqual(self.service.ask("spent").status, 429)

    def test_a_missing_right_lets_nobody_pass(self):
        set_default = ("ACL", "SETUSER", "default")
        self.addCleanup(self.server.client.execute_command, *set_default, "+@all")
        self.server.client.execute_command(*set_default, "-rl.slide")
        self.check_failed(self.service.ask("anybody"))

    def test_a_wrong_password_lets_nobody_pass_until_it_is_right(self):
        service = self.start(self.server.url.replace("//", "//service:secret@"))
        for _ in range(5):
            self.check_failed(service.ask("anybody"))
        rights = ("on", ">secret", "~*", "+@all")
        self.server.client.execute_command("ACL", "SETUSER", "service", *rights)
        self.limited(service)

    def test_a_misspelt_switch_is_no_switch(self):
        with self.assertRaisesRegex(RuntimeError, "close"):
            self.start(self.server.url, FAIL="close")

    def test_a_lost_reply_is_not_charged_twice(self):
        proxy, service = self.start_behind_proxy()
        proxy.lose_next = True
        self.check_let_pass(service.ask("lost"))
        self.assertFalse(proxy.lose_next)
        # A client that resends does so on its next connection, so that is waited for.
        self.limited(service)
        self.assertEqual(self.server.charged(key_of("lost")), 1)

    def test_a_late_reply_is_not_waited_for_nor_taken_for_another(self):
        proxy, service = self.start_behind_proxy(REDIS_TIMEOUT_MS="1000", FAIL="closed")
        proxy.deliver.clear()
        self.check_failed(service.send("late", 2))
        proxy.deliver.set()
        self.limited(service)
        self.assertEqual(self.server.charged(key_of("late")), 2)
        self.assertIn(";r=5;", service.send("prompt", 5)["RateLimit"])

    def test_a_connection_that_falls_silent_is_given_up(self):
        proxy, service = self.start_behind_proxy(REDIS_TIMEOUT_MS="1000", FAIL="closed")
        proxy.fall_silent()
        for _ in range(2):
            self.check_failed(service.ask("silence"))
        proxy.speak()
        self.limited(service)
        self.assertIn(";r=5;", service.send("prompt", 5)["RateLimit"])

    def test_a_crowd_shares_the_connections(self):
        proxy, service = self.start_behind_proxy()
        with ThreadPoolExecutor(50) as pool:
            sent = len(proxy.charges)
            proxy.deliver.clear()
            replies = [pool.submit(service.ask, f"one of {number}") for number in range(50)]
            until("a charge a connection", lambda: len(proxy.charges) >= sent + self.connections)
            proxy.deliver.set()
        self.assertEqual([reply.result().status for reply in replies], [200] * 50)
        self.assertEqual(len(proxy.accepted), self.connections)


class Python(HttpExample, unittest.TestCase):
    command = [sys.executable, "python/server.py"]
    connections = 32

    def test_over_a_unix_socket_there_is_no_address(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = f"{folder}/socket"
        uvicorn = ["-m", "uvicorn", "--app-dir", "python", "--uds", path, "server:app"]
        server = subprocess.Popen(
            [sys.executable, *uvicorn],
            env=environment(REDIS_URL=self.server.url, REDIS_TIMEOUT_MS="30000"),
            cwd=HERE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        end = socket.socket(socket.AF_UNIX)
        self.addCleanup(end.close)
        until("uvicorn", lambda: os.path.exists(path) and end.connect_ex(path) == 0)
        end.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(end.makefile("rb").read().startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertEqual(self.server.charged("rl:http:address:none"), 1)


class Node(HttpExample, unittest.TestCase):
    # It stands beside node_modules, because that is where node looks for what is imported.
    command = ["node", str(BUILT / "node" / "server.js")]

    @classmethod
    def setUpClass(cls):
        shutil.copy(HERE / "node" / "server.js", BUILT / "node")
        super().setUpClass()


class Rust(HttpExample, unittest.TestCase):
    command = [str(BUILT / "rust" / "debug" / "redis-rl-example")]

    @classmethod
    def setUpClass(cls):
        # Clippy looks on: to check all dependencies for it alone would take as long as this does.
        settings = environment(
            CARGO_TARGET_DIR=str(BUILT / "rust"), RUSTC_WORKSPACE_WRAPPER="clippy-driver"
        )
        for goal in ("build", "test"):
            cargo = ["cargo", goal, "--quiet", "--locked", "--manifest-path", "rust/Cargo.toml"]
            subprocess.run(cargo, env=settings, cwd=HERE, check=True)
        super().setUpClass()

    def check_open(self, service):
        """What the minute allows passes, and then the limiter inside the service denies."""
        self.check_local_limit(service, 10)

    def check_local_limit(self, service, share):
        passed, since = 0, time.monotonic()
        while (denied := service.ask("outage")).status == 200 and passed < 100:
            self.check_let_pass(denied)
            passed += 1
        # It gives the share back over a minute, which goes on meanwhile.
        given_back = int((time.monotonic() - since) * share / 60)
        self.assertIn(passed, range(share, share + given_back + 1))
        self.assertEqual(denied.status, 429)
        self.assertIn(int(denied["Retry-After"]), range(1, 60 // share + 2))
        self.assertEqual(denied.problem()["violated-policies"], ["minute"])
        self.assertEqual(service.send("outage", 11).status, 400)
        self.assertEqual(service.send("another", 10).status, 200)

    def test_processes_share_the_limit_without_redis(self):
        service = self.start(f"redis://127.0.0.1:{free_port()}", PROCESSES="4")
        self.check_local_limit(service, 10 // 4)


class Go(HttpExample, unittest.TestCase):
    command = [str(BUILT / "go" / "server")]
    connections = 16

    @classmethod
    def setUpClass(cls):
        # With the client that Debian has, which is outside of any Go module.
        settings = environment(
            GO111MODULE="off", GOPATH="/usr/share/gocode", GOCACHE=str(BUILT / "go" / "cache")
        )
        build = ["go", "build", "-o", cls.command[0], "go/server.go"]
        subprocess.run(build, env=settings, cwd=HERE, check=True)
        super().setUpClass()

    def test_idle_connections_that_fell_silent_are_not_waited_for_one_by_one(self):
        proxy, service = self.start_behind_proxy(REDIS_TIMEOUT_MS="1500", FAIL="closed")
        with ThreadPoolExecutor(self.connections) as pool:
            proxy.deliver.clear()
            for number in range(self.connections):
                pool.submit(service.ask, f"one of {number}")
            until("a connection each", lambda: len(proxy.accepted) >= self.connections)
            proxy.deliver.set()
        time.sleep(1.1)  # only what has been idle for a second is tried before it is used
        proxy.fall_silent()
        # 16 times 1.5 s would be too long.
        self.check_failed(service.ask("silence", timeout=20))


class ThirdParty(http.server.BaseHTTPRequestHandler):
    """Keeps what it was called with, and answers as it is told to, or else 200."""

    def do_POST(self):
        job = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.jobs.append((job, self.headers["Idempotency-Key"]))
        answer = self.server.answers.pop(0) if self.server.answers else (200, {})
        if answer is None:
            return  # hangs up
        status, headers = answer
        self.send_response(status)
        for header in headers.items():
            self.send_header(*header)
        self.end_headers()

    def log_message(self, *_):
        pass


class Worker(unittest.TestCase):
    def setUp(self):
        self.server = RedisServer()
        self.addCleanup(self.server.close)
        self.third_party = http.server.HTTPServer(("127.0.0.1", 0), ThirdParty)
        self.third_party.jobs = []
        self.third_party.answers = []
        self.addCleanup(self.third_party.server_close)
        thread = threading.Thread(target=self.third_party.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.third_party.shutdown)

    def work(self):
        url = f"http://127.0.0.1:{self.third_party.server_port}/"
        worker = subprocess.Popen(
            [sys.executable, "python/worker.py", url],
            env=environment(REDIS_URL=self.server.url, REDIS_TIMEOUT_MS="30000"),
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def do(self, jobs):
        lines = "".join(f"{job}\n" for job in jobs)
        return self.work().communicate(lines, timeout=DEADLINE_SECONDS)

    def called_with(self):
        return [job for job, _ in self.third_party.jobs]

    def test_each_call_is_charged_and_a_wait_is_slept_through(self):
        output, errors = self.do("abcdefg")
        self.assertEqual(errors, "")
        self.assertEqual(output.splitlines(), [f"{job} 200" for job in "abcdefg"])
        self.assertEqual(self.called_with(), list("abcdefg"))
        counted = self.server.client.info("rl")
        self.assertEqual(counted["rl_slide_admitted"], 7)
        # Asked again after its exact wait, a job is admitted: none is denied twice.
        self.assertLessEqual(counted["rl_slide_denied"], 7)

    def test_it_waits_for_a_server_that_comes_back(self):
        worker = self.work()
        worker.stdin.write("before\n")
        worker.stdin.flush()
        self.assertEqual(worker.stdout.readline(), "before 200\n")
        self.server.kill()
        worker.stdin.write("after\n")
        worker.stdin.flush()
        self.assertIn("Redis is away", worker.stderr.readline())
        self.assertEqual(self.called_with(), ["before"])
        self.server.start()
        self.assertEqual(worker.stdout.readline(), "after 200\n")
        worker.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(worker.returncode, 0)
        self.assertEqual(self.called_with(), ["before", "after"])

    def test_it_does_not_wait_for_a_mistake_to_pass(self):
        self.server.client.set("rl:third-party", "x")
        worker = self.work()
        output, errors = worker.communicate("job\n", timeout=DEADLINE_SECONDS)
        self.assertEqual((worker.returncode, output), (1, ""))
        self.assertIn("WRONGTYPE", errors)
        self.assertEqual(self.called_with(), [])

    def test_it_waits_for_a_third_party_that_is_away(self):
        self.third_party.answers = [(429, {"Retry-After": "2"}), (503, {}), None]
        output, errors = self.do("ab")
        self.assertEqual(output.splitlines(), ["a 200", "b 200"])
        self.assertEqual(errors.count("the third party is away"), 3)
        # Each try is charged, and all tries of a job say that they are the same.
        self.assertEqual(self.called_with(), ["a"] * 4 + ["b"])
        self.assertEqual(self.server.client.info("rl")["rl_slide_admitted"], 5)
        self.assertEqual(len(set(self.third_party.jobs)), 2)

    def test_a_job_that_is_refused_is_not_tried_again(self):
        self.third_party.answers = [(400, {})]
        output, errors = self.do("ab")
        self.assertEqual((output.splitlines(), errors), (["a 400", "b 200"], ""))
        self.assertEqual(self.called_with(), ["a", "b"])

    def test_waits_differ_and_are_never_too_short(self):
        worker = load("python/worker.py", self.server.url)
        with mock.patch.object(worker.time, "sleep") as sleep:
            for _ in range(100):
                worker.wait(1)
        waits = {call.args[0] for call in sleep.call_args_list}
        self.assertGreater(len(waits), 1)
        self.assertTrue(all(1 <= wait <= 1 + worker.JITTER_SECONDS for wait in waits), waits)


def load(program, redis_url):
    """An example in Python as a module, with settings as it would be started with."""
    spec = importlib.util.spec_from_file_location("example", HERE / program)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(os.environ, REDIS_URL=redis_url, REDIS_TIMEOUT_MS="30000"):
        spec.loader.exec_module(module)
    return module


class Tokens(unittest.TestCase):
    """2,000 tokens a second, 20,000 a minute, 100,000 a day."""

    windows = ("1s", 2_000, "60s", 20_000, "1d", 100_000)

    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer()
        cls.addClassCleanup(cls.server.close)

    def spend(self, user, estimate, used, url=None):
        settings = environment(REDIS_URL=url or self.server.url, REDIS_TIMEOUT_MS="30000")
        return subprocess.run(
            [sys.executable, "llm/tokens.py", user, str(estimate), str(used)],
            env=settings,
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
        )

    def spent(self, user):
        return self.server.charged(f"rl:tokens:{user}")

    def charge_before(self, user, milliseconds, tokens, times):
        """As if the user had spent them, a second and more apart, the last so long ago."""
        seconds, microseconds = self.server.client.time()
        now = seconds * 1000 + microseconds // 1000
        for ago in range(times - 1, -1, -1):
            then = ("COST", tokens, "AT", now - milliseconds - 1_001 * ago)
            call = ("RL.SLIDE", f"rl:tokens:{user}", *self.windows, *then)
            self.assertEqual(self.server.client.execute_command(*call)[0], 1)

    def check_answered(self, done, used):
        self.assertEqual(json.loads(done.stdout), {"text": "Hello!", "used": used})

    def test_what_was_not_used_is_given_back(self):
        self.check_answered(self.spend("less", 1500, 400), 400)
        self.assertEqual(self.spent("less"), 400)

    def test_what_was_used_as_estimated_is_left_as_it_is(self):
        self.check_answered(self.spend("exact", 1500, 1500), 1500)
        self.assertEqual(self.spent("exact"), 1500)

    def test_an_overrun_is_charged_whatever_the_limit(self):
        self.check_answered(self.spend("more", 1500, 5000), 5000)
        self.assertEqual(self.spent("more"), 5000)

    def test_a_model_that_fails_costs_nothing(self):
        failed = self.spend("failing", 1500, -1)
        self.assertIn("the model failed", failed.stderr)
        self.assertEqual(self.spent("failing"), 0)

    def test_an_estimate_above_the_limit_of_a_window_never_passes(self):
        denied = self.spend("never", 2001, 1)
        self.assertEqual(denied.returncode, 1)
        self.assertEqual(json.loads(denied.stdout), {"window_ms": 1000, "retry_after_ms": None})
        self.assertEqual(self.spent("never"), 0)

    def test_the_minute_and_the_day_bind_too(self):
        self.charge_before("minute", 10_000, 2_000, 10)
        self.check_denied("minute", 60_000)
        for minutes_ago in (10, 8, 6, 4, 2):
            self.charge_before("day", minutes_ago * 60_000, 2_000, 10)
        self.check_denied("day", 86_400_000)

    def check_denied(self, user, window_ms):
        before = self.spent(user)
        denied = self.spend(user, 1, 1)
        self.assertEqual(denied.returncode, 1)
        denial = json.loads(denied.stdout)
        self.assertEqual(denial["window_ms"], window_ms)
        self.assertIn(denial["retry_after_ms"], range(1, window_ms))
        self.assertEqual(self.spent(user), before)

    def test_without_a_limiter_no_model_is_called(self):
        failed = self.spend("nobody", 1, 1, f"redis://127.0.0.1:{free_port()}")
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertIn("redis.exceptions.ConnectionError", failed.stderr)

    def test_a_lost_reply_is_not_charged_twice(self):
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        proxy.lose_next = True
        failed = self.spend("lost", 500, 500, proxy.url)
        self.assertFalse(proxy.lose_next)
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertEqual(self.spent("lost"), 500)

    def test_an_answer_that_is_paid_for_is_not_lost_with_the_server(self):
        server = RedisServer()
        self.addCleanup(server.close)
        tokens = load("llm/tokens.py", server.url)

        def model():
            server.kill()
            return "Hello!", used

        for used in (400, 5000):  # a refund and a forced charge
            with self.assertLogs(level="ERROR") as logs:
                self.assertEqual(tokens.ask("lost", 1500, model), ("Hello!", used))
            self.assertIn(f"1500 reserved and {used} used", logs.output[0])
            server.start()
        self.assertEqual(tokens.ask("lost", 1500, lambda: ("Hello!", 400)), ("Hello!", 400))
        self.assertEqual(server.charged("rl:tokens:lost"), 400)

    def test_a_server_that_was_started_again_settles(self):
        server = RedisServer()
        self.addCleanup(server.close)
        tokens = load("llm/tokens.py", server.url)

        def model():
            server.kill()
            server.start()
            return "Hello!", 1600

        self.assertEqual(tokens.ask("again", 1500, model), ("Hello!", 1600))
        self.assertEqual(server.charged("rl:tokens:again"), 100)

    def test_a_call_that_is_interrupted_keeps_its_reservation(self):
        tokens = load("llm/tokens.py", self.server.url)
        with self.assertRaises(KeyboardInterrupt):
            tokens.ask("interrupted", 1500, mock.Mock(side_effect=KeyboardInterrupt))
        self.assertEqual(self.spent("interrupted"), 1500)


class Readme(unittest.TestCase):
    """The commands of README.md as they stand, but for the ports."""

    settings = {}

    def test_every_command_works(self):
        page = (HERE / "README.md").read_text()
        commands = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        make, python, node, rust, go, curl, worker, tokens = commands
        shown = re.search(r"^It answers.*?^```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1]

        self.folder = self.copy_of_the_project()
        port = free_port()
        with self.started(make, port, cwd=HERE.parent, RUN_DIR=f"{self.folder}/run"):
            self.settings = {
                "REDIS_URL": f"redis://127.0.0.1:{port}",
                "CARGO_TARGET_DIR": str(BUILT / "rust"),
                "GOCACHE": str(BUILT / "go" / "cache"),
            }
            server = redis.Redis(port=port)
            self.addCleanup(server.close)
            for service in (python, node, rust, go):
                with self.subTest(service), self.started(service, port := free_port()):
                    answer = self.done(curl, port).lower().splitlines()
                    for line in shown.lower().splitlines():
                        self.assertIn(line, answer)
                    if service is python:
                        self.assertEqual(self.done(worker, port), "a 200\nb 200\nc 200\n")
                        spent = json.loads(self.done(tokens, port))
                        self.assertEqual(spent, {"text": "Hello!", "used": 400})
                server.flushall()

    def copy_of_the_project(self):
        """What of it the commands use, so that they leave nothing in the project itself."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        built = shutil.ignore_patterns(".venv", "node_modules", "target", "__pycache__")
        shutil.copytree(HERE, f"{folder}/examples", ignore=built)
        return folder

    def shell(self, run, commands, port, cwd=None, **settings):
        return run(
            ["bash", "-ec", commands.replace("localhost:8000", f"localhost:{port}")],
            env={**os.environ, "PORT": str(port), **self.settings, **settings},
            cwd=cwd or self.folder,
        )

    def done(self, commands, port):
        """The output of what ends by itself."""
        run = functools.partial(subprocess.run, capture_output=True, text=True)
        done = self.shell(run, commands, port)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def started(self, commands, port, **settings):
        """What runs until it is stopped, from when it listens."""
        with tempfile.TemporaryFile() as log:
            run = functools.partial(
                subprocess.Popen, stdout=log, stderr=log, start_new_session=True
            )
            process = self.shell(run, commands, port, **settings)
            try:
                until(commands, lambda: listens(process, log, "127.0.0.1", port), BUILD_SECONDS)
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


if __name__ == "__main__":
    unittest.main(verbosity=2)
