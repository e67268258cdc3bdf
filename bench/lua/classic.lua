-- The sliding window log as it is found everywhere: 1 if it may pass, 0 if not.
--
-- KEYS: the log. ARGV: window in ms, limit, the time in ms, and a member that nobody else has.
local window, limit, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
if redis.call('ZCARD', KEYS[1]) < limit then
    redis.call('ZADD', KEYS[1], now, ARGV[4])
    redis.call('PEXPIRE', KEYS[1], window)
    return 1
end
return 0
