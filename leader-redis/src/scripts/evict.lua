-- evict: frees every slot of a name, whoever holds it, and tells watchers.
--
-- KEYS[1]  the name's record (see claim.lua)
-- ARGV[1]  the channel of the name's watchers
-- ARGV[2]  how they are told (see release.lua)
--
-- Replies  {'evicted', how many slots were taken}
--          {'foreign'}  the hash at the key is not ours
local key = KEYS[1]
local record = redis.call('HGETALL', key)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last, observed
local freed = {}

for i = 1, #record, 2 do
  local field, value = record[i], record[i + 1]
  if field == 'f' then
    last = tonumber(value)
  elseif field == 'o' then
    observed = tonumber(value)
  elseif #value > 63 then
    local expiry = tonumber(string.sub(value, 33, 48))
    if not expiry or not tonumber(field) then return {'foreign'} end
    if expiry > now then
      freed[#freed + 1] = field
      freed[#freed + 1] = ''
    end
  end
end
if #record > 0 and not last then return {'foreign'} end
if #freed == 0 then
  redis.call('HDEL', key, '')
  return {'evicted', 0}
end

local revision = last + 1
if now > revision then revision = now end
local a = revision % 1000000
local revised = string.format('%010d%06d', (revision - a) / 1000000, a)
if type(redis.pcall('HSET', key, 'f', revised, unpack(freed))) == 'table' then
  -- A full server refuses what could make a key grow, which this does not; but not once a script has written.
  redis.call('HDEL', key, '')
  redis.call('HSET', key, 'f', revised, unpack(freed))
end
local tell = ARGV[2]
if tell == 'SPUBLISH' and not redis.REDIS_VERSION_NUM then
  tell = redis.pcall('EXISTS', ARGV[1]) == 1 and 'PUBLISH'
end
if tell == 'PUBLISH' then
  redis.pcall('PUBLISH', ARGV[1], revised .. ':0')
elseif tell then
  redis.pcall('SPUBLISH', ARGV[1], revised .. ':0')
end
if observed and observed > now then
  tell = ARGV[2]
  if tell == 'SPUBLISH' and not redis.REDIS_VERSION_NUM then tell = 'PUBLISH' end
  redis.pcall(tell, string.sub(key, 1, -6) .. 'changed', 'changed')
end
return {'evicted', #freed / 2}
