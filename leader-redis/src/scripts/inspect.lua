-- inspect: the slots of a name that are taken now. Changes nothing.
--
-- KEYS[1]  the name's record (see claim.lua)
--
-- Replies  {'holders', {slot, microseconds left, fencing token, 1 when a minimum lease keeps it, node id}, ..}
--          {'foreign'}  the hash at the key is not ours
local record = redis.call('HGETALL', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local sub = string.sub
local last
local reply = {'holders'}

for i = 1, #record, 2 do
  local field, value = record[i], record[i + 1]
  if field == 'f' then
    last = tonumber(value)
  elseif #value > 63 then
    local slot, expiry, fence = tonumber(field), tonumber(sub(value, 33, 48)), tonumber(sub(value, 49, 64))
    if not slot or not expiry or not fence then return {'foreign'} end
    if expiry > now then
      local retained = 0
      if sub(value, 1, 1) == '-' then retained = 1 end
      reply[#reply + 1] = {slot, expiry - now, fence, retained, sub(value, 65)}
    end
  end
end
if #record > 0 and not last then return {'foreign'} end
return reply
