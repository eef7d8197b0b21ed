-- Which phones have talked with whom. Changes nothing.
-- a: phones, people
-- Returns for each of the people, in a plain list, a list of these phones.
local found = {}
for i, to in ipairs(a.people) do
  found[i] = {}
  for _, phone in ipairs(a.phones) do
    if knows(phone, to) then found[i][#found[i] + 1] = phone end
  end
end
return found
