-- The sliding window log as a script: exact, with the six fields of RL.SLIDE. One member is one unit.
--
-- KEYS: the log. ARGV: window in ms, limit, cost, and the time in ms if it is not the server's.
local key = KEYS[1]
local window, limit, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(ARGV[4])
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end

redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
local used = redis.call('ZCARD', key)

if used + cost <= limit then
    if cost == 1 then
        redis.call('ZADD', key, now, now .. '-' .. used)
    else
        local members = {}
        for unit = 0, cost - 1 do
            members[#members + 1] = now
            members[#members + 1] = now .. '-' .. used + unit
        end
        redis.call('ZADD', key, unpack(members))
    end
    redis.call('PEXPIRE', key, window)
    return {1, limit, limit - used - cost, 0, window, window}
end

local retry_after, reset_after = -1, 0
if cost <= limit then
    local leaves = used + cost - limit - 1
    retry_after = redis.call('ZRANGE', key, leaves, leaves, 'WITHSCORES')[2] + window - now
end
if used > 0 then
    reset_after = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] + window - now
end
return {0, limit, math.max(limit - used, 0), retry_after, reset_after, window}
