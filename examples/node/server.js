// An Express service whose clients may each send 10 messages a minute and 30 a day.
//
//     npm ci
//     node server.js
//
// GET / costs one unit, and POST /messages?count=3 costs three.

import express from "express";
import { Redis } from "ioredis";

// Both windows go into one call, so a request is charged to both or to none.
const POLICIES = [
  { name: "minute", units: 10, seconds: 60 },
  { name: "day", units: 30, seconds: 86_400 },
];
const WINDOWS = POLICIES.flatMap(({ units, seconds }) => [`${seconds}s`, units]);
const POLICY_HEADER = POLICIES.map((p) => `"${p.name}";q=${p.units};w=${p.seconds}`).join(", ");

const FAIL_CLOSED = process.env.FAIL === "closed";
const TIMEOUT_MS = Number(process.env.REDIS_TIMEOUT_MS ?? 250);

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379", {
  // A limiter that hangs must not hang the service.
  connectTimeout: TIMEOUT_MS,
  commandTimeout: TIMEOUT_MS,
  // Without a connection, fail at once instead of waiting for one.
  enableOfflineQueue: false,
  // ioredis resends a command whose reply was lost, unless told otherwise. The first may have been
  // charged, so the second would be charged again.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
});
redis.on("error", (error) => console.warn("no connection to the limiter:", error.message));

// An error as RFC 9457 has it.
function problem(response, status, title, more) {
  response
    .status(status)
    .type("application/problem+json")
    .send(JSON.stringify({ type: "about:blank", title, status, ...more }));
}

// Rounded up: who comes back sooner is denied again.
const seconds = (ms) => Math.ceil(ms / 1000);

async function limitRate(request, response, next) {
  // Checked here, because an argument that Redis refuses would count as a limiter that failed, and
  // with FAIL=open let the request pass.
  const cost = request.query.count ?? "1";
  if (!/^[1-9][0-9]{0,8}$/.test(cost)) {
    return problem(response, 400, "count must be a number from 1");
  }

  // A real service takes the name that it has authenticated. Behind a proxy, the peer is the proxy.
  const client = request.get("X-User") ?? request.ip;
  let reply;
  try {
    reply = await redis.call("RL.SLIDE", `rl:${client}`, ...WINDOWS, "COST", cost);
  } catch (error) {
    console.warn("the limiter failed:", error.message);
    if (FAIL_CLOSED) return problem(response, 503, "The rate limiter cannot be reached");
    return next();
  }

  const [allowed, limit, remaining, retryAfter, resetAfter, window] = reply;
  const policy = POLICIES.find((p) => p.seconds * 1000 === window).name;
  response.set("RateLimit-Policy", POLICY_HEADER);
  if (allowed === 1) {
    response.set("RateLimit", `"${policy}";r=${remaining};t=${seconds(resetAfter)}`);
    return next();
  }
  if (retryAfter === -1) {
    // More than the whole limit: it can never pass, so nothing tells the client to come back.
    response.set("RateLimit", `"${policy}";r=${remaining}`);
    return problem(response, 413, `At most ${limit} at once`);
  }
  response.set("RateLimit", `"${policy}";r=${remaining};t=${seconds(retryAfter)}`);
  response.set("Retry-After", seconds(retryAfter));
  problem(response, 429, "Too many requests", {
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "violated-policies": [policy],
  });
}

const app = express();
app.use(limitRate);
app.get("/", (_request, response) => response.json({ hello: "world" }));
app.post("/messages", (request, response) => response.json({ sent: Number(request.query.count ?? 1) }));
app.listen(process.env.PORT ?? 8000, "127.0.0.1");
