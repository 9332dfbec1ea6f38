-- release: ends the tenure of a token, tells watchers, and leaves a mark for the token if asked to.
--
-- KEYS[1]  the name's record, after which the rest is called (see claim.lua)
-- ARGV[1]  the token, 32 hexadecimal digits
-- ARGV[2]  the slot that was granted, or '' when any slot may hold the token
-- ARGV[3]  for how many microseconds the slot stays taken; left out as a rule, together with the next two
-- ARGV[4]  for how many microseconds claims of the token are refused; 0 for no mark
-- ARGV[5]  how watchers are told: PUBLISH, or SPUBLISH on a cluster
--
-- Replies  'released:<how many watchers were told>:<revision>', a text, since a list costs more; with
--          '@<time in microseconds>' behind it where the revision is another number than the time
--          {'released', revision, why none could be told}
--          {'expired'}, {'taken'}, {'deleted'}  the token was not in force, and why
--          {'foreign'}  the hash at the key is not ours
--
-- Watchers are told `<revision>:<microseconds until the slot is free>`. A server before Redis 7 has no SPUBLISH, and its
-- cluster passes on what is published to every node: there a release is told only while a key of the channel's name says
-- that somebody waits. Observers are told on a channel of their own, and not counted.
local key, token, slot, keep, mark = KEYS[1], ARGV[1], ARGV[2], 0, 0
if ARGV[3] then keep, mark = tonumber(ARGV[3]), tonumber(ARGV[4]) end
local sub = string.sub
local last, entry, observed

if slot ~= '' then
  local fields = redis.call('HMGET', key, 'f', slot, 'o')
  last, entry, observed = fields[1], fields[2], fields[3]
else
  local record = redis.call('HGETALL', key)
  for i = 1, #record, 2 do
    local field, value = record[i], record[i + 1]
    if field == 'f' then
      last = value
    elseif field == 'o' then
      observed = value
    elseif sub(value, 1, 32) == token and (not entry or sub(value, 33, 48) > sub(entry, 33, 48)) then
      -- A token that came back after its lease had expired may stand in a slot of old as well.
      slot, entry = field, value
    end
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

last = tonumber(last or nil)
if not last and redis.call('EXISTS', key) == 1 then return {'foreign'} end

local reply
if entry and sub(entry, 1, 32) == token then
  local expiry = tonumber(sub(entry, 33, 48))
  if not expiry then return {'foreign'} end
  if expiry > now then
    if keep > expiry - now then keep = expiry - now end
    local revision = last + 1
    if now > revision then revision = now end
    local a = revision % 1000000
    local revised = string.format('%010d%06d', (revision - a) / 1000000, a)
    local value = ''
    if keep > 0 then
      local free = now + keep
      local b = free % 1000000
      value = string.rep('-', 32) .. string.format('%010d%06d', (free - b) / 1000000, b) .. sub(entry, 49)
    end
    if type(redis.pcall('HSET', key, 'f', revised, slot, value)) == 'table' then
      -- A full server refuses what could make a key grow, which this does not; but not once a script has written.
      redis.call('HDEL', key, '')
      redis.call('HSET', key, 'f', revised, slot, value)
    end
    -- Not worth failing for: the slot is free, and a watcher that hears nothing asks again by itself.
    local tell, told, channel = ARGV[5] or 'PUBLISH', 0, sub(key, 1, -6) .. 'released'
    if tell == 'SPUBLISH' and not redis.REDIS_VERSION_NUM then
      tell = redis.pcall('EXISTS', channel) == 1 and 'PUBLISH'
    end
    -- By their names, so that a refusal which names no command can be told by them.
    if tell == 'PUBLISH' then
      told = redis.pcall('PUBLISH', channel, revised .. ':' .. keep)
    elseif tell then
      told = redis.pcall('SPUBLISH', channel, revised .. ':' .. keep)
    end
    if observed and (tonumber(observed) or 0) > now then
      redis.pcall(redis.REDIS_VERSION_NUM and ARGV[5] or 'PUBLISH', sub(key, 1, -6) .. 'changed', 'changed')
    end
    if type(told) == 'table' then
      reply = {'released', revision, told.err}
    else
      reply = 'released:' .. told .. ':' .. revised
      if revision ~= now then reply = reply .. string.format('@%.0f', now) end
    end
  else
    reply = {'expired'}
  end
elseif not entry or #entry < 64 or sub(entry, 1, 1) == '-' then
  reply = {'deleted'}
else
  reply = {'taken'}
end

if type(reply) == 'table' and reply[1] ~= 'released' then
  -- A write that changes nothing: a server that refuses writes says so, and not that the lease is gone. After it, a full
  -- server takes a mark too.
  redis.call('HDEL', key, '')
end
if mark > 0 then
  local lives, ends, latest = mark / 1000, now + mark, tonumber(redis.call('HGET', key, 'm') or nil)
  redis.call('SET', sub(key, 1, -6) .. 'ended:' .. token, '', 'PX', math.ceil(lives))
  if not last then
    redis.call('HSET', key, 'f', 0, 'm', ends)
  elseif not latest or ends > latest then
    redis.call('HSET', key, 'm', ends)
  end
  if redis.call('PTTL', key) < lives + 43200000 then
    redis.call('PEXPIRE', key, math.ceil(lives) + 86400000)
  end
end
return reply
