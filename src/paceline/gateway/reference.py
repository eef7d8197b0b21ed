"""What the documentation says of the gateway's operations beyond what their routes say themselves: the error codes that
each can answer, and an example of what is sent and of what comes back.

One table in four modules, by what the operations are about. Neighbour: `kits.openapi` makes the document of it.
"""

from paceline.gateway.reference_admin import ADMIN
from paceline.gateway.reference_people import PEOPLE
from paceline.gateway.reference_sending import SENDING
from paceline.gateway.reference_work import WORK
from paceline.kits.openapi import Entry, Reference
from paceline.telemetry.service import REFERENCE as METRICS

REFERENCE: Reference = {**SENDING, **WORK, **PEOPLE, **ADMIN, **METRICS, "GET /health": Entry(answer={"status": "ok"})}
