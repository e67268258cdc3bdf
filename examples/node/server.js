// An Express service whose clients may each send 10 messages a minute and 30 a day.
//
//     npm ci
//     node server.js
//
// GET / costs one unit, and POST /messages?count=3 costs three.

import { createHash } from "node:crypto";
import { once } from "node:events";

import express from "express";
import { Redis, ReplyError } from "ioredis";
import ipaddr from "ipaddr.js";

// Both windows go into one call, so a request is charged to both or to none.
const POLICIES = [
  { name: "minute", units: 10, seconds: 60 },
  { name: "day", units: 30, seconds: 86_400 },
];
const WINDOWS = POLICIES.flatMap(({ units, seconds }) => [`${seconds}s`, units]);
const POLICY_HEADER = POLICIES.map((p) => `"${p.name}";q=${p.units};w=${p.seconds}`).join(", ");

const FAIL = process.env.FAIL ?? "open";
// A typing error must not switch the limiter off.
if (!["open", "closed"].includes(FAIL)) throw new Error(`FAIL must be open or closed, not ${FAIL}`);
const TIMEOUT_MS = Number(process.env.REDIS_TIMEOUT_MS ?? 250);
// When to come back if the limiter gives no answer.
const OUTAGE_SECONDS = 5;

// One connection is enough: commands go out on it without waiting for the replies of earlier ones.
const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379", {
  // A limiter that hangs must not hang the service.
  connectTimeout: TIMEOUT_MS,
  commandTimeout: TIMEOUT_MS,
  // A connection that is silent is given up for a new one. Without this, ioredis keeps it.
  socketTimeout: TIMEOUT_MS,
  // Without a connection, fail at once instead of waiting for one.
  enableOfflineQueue: false,
  // ioredis resends a command whose reply was lost, unless told otherwise. The first may have been
  // charged, so the second would be charged again.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
});
// Why there is no connection: a command that needs one is told only that there is none.
let noConnection;
redis.on("error", (error) => {
  noConnection = error;
  console.warn("no connection to Redis:", error.message);
});
redis.on("ready", () => {
  noConnection = undefined;
});

// Whether Redis cannot be asked just now: not reached, too slow, or in no state to be charged. All
// else is for you to mend: a password, a right, a key of another type, memory that is used up. It
// must not let anybody pass.
const AWAY = /^(LOADING|READONLY|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|MISCONF|BUSY) /;
const isAway = (error) => !(error instanceof ReplyError) || AWAY.test(error.message);

// The limiter's key. Names and addresses have each a prefix, so that none poses as another.
function keyOf(request) {
  // X-User stands for the name that your service has authenticated: as it is, anybody may send any.
  // A hash is short, however long the name is.
  const user = request.get("X-User");
  if (user) return `rl:http:user:${createHash("sha256").update(user, "latin1").digest("hex")}`;
  // Behind a proxy, this is the proxy's, unless Express is told to trust it ("trust proxy").
  const address = ipaddr.process(request.ip);
  if (address.kind() === "ipv4") return `rl:http:address:${address}`;
  // Whoever has one address of a /64 has them all.
  const network = new ipaddr.IPv6([...address.parts.slice(0, 4), 0, 0, 0, 0]);
  return `rl:http:address:${network}/64`;
}

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
  // Plain digits, and once: what is charged must be what the service goes by.
  const cost = request.query.count ?? "1";
  if (!/^[1-9][0-9]{0,8}$/.test(cost)) {
    return problem(response, 400, "count must be a number from 1");
  }

  const call = ["RL.SLIDE", keyOf(request), ...WINDOWS, "COST", cost];
  let reply;
  try {
    reply = await redis.call(...call);
  } catch (error) {
    const cause = error instanceof ReplyError ? error : (noConnection ?? error);
    if (isAway(cause) && FAIL === "open") {
      console.warn("let pass, as Redis is away:", cause.message);
      return next();
    }
    console.error("denied, as the limiter failed:", cause.message);
    response.set("Retry-After", OUTAGE_SECONDS);
    return problem(response, 503, "The rate limiter failed");
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
    return problem(response, 400, `At most ${limit} at once`);
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
app.post("/messages", (request, response) => {
  response.json({ sent: Number(request.query.count ?? 1) });
});

// The first requests are to be limited too. If Redis is away, it has been told by now.
await once(redis, "ready").catch(() => {});
app.listen(process.env.PORT ?? 8000, process.env.HOST ?? "127.0.0.1");
