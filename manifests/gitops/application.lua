-- The health of an Application, for Argo CD, which has none of its own since 1.8: what it says itself. With this the
-- Applications of one wave are healthy before those of the next are begun.

local health = (obj.status or {}).health or {}

return { status = health.status or "Progressing", message = health.message or "" }
