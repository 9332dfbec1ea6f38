-- fenced_set: writes a value, unless a higher fencing token has been here.
--
-- KEYS[1]  the value's key
-- ARGV[1]  the fencing token, in decimal digits
-- ARGV[2]  the value
-- ARGV[3]  for how many milliseconds the key lives from now on; 0 for ever
--
-- Replies  {'written'}
--          {'stale', the highest fencing token seen, in decimal digits}
--          {'foreign'}  the hash at the key is not ours
--
-- The key is a hash with two fields: `fence`, the highest fencing token seen, and `value`. Numbers are compared as text,
-- by length and then by digits: a double has not enough digits for all of them.
local key, fence = KEYS[1], ARGV[1]
local seen = redis.call('HGET', key, 'fence')

if seen then
  if not string.find(seen, '^%d+$') then return {'foreign'} end
  if #fence < #seen or (#fence == #seen and fence < seen) then return {'stale', seen} end
elseif redis.call('EXISTS', key) == 1 then
  return {'foreign'}
end

redis.call('HSET', key, 'fence', fence, 'value', ARGV[2])
if ARGV[3] == '0' then
  redis.call('PERSIST', key)
else
  redis.call('PEXPIRE', key, ARGV[3])
end
return {'written'}
