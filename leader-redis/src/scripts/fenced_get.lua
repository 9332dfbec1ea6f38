-- fenced_get: reads a value that fenced_set.lua wrote, with the fencing token under which it was written.
--
-- KEYS[1]  the value's key
--
-- Replies  {'value', fencing token in decimal digits, value}
--          {'none'}     there is no such key
--          {'foreign'}  the hash at the key is not ours
local fields = redis.call('HMGET', KEYS[1], 'fence', 'value')
local fence, value = fields[1], fields[2]

if fence and value and string.find(fence, '^%d+$') then return {'value', fence, value} end
if redis.call('EXISTS', KEYS[1]) == 1 then return {'foreign'} end
return {'none'}
