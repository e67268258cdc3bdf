-- The sliding window counter as a script, with the six fields of RL.SWC.
--
-- KEYS: the counters. ARGV: window in ms, limit, cost, and the time in ms if it is not the server's.
local key = KEYS[1]
local window, limit, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(ARGV[4])
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local stored = redis.call('HMGET', key, 'start', 'current', 'previous')
local start = now - now % window
local elapsed = now - start
local current, previous = 0, 0
local running = tonumber(stored[1]) == start
if running then
    current, previous = tonumber(stored[2]), tonumber(stored[3])
elseif tonumber(stored[1]) == start - window then
    previous = tonumber(stored[2])
end

-- How long into a window it takes until so many of the one before still count at most.
local function until_left(units, most)
    if units <= most then
        return 0
    end
    return math.floor(window - (most + 1) * window / units) + 1
end

-- The milliseconds until at most so many count.
local function wait(most)
    if current <= most then
        return math.max(until_left(previous, most - current) - elapsed, 0)
    end
    return window - elapsed + until_left(current, most)
end

local used = math.floor(previous * (window - elapsed) / window) + current
if used + cost <= limit then
    if running then
        redis.call('HINCRBY', key, 'current', cost)
    else
        redis.call('HSET', key, 'start', start, 'current', cost, 'previous', previous)
        redis.call('PEXPIRE', key, 2 * window - elapsed)
    end
    current = current + cost
    return {1, limit, limit - used - cost, 0, wait(0), window}
end
local retry_after = cost > limit and -1 or wait(limit - cost)
return {0, limit, math.max(limit - used, 0), retry_after, wait(0), window}
