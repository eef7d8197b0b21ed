-- What a worker asks for tells how it stands.

-- A number came (back) up: a look that saw it offline would put the phone to sleep, so it has to look again.
local function came_up(session, phone, now)
  -- Whoever got this far is no crash loop, whatever ends it later.
  call('HSET', K.session(session), 'healthyAt', now)
  put_pace(phone, pace_of(phone))
  make_due(phone, now)
  jobs_look_again(now)
end

-- Workers ask for messages only while they are connected, and for orders alone while they are not. Where that does not fit what is known, a
-- word of theirs was lost. A word that may still be on its way comes first, hence the ten seconds.
local BELIEVED_MS = 10000
local COMES_UP = {STARTING = true, SCAN_QR = true, RECONNECTING = true}
local function believe_claim(session, known, is_connected, now)
  if now - said_at(known.stateAt, now) < BELIEVED_MS then return end
  if known.wantedInstance and known.wantedInstance ~= known.instanceId then return end
  -- Its own words are in order by its own clock; this is none of them.
  local at = known.connectionAt or 0
  if is_connected and COMES_UP[known.connection] then
    put_state(session, 'CONNECTED', 'LINKED', at, now)
    call('HDEL', K.session(session), 'failedReason')
    came_up(session, known.phone, now)
  elseif not is_connected and known.connection == 'CONNECTED' then
    put_state(session, 'RECONNECTING', nil, at, now)
  end
end
