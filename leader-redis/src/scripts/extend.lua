-- extend: lets leases live longer, each by itself, those that are still in force.
--
-- KEYS[i]           the record of a lease's name (see claim.lua)
-- ARGV[2 * i - 1]   its token, 32 hexadecimal digits
-- ARGV[2 * i]       its slot and how many microseconds it lives from now, at least: '0 10000000'
--
-- A lease that is extended is written, also when it does not end later than before: who waits afterwards for replicas
-- to acknowledge waits for the last *write* of the connection (before Redis 7.2, for all that came before).
--
-- Reply    {'extended', how many were, place, why, place, why, ..}
--          For each lease that was not extended, its place among the keys, from 1, and why: 'expired', 'taken',
--          'deleted' when the token was not in force, 'foreign' when the hash at the key is not ours, or '!' and the
--          server's words when it refused
--
-- Servers spend most of what they do for leases here, so what a batch has in common is reckoned once.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local sub, pcall, tonumber, type = string.sub, redis.pcall, tonumber, type
local wishes = {}
local extended = 0
local reply = {'extended', 0}

local function read(words)
  local slot, lease = string.match(words, '^(%d+) (%d+)$')
  local ends = now + lease
  local a = ends % 1000000
  local wish = {slot = slot, millis = lease / 1000, ends = ends, hour = ends - ends % 3600000000}
  wish.expires = string.format('%010d%06d', (ends - a) / 1000000, a)
  wishes[words] = wish
  return wish
end

for i = 1, #KEYS do
  local key, token, words = KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]
  local wish = wishes[words] or read(words)
  local slot = wish.slot
  local why, done
  -- Errors are answers here: what is wrong with one key must not fail the leases on others.
  local entry = pcall('HGET', key, slot)
  local expiry = type(entry) == 'string' and #entry > 63 and tonumber(sub(entry, 33, 48))
  if expiry and expiry > now and sub(entry, 1, 32) == token then
    local expires = wish.expires
    if expiry > wish.ends then expires = sub(entry, 33, 48) end
    entry = token .. expires .. sub(entry, 49)
    done = pcall('HSET', key, slot, entry)
    if type(done) == 'table' then
      -- A full server refuses what could make a key grow, which this does not; but not once a script has written.
      done = pcall('HDEL', key, '')
      if type(done) ~= 'table' then done = pcall('HSET', key, slot, entry) end
    end
    -- The key outlives the lease by half a day at least. That is looked at when the lease comes to end in another hour
    -- than before, and had an hour to spare until then.
    if expiry < wish.hour and type(done) ~= 'table' and redis.call('PTTL', key) < wish.millis + 46800000 then
      done = pcall('PEXPIRE', key, math.ceil(wish.millis) + 86400000)
    end
  elseif type(entry) == 'table' then
    done = entry
  else
    if not entry or #entry < 64 then
      why = 'deleted'
    elseif not expiry then
      why = 'foreign'
    elseif sub(entry, 1, 1) == '-' then
      why = 'deleted'
    elseif sub(entry, 1, 32) ~= token then
      why = 'taken'
    else
      why = 'expired'
    end
    if not tonumber(redis.call('HGET', key, 'f') or nil) and redis.call('EXISTS', key) == 1 then why = 'foreign' end
    -- A write that changes nothing: a server that refuses writes says so, and not that the lease is gone.
    if why ~= 'foreign' then done = pcall('HDEL', key, '') end
  end
  if type(done) == 'table' then why = '!' .. done.err end
  if why then
    reply[#reply + 1] = i
    reply[#reply + 1] = why
  else
    extended = extended + 1
  end
end
reply[2] = extended
return reply
