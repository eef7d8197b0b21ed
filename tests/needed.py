"""What tests need beside Python, and may not find on a machine."""

import os

import pytest


def skip_if(missing: str) -> None:
    """Skips the test if something is missing, and says so; in CI that is a failure: it would silently not run."""
    if not missing:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    print(missing)
    pytest.skip(missing)
