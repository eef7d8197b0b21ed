"""The pages, in the order of the menu. A module a page, each with its `PAGE`; this list is all that names them."""

from paceline.dashboard.pages import compose, fleet, job, jobs
from paceline.dashboard.parts.page import Page

PAGES: tuple[Page, ...] = (
    fleet.PAGE,
    jobs.PAGE,
    job.PAGE,
    compose.PAGE,
)
