"""Failures: which codes are final, and for whom."""

import pytest

from paceline.domain.failures import FailureClass, failure_class


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("RATE_LIMIT", FailureClass.TRANSIENT),
        ("NO_ACK", FailureClass.TRANSIENT),
        ("CONNECTION_LOST", FailureClass.TRANSIENT),
        ("SEND_FAILED", FailureClass.TRANSIENT),
        ("SOMETHING_NEW", FailureClass.TRANSIENT),
        ("", FailureClass.TRANSIENT),
        ("NOT_ON_WHATSAPP", FailureClass.RECIPIENT),
        ("INVALID_RECIPIENT", FailureClass.RECIPIENT),
        ("NO_COMMON_HOURS", FailureClass.RECIPIENT),
        ("RESTRICTED_463", FailureClass.PLATFORM),
        ("463", FailureClass.PLATFORM),
    ],
)
def test_class_of_a_code(code, expected):
    """Every code of the worker protocol has its class; one nobody knows may be tried again."""
    assert failure_class(code) is expected
