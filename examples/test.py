"""Starts every example against a server of its own, and calls it over HTTP.

    make test-examples                # all of them
    make test-examples ONLY=Worker    # one class of them
"""

import http.client
import http.server
import json
import os
import pathlib
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

HERE = pathlib.Path(__file__).resolve().parent
BUILT = pathlib.Path(os.environ["CARGO_TARGET_DIR"]).resolve() / "examples"
sys.path.insert(0, str(BUILT / "python"))

import redis  # noqa: E402  (it is kept in the build folder)

# Long enough for a busy machine. Nothing waits for it to pass but what has failed.
DEADLINE_SECONDS = 60


def until(what, done):
    """Asks again and again until `done` answers something, and returns that."""
    deadline = time.monotonic() + DEADLINE_SECONDS
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
    """Stands between an example and the server, and loses or delays the reply to a charge."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.lose_next = False
        self.deliver = threading.Event()
        self.deliver.set()
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
            self.sockets += [client, server]
            charging = threading.Event()
            self.spawn(self.requests, client, server, charging)
            self.spawn(self.replies, server, client, charging)

    def requests(self, client, server, charging):
        while data := receive(client):
            if b"RL.SLIDE" in data:
                charging.set()
            server.sendall(data)
        hang_up(server)

    def replies(self, server, client, charging):
        while data := receive(server):
            if charging.is_set():
                charging.clear()
                if self.lose_next:
                    self.lose_next = False
                    break
                self.deliver.wait()
            try:
                client.sendall(data)
            except OSError:
                break  # it did not wait
        hang_up(client)
        hang_up(server)

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


class Service:
    """A running example."""

    def __init__(self, command, redis_url, **settings):
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [word.format(port=self.port) for word in command],
            env=environment(PORT=str(self.port), REDIS_URL=redis_url, **settings),
            cwd=HERE,
            stdout=self.log,
            stderr=self.log,
        )
        try:
            until(command, self.listens)
        except BaseException:
            self.close()
            raise

    def listens(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            raise RuntimeError(self.log.read().decode())
        with socket.socket() as end:
            return end.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(self, key, method="GET", path="/"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        try:
            connection.request(method, path, headers={"X-User": key})
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            connection.close()

    def send(self, key, count):
        return self.ask(key, "POST", f"/messages?count={count}")

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


class HttpExample:
    """What every service must do. Each client has 10 units a minute and 30 a day."""

    command = []

    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer()
        cls.addClassCleanup(cls.server.close)
        cls.service = cls.start(cls.server.url, REDIS_TIMEOUT_MS="30000")
        cls.limited(cls.service)

    @classmethod
    def start(cls, redis_url, **settings):
        service = Service(cls.command, redis_url, **settings)
        cls.addClassCleanup(service.close)
        return service

    @classmethod
    def limited(cls, service):
        """Waits until the service reaches its limiter."""
        until("a limited reply", lambda: service.ask("somebody")["RateLimit"])
        cls.server.client.delete("rl:somebody")

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
        self.assertEqual(self.server.charged("rl:count"), 10)

    def test_as_many_pass_at_once_as_may(self):
        with ThreadPoolExecutor(25) as pool:
            statuses = list(pool.map(lambda _: self.service.ask("crowd").status, range(25)))
        self.assertEqual(sorted(statuses), [200] * 10 + [429] * 15)

    def test_the_day_binds_when_the_minute_is_free(self):
        seconds, _ = self.server.client.time()
        for minutes_ago in (6, 4, 2):
            then = (seconds - 60 * minutes_ago) * 1000
            charge = ("RL.SLIDE", "rl:day", "60s", 10, "86400s", 30, "COST", 9, "AT", then)
            self.assertEqual(self.server.client.execute_command(*charge)[0], 1)
        self.assertRegex(self.service.send("day", 3)["RateLimit"], '^"day";r=0;t=[0-9]+$')
        denied = self.service.ask("day")
        self.assertEqual(denied.status, 429)
        self.assertEqual(denied.problem()["violated-policies"], ["day"])
        # The first nine leave six minutes before the day is over.
        self.assertIn(int(denied["Retry-After"]), range(1, 86400 - 6 * 60 + 1))
        self.assertGreater(int(denied["Retry-After"]), 60)

    def test_a_request_takes_its_cost(self):
        reply = self.service.send("cost", 3)
        self.assertIn(";r=7;", reply["RateLimit"])
        readme = (HERE / "README.md").read_text()
        for header in ("RateLimit-Policy", "RateLimit"):
            self.assertIn(f"\n{header}: {reply[header]}\n", readme)
        self.assertEqual(self.service.send("cost", 8).status, 429)
        self.assertIn(";r=0;", self.service.send("cost", 7)["RateLimit"])

    def test_what_can_never_pass_is_not_told_to_come_back(self):
        reply = self.service.send("never", 11)
        self.assertEqual(reply.status, 413)
        self.assertIsNone(reply["Retry-After"])
        self.assertEqual(reply["RateLimit"], '"minute";r=10')
        self.assertEqual(reply.problem()["title"], "At most 10 at once")
        self.assertEqual(self.server.charged("rl:never"), 0)

    def test_no_argument_passes_for_a_failure(self):
        for count in ("0", "-1", "1.5", "x", "", "1e3", "99999999999999999999"):
            reply = self.service.send("arguments", count)
            self.assertEqual(reply.status, 400, count)
            reply.problem()
        self.assertEqual(self.server.charged("rl:arguments"), 0)

    def test_a_killed_server_and_its_return(self):
        closed = self.start(self.server.url, FAIL="closed", REDIS_TIMEOUT_MS="30000")
        for service in (self.service, closed):
            self.limited(service)
        self.server.kill()
        self.check_open(self.service)
        for _ in range(15):
            reply = closed.ask("outage")
            self.assertEqual(reply.status, 503)
            self.assertIsNone(reply["RateLimit"])
            reply.problem()
        self.server.start()
        for service in (self.service, closed):
            self.limited(service)
        self.assertEqual(self.server.charged("rl:outage"), 0)
        self.assertEqual([closed.ask("back").status for _ in range(11)], [200] * 10 + [429])

    def check_open(self, service):
        """Everything passes, and no header says that it was counted."""
        for _ in range(15):
            reply = service.ask("outage")
            self.assertEqual(reply.status, 200)
            self.assertIsNone(reply["RateLimit"])

    def test_a_lost_reply_is_not_charged_twice(self):
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        service = self.start(proxy.url, REDIS_TIMEOUT_MS="30000")
        self.limited(service)
        proxy.lose_next = True
        reply = service.ask("lost")
        self.assertFalse(proxy.lose_next)
        self.assertEqual((reply.status, reply["RateLimit"]), (200, None))
        # A client that resends does so on its next connection, so that is waited for.
        self.limited(service)
        self.assertEqual(self.server.charged("rl:lost"), 1)

    def test_a_late_reply_is_not_waited_for_nor_taken_for_another(self):
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        service = self.start(proxy.url, REDIS_TIMEOUT_MS="1000", FAIL="closed")
        self.limited(service)
        proxy.deliver.clear()
        self.assertEqual(service.send("late", 2).status, 503)
        proxy.deliver.set()
        self.limited(service)
        self.assertEqual(self.server.charged("rl:late"), 2)
        self.assertIn(";r=5;", service.send("prompt", 5)["RateLimit"])


class Python(HttpExample, unittest.TestCase):
    command = [sys.executable, "-m", "uvicorn", "--app-dir", "python", "--port", "{port}", "server:app"]


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
        cargo = ["cargo", "build", "--quiet", "--locked", "--manifest-path", "rust/Cargo.toml"]
        subprocess.run(
            cargo, env=environment(CARGO_TARGET_DIR=str(BUILT / "rust")), cwd=HERE, check=True
        )
        super().setUpClass()

    def check_open(self, service):
        """What the minute allows passes, and then the limiter inside the service denies."""
        for _ in range(10):
            reply = service.ask("outage")
            self.assertEqual(reply.status, 200)
            self.assertIsNone(reply["RateLimit"])
        # It gives a unit back every six seconds, which may pass between these.
        denied = until("a denial", lambda: (r := service.ask("outage")).status != 200 and r)
        self.assertEqual(denied.status, 429)
        self.assertIn(int(denied["Retry-After"]), range(1, 8))
        self.assertEqual(denied.problem()["violated-policies"], ["minute"])
        self.assertEqual(service.send("outage", 11).status, 413)
        self.assertEqual(service.ask("another").status, 200)


class Go(HttpExample, unittest.TestCase):
    command = [str(BUILT / "go" / "server")]

    @classmethod
    def setUpClass(cls):
        # With the client that Debian has, which is outside of any Go module.
        settings = environment(
            GO111MODULE="off", GOPATH="/usr/share/gocode", GOCACHE=str(BUILT / "go" / "cache")
        )
        build = ["go", "build", "-o", cls.command[0], "go/server.go"]
        subprocess.run(build, env=settings, cwd=HERE, check=True)
        super().setUpClass()


class ThirdParty(http.server.BaseHTTPRequestHandler):
    """Keeps what it was called with."""

    def do_POST(self):
        self.server.jobs.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Worker(unittest.TestCase):
    def setUp(self):
        self.server = RedisServer()
        self.addCleanup(self.server.close)
        self.third_party = http.server.HTTPServer(("127.0.0.1", 0), ThirdParty)
        self.third_party.jobs = []
        self.addCleanup(self.third_party.server_close)
        thread = threading.Thread(target=self.third_party.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.third_party.shutdown)

    def work(self):
        worker = subprocess.Popen(
            [sys.executable, "python/worker.py", f"http://127.0.0.1:{self.third_party.server_port}/"],
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

    def test_each_call_is_charged_and_a_wait_is_slept_through(self):
        jobs = list("abcdefg")
        output, errors = self.work().communicate("\n".join(jobs) + "\n", timeout=DEADLINE_SECONDS)
        self.assertEqual(errors, "")
        self.assertEqual(output.splitlines(), [f"{job} 200" for job in jobs])
        self.assertEqual(self.third_party.jobs, jobs)
        counted = self.server.client.info("rl")
        self.assertEqual(counted["rl_slide_admitted"], len(jobs))
        # Asked again after its exact wait, a job is admitted: none is denied twice.
        self.assertLessEqual(counted["rl_slide_denied"], len(jobs))

    def test_it_waits_for_a_server_that_comes_back(self):
        worker = self.work()
        worker.stdin.write("before\n")
        worker.stdin.flush()
        self.assertEqual(worker.stdout.readline(), "before 200\n")
        self.server.kill()
        worker.stdin.write("after\n")
        worker.stdin.flush()
        self.assertIn("the limiter failed", worker.stderr.readline())
        self.assertEqual(self.third_party.jobs, ["before"])
        self.server.start()
        self.assertEqual(worker.stdout.readline(), "after 200\n")
        worker.communicate(timeout=DEADLINE_SECONDS)
        self.assertEqual(worker.returncode, 0)
        self.assertEqual(self.third_party.jobs, ["before", "after"])


class Tokens(unittest.TestCase):
    """2,000 tokens a second, 20,000 a minute, 100,000 a day."""

    windows = ("1s", 2_000, "60s", 20_000, "1d", 100_000)

    @classmethod
    def setUpClass(cls):
        cls.server = RedisServer()
        cls.addClassCleanup(cls.server.close)

    def spend(self, user, estimate, used, url=None):
        settings = environment(REDIS_URL=url or self.server.url, REDIS_TIMEOUT_MS="30000")
        command = [sys.executable, "llm/tokens.py", user, str(estimate), str(used)]
        return subprocess.run(
            command, env=settings, cwd=HERE, capture_output=True, text=True, timeout=DEADLINE_SECONDS
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

    def test_what_was_not_used_is_given_back(self):
        self.assertEqual(json.loads(self.spend("less", 1500, 400).stdout), {"used": 400})
        self.assertEqual(self.spent("less"), 400)

    def test_what_was_used_as_estimated_is_left_as_it_is(self):
        self.assertEqual(json.loads(self.spend("exact", 1500, 1500).stdout), {"used": 1500})
        self.assertEqual(self.spent("exact"), 1500)

    def test_an_overrun_is_charged_whatever_the_limit(self):
        self.assertEqual(json.loads(self.spend("more", 1500, 5000).stdout), {"used": 5000})
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
