-- extend: lets leases live longer, each by itself, those that are still in force.
--
-- KEYS[i]           the record of a lease's name (see claim.lua)
-- ARGV[3 * i - 2]   its token, 32 hexadecimal digits
-- ARGV[3 * i - 1]   its slot
-- ARGV[3 * i]       how many microseconds it lives from now, at least
--
-- A lease that is extended is written, also when it does not end later than before: who waits afterwards for replicas
-- to acknowledge waits for the last *write* of the connection (before Redis 7.2, for all that came before).
--
-- Reply    a list with a text for each lease: 'extended', or 'expired', 'taken', 'deleted' when the token was not in
--          force, 'foreign' when the hash at the key is not ours, or '!' and the server's words when it refused
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local sub = string.sub
local replies = {}

for i = 1, #KEYS do
  local key, token, slot, lease = KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], tonumber(ARGV[3 * i])
  local reply, done
  -- Errors are answers here: what is wrong with one key must not fail the leases on others.
  local entry = redis.pcall('HGET', key, slot)
  if type(entry) == 'table' then
    done = entry
  elseif not entry or #entry < 64 then
    reply = 'deleted'
  else
    local expiry = tonumber(sub(entry, 33, 48))
    if not expiry then
      reply = 'foreign'
    elseif sub(entry, 1, 1) == '-' then
      reply = 'deleted'
    elseif sub(entry, 1, 32) ~= token then
      reply = 'taken'
    elseif expiry <= now then
      reply = 'expired'
    else
      reply = 'extended'
      local later = now + lease
      if later < expiry then later = expiry end
      local a = later % 1000000
      local expires = string.format('%010d%06d', (later - a) / 1000000, a)
      local extended = token .. expires .. sub(entry, 49)
      done = redis.pcall('HSET', key, slot, extended)
      if type(done) == 'table' then
        -- A full server refuses what could make a key grow, which this does not; but not once a script has written.
        done = redis.pcall('HDEL', key, '')
        if type(done) ~= 'table' then done = redis.pcall('HSET', key, slot, extended) end
      end
      if type(done) ~= 'table' and redis.call('PTTL', key) < lease / 1000 + 43200000 then
        done = redis.pcall('PEXPIRE', key, math.ceil(lease / 1000) + 86400000)
      end
    end
  end
  if reply and reply ~= 'extended' then
    if not tonumber(redis.call('HGET', key, 'f') or nil) and redis.call('EXISTS', key) == 1 then reply = 'foreign' end
    -- A write that changes nothing: a server that refuses writes says so, and not that the lease is gone.
    if reply ~= 'foreign' then done = redis.pcall('HDEL', key, '') end
  end
  if type(done) == 'table' then reply = '!' .. done.err end
  replies[i] = reply
end
return replies
