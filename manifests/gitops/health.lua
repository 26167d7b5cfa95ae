-- The health of a FairPool or a TenantWeight, for Argo CD; README.md says where it goes.
-- The rules are those by which the operator writes conditions: of the newest edition, Stalled is a failure that
-- somebody has to put right, Ready is health, and anything else is on its way.

local status = obj.status or {}

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "It is being deleted." }
end

if status.observedGeneration ~= nil and status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not looked at the newest edition yet." }
end

local found = {}
for _, condition in ipairs(status.conditions or {}) do
  found[condition.type] = condition
end

local stalled, ready = found.Stalled, found.Ready

if stalled ~= nil and stalled.status == "True" then
  return { status = "Degraded", message = stalled.reason .. ": " .. stalled.message }
end

if ready == nil then
  return { status = "Progressing", message = "Waiting for the operator." }
end

if ready.status == "True" then
  return { status = "Healthy", message = ready.message }
end

return { status = "Progressing", message = ready.reason .. ": " .. ready.message }
