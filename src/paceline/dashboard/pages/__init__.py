"""The pages, in the order of the menu. A module a page, each with its `PAGE`; this list is all that names them."""

from paceline.dashboard.pages import compose, fleet, inventory, job, jobs, queues, session, settings, suppressions
from paceline.dashboard.parts.page import Page

PAGES: tuple[Page, ...] = (
    fleet.PAGE,
    session.PAGE,
    jobs.PAGE,
    job.PAGE,
    compose.PAGE,
    queues.PAGE,
    inventory.PAGE,
    suppressions.PAGE,
    settings.PAGE,
)
