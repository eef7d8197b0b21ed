-- The audit trail: facts that an operator may be asked for years later. orchestrator/audit.py copies them into SQLite and trims them here.

-- The host of a proxy URL: credentials have no place in a trail.
local function proxy_host(url)
  local rest = string.gsub(string.gsub(url, '^[%w+.-]+://', ''), '^.*@', '')
  return string.match(rest, '^%[[^%]]*%]') or string.match(rest, '^[^:/?#]*')
end

-- One fact, in the step that makes it one. kind: BINDING (a session's proxy or profile changed) or OPERATOR (somebody decided something).
-- fields, all optional: sessionId, phone, proxy (any proxy URL; only its host is kept), profile, status, action, by, reason, and what else
-- belongs to it. Never a message text or a recipient. Call it behind the change, like `tell`: then Redis takes it even when it is full. Should
-- it fail all the same, the change stands and an incident says that the trail has a hole.
local function audit(kind, now, fields)
  local fact = {}
  for name, value in pairs(fields) do
    -- Whatever it is called: what looks like a URL with credentials is one.
    local is_proxy = type(value) == 'string' and (name == 'proxy' or string.find(value, '://[^/]*@'))
    fact[name] = is_proxy and proxy_host(value) or value
  end
  local done = redis.pcall('XADD', K.audit(), 'MAXLEN', '~', C.audit_kept, '*', 'k', kind, 'at', ms(now), 'd', cjson.encode(fact))
  if type(done) == 'table' and done.err then incident('AUDIT_LOST', now, {fact = kind, action = fields.action, sessionId = fields.sessionId}) end
end
