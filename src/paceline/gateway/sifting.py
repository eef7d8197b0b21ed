"""Sifting a job's contacts: which are accepted, which are bad, doubled or not to be written to.

Pure; `intake` asks for the suppression list batch by batch. A bad contact does not spoil the job: it is listed and
skipped.
"""

from collections.abc import Sequence

import msgspec

from paceline.domain.errors import Unprocessable
from paceline.domain.jobs import Contact
from paceline.domain.numbers import canonical, identity
from paceline.domain.text import TEXT_LIMIT, is_bare, is_blank, render, variables
from paceline.gateway.schemas import REJECTED_SHOWN, BadRow, ContactIn, Rejected
from paceline.policy.hours import is_zone

_SHOWN_LENGTH = 64
"""Of what a caller wrote as a number; more would only carry their mistake into our answer."""


class Sift:
    """Takes the contacts in batches, in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._names = variables(text)
        self._is_bare = is_bare(text)
        self._seen: set[str] = set()
        # A look-up that fails is slow, and a whole list may carry the same mistake.
        self._zones: dict[str, bool] = {}
        self._index = 0
        self.accepted: list[Contact] = []
        self.rejected: list[Rejected] = []
        self.rejected_count = 0
        self.duplicates = 0
        self.suppressed = 0

    def take(self, batch: Sequence[str | ContactIn]) -> list[Contact]:
        """The good ones among them, each person once."""
        good = []
        for item in batch:
            contact = self._check(item)
            self._index += 1
            if contact is not None:
                good.append(contact)
        return good

    def judge(self, index: int, item: str | ContactIn) -> Contact | None:
        """One alone, for whoever knows that the others are good."""
        self._index = index
        return self._check(item)

    def accept(self, good: list[Contact], suppressed: set[str]) -> None:
        kept = [contact for contact in good if contact.to not in suppressed] if suppressed else good
        self.suppressed += len(good) - len(kept)
        self.accepted += kept

    def refuse(self, *, strict: bool, accepted: int | None = None) -> None:
        """Once all were taken: a job with nothing to send, or with anything bad in it if the caller is strict."""
        details = {"rejected": msgspec.to_builtins(self.rejected), "rejectedCount": self.rejected_count}
        if strict and self.rejected_count:
            raise Unprocessable("CONTACTS_REJECTED", "strict: some contacts are bad", field="contacts", details=details)
        if not (len(self.accepted) if accepted is None else accepted):
            counts = {**details, "suppressed": self.suppressed, "duplicates": self.duplicates}
            raise Unprocessable("NOTHING_ACCEPTED", "no contact could be accepted", field="contacts", details=counts)

    def _check(self, item: str | ContactIn) -> Contact | None:
        raw = item if isinstance(item, str) else item.to
        if isinstance(item, BadRow):
            self._reject(raw, item.code, item.column)
            return None
        to = canonical(raw)
        if to is None:
            self._reject(raw, "INVALID_NUMBER")
            return None
        contact = Contact(to) if isinstance(item, str) else Contact(to, item.vars, item.client_ref, item.timezone)
        if fault := self._fault(contact):
            missing = self._names - contact.vars.keys() if fault == "MISSING_VARIABLE" else None
            self._reject(raw, fault, min(missing) if missing else None)
            return None
        person = identity(to)
        if person in self._seen:
            self.duplicates += 1
            return None
        self._seen.add(person)
        return contact

    def _fault(self, contact: Contact) -> str | None:
        if contact.timezone is not None and not self._is_zone(contact.timezone):
            return "INVALID_TIMEZONE"
        if not self._names:
            return None
        if not self._names <= contact.vars.keys():
            return "MISSING_VARIABLE"
        filled = render(self._text, contact.vars)
        if self._is_bare and is_blank(filled):
            return "EMPTY_TEXT"
        return "TEXT_TOO_LONG" if len(filled) > TEXT_LIMIT else None

    def _is_zone(self, name: str) -> bool:
        if name not in self._zones:
            self._zones[name] = is_zone(name)
        return self._zones[name]

    def _reject(self, raw: str, code: str, variable: str | None = None) -> None:
        self.rejected_count += 1
        if len(self.rejected) < REJECTED_SHOWN:
            to = raw[:_SHOWN_LENGTH]
            self.rejected.append(Rejected(index=self._index, to=to, code=code, variable=variable))
