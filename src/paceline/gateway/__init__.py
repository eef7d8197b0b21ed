"""The public API: who may ask, what is accepted, and how accepted work is doing.

Belongs here: validation, idempotency, the HTTP of callers. Does not belong here: choosing and pacing (`policy`,
`dispatcher`), Redis (`store`), what workers say (`orchestrator`). The logic (`intake`, `answers`, `idempotency`) awaits
nothing but the store, so the World drives it by hand; HTTP is in `app` and `routes_…`.
"""
