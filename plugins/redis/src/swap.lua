-- Exchanges databases with those that were filled beside them, all at once, if nothing
-- was written since the position ARGV[1] of the replication stream, and empties what was there
-- before. ARGV[2] is the key that marks what a restore works on, ARGV[3] the number of pairs
-- that follow. Behind them stand keys (database, filled one, key) that keep the value that
-- they have.
--
-- What fails here fails before anything that clients see was touched: what follows the
-- exchange may fail. What could not be emptied is marked.
if redis.replicate_commands then redis.replicate_commands() end
local at = string.match(redis.call('INFO', 'replication'), 'master_repl_offset:(%d+)')
if at ~= ARGV[1] then return 0 end
local first = 4 + 2 * tonumber(ARGV[3])
-- Where we may not, it is still known what was filled.
for i = 4, first - 1, 2 do
  redis.call('SWAPDB', ARGV[i + 1], ARGV[i + 1])
end
for i = first, #ARGV, 3 do
  local key = ARGV[i + 2]
  redis.call('SELECT', ARGV[i])
  local value, left = redis.call('DUMP', key), redis.call('PTTL', key)
  redis.call('SELECT', ARGV[i + 1])
  if value then
    if left < 0 then left = 0 elseif left == 0 then left = 1 end
    redis.call('RESTORE', key, left, value, 'REPLACE')
  else
    redis.call('DEL', key)
  end
end
for i = 4, first - 1, 2 do
  redis.call('SELECT', ARGV[i + 1])
  redis.call('DEL', ARGV[2])
end
for i = 4, first - 1, 2 do
  redis.call('SWAPDB', ARGV[i], ARGV[i + 1])
end
for i = 4, first - 1, 2 do
  redis.call('SELECT', ARGV[i + 1])
  local emptied = redis.pcall('FLUSHDB', 'ASYNC')
  if emptied.err then
    redis.pcall('SET', ARGV[2], 'database ' .. ARGV[i + 1])
  end
end
return 1
