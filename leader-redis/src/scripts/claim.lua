-- claim: takes the lowest free slot of a name, or says why not.
--
-- KEYS[1]  the name's record. What else there is of the name is called after it, and not passed: a slot of a cluster that
--          is being moved refuses several keys, and each argument costs the server as much as a simple command
-- ARGV[1]  the attempt's token, 32 hexadecimal digits
-- ARGV[2]  the lease in microseconds
-- ARGV[3]  how many slots the name has, by this candidate
-- ARGV[4]  the candidate's node id
-- ARGV[5]  what the fencing token must be at least, 0 for none; left out as a rule, together with the next ones
-- ARGV[6]  the one slot that will do, '' for any
-- ARGV[7]  how observers are told: PUBLISH, or SPUBLISH on a cluster
-- ARGV[8]  what stands for the time in the fencing token, 0 for nothing
-- ARGV[9]  how many microseconds it may be from the time
--
-- Replies  'granted:<slot>:<fencing token>', a text, since a list costs more; with '@<time in microseconds>' behind it
--          where the fencing token is another number than the time
--          {'taken', microseconds until one is free, revision, node id of its holder}
--          {'ended'}    the token was ended before this claim arrived
--          {'foreign'}  the hash at the key is not ours
--
-- The record is a hash. `f` is the last revision issued. `0`, `1`, .. are slots: a fixed-width entry (token 32, expiry
-- in microseconds 16, fencing token 16, then the node id), or empty once the slot was freed. A slot that a minimum lease
-- keeps has dashes for a token. `m` is when the last mark ends: marks of ended tokens are keys of their own, so that
-- claims do not read those of others, and are looked at only while there can be one. `o` is until when the name is
-- observed: so long are grants, releases and evictions told on a channel next to the record, `..:changed`.
local key, token, lease, slots = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local record = redis.call('HGETALL', key)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local sub = string.sub
local held, live, last, mine, soonest, first, ends, observed = {}, 0

for i = 1, #record, 2 do
  local field, value = record[i], record[i + 1]
  if #value > 63 then
    local slot, expiry = tonumber(field), tonumber(sub(value, 33, 48))
    if not slot or not expiry then return {'foreign'} end
    if expiry > now then
      held[slot] = value
      live = live + 1
      if not soonest or expiry < soonest then soonest, first = expiry, value end
      if sub(value, 1, 32) == token then mine = slot end
    end
  elseif field == 'f' then
    last = tonumber(value)
  elseif field == 'm' then
    ends = tonumber(value)
    if not ends then return {'foreign'} end
  elseif field == 'o' then
    observed = tonumber(value)
    if not observed then return {'foreign'} end
  elseif value ~= '' or not tonumber(field) then
    return {'foreign'}
  end
end
if #record > 0 and not last then return {'foreign'} end

local floor, only = 0
if ARGV[5] then floor, only = tonumber(ARGV[5]), tonumber(ARGV[6]) end

local marked = ends and ends > now and redis.call('EXISTS', sub(key, 1, -6) .. 'ended:' .. token) == 1
if marked or (not mine and (live >= slots or (only and held[only]))) then
  -- A write that changes nothing: a server that cannot grant must say so, and not that somebody else leads.
  redis.call('HDEL', key, '')
  if marked then return {'ended'} end
  if live > slots then
    -- Others ask for more slots than this candidate: one is free for it once few enough are left.
    local entries = {}
    for _, entry in pairs(held) do entries[#entries + 1] = entry end
    table.sort(entries, function(a, b) return sub(a, 33, 48) < sub(b, 33, 48) end)
    first = entries[live - slots + 1]
    soonest = tonumber(sub(first, 33, 48))
  end
  if only and held[only] then
    local there = tonumber(sub(held[only], 33, 48))
    if live < slots or there > soonest then soonest, first = there, held[only] end
  end
  return {'taken', soonest - now, last, sub(first, 65)}
end

local expiry, slot, fence, least = now + lease, mine, nil, now
if floor > 0 then
  least = floor
elseif ARGV[8] and math.abs(tonumber(ARGV[8]) - now) <= tonumber(ARGV[9]) then
  least = tonumber(ARGV[8])
  -- What was issued before this server forgot the name, if it did, was no more than the time.
  if (last or 0) == 0 and least < now then least = now end
end
if mine then
  local present = tonumber(sub(held[mine], 33, 48))
  if present > expiry then expiry = present end
  fence = tonumber(sub(held[mine], 49, 64))
else
  slot = only or 0
  while not only and held[slot] do slot = slot + 1 end
end
local new = not mine or fence < floor
if new then
  fence = (last or 0) + 1
  if least > fence then fence = least end
end
-- `%d` in halves: quick, exact also where a C long has 32 bits, and 16 digits until the year 2286.
local a, b = expiry % 1000000, fence % 1000000
local expires = string.format('%010d%06d', (expiry - a) / 1000000, a)
local fenced = string.format('%010d%06d', (fence - b) / 1000000, b)
local entry = token .. expires .. fenced .. ARGV[4]
if mine then
  if type(redis.pcall('HSET', key, slot, entry)) == 'table' then
    -- A full server refuses what could make a key grow, which this does not; but not once a script has written.
    redis.call('HDEL', key, '')
    redis.call('HSET', key, slot, entry)
  end
  if new then redis.call('HSET', key, 'f', fenced) end
else
  redis.call('HSET', key, 'f', fenced, slot, entry)
end

-- The key outlives every lease in it by half a day to a day, so that the last revision does too, and has an hour to
-- spare for extensions, which look at it once an hour.
local lives = (expiry - now) / 1000
if redis.call('PTTL', key) < lives + 46800000 then
  redis.call('PEXPIRE', key, math.ceil(lives) + 86400000)
end
if new and observed and observed > now then
  -- A server before Redis 7 has no SPUBLISH.
  local tell = redis.REDIS_VERSION_NUM and ARGV[7] or 'PUBLISH'
  redis.pcall(tell, sub(key, 1, -6) .. 'changed', 'changed')
end
local granted = 'granted:' .. slot .. ':' .. fenced
if fence ~= now then granted = granted .. string.format('@%.0f', now) end
return granted
