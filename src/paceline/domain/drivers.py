"""The ways to WhatsApp that there are, and what each needs. One list for registry, runners and workers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DriverKind:
    needs_proxy: bool = True
    """It goes out by a proxy of the pool unless an operator asks for none."""
    simulated: bool = False
    """There is no phone that could scan a code, so scanning is asked for over the API."""
    keeps_login: bool = False
    """The linked device lies on the worker's volume, encrypted with a key of the session that we give."""


DRIVERS: dict[str, DriverKind] = {
    "simulated": DriverKind(needs_proxy=False, simulated=True),
    "baileys": DriverKind(keeps_login=True),
}


def is_simulated(driver: str) -> bool:
    """Whether nobody's phone can ring. One we do not know may reach a phone."""
    return driver in DRIVERS and DRIVERS[driver].simulated
