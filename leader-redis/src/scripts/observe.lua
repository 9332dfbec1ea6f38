-- observe: says that a name is observed for a while, so that its changes are told.
--
-- KEYS[1]  the name's record (see claim.lua)
-- ARGV[1]  for how many microseconds from now
--
-- Replies  {'observed', 1 when that had been said before and was still so, else 0}
--          {'foreign'}  the hash at the key is not ours
--
-- Of several observers the one who says it for longest is heard. A name without a record gets one that ends with this.
local key, lives = KEYS[1], tonumber(ARGV[1])
local fields = redis.call('HMGET', key, 'f', 'o')
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ends = tonumber(fields[2] or nil)

if not tonumber(fields[1] or nil) and redis.call('EXISTS', key) == 1 then return {'foreign'} end

local observed = 0
if ends and ends > now then observed = 1 end
if not ends or now + lives > ends then ends = now + lives end
redis.call('HSET', key, 'f', fields[1] or 0, 'o', ends)
if redis.call('PTTL', key) < lives / 1000 then
  redis.call('PEXPIRE', key, math.ceil(lives / 1000))
end
return {'observed', observed}
