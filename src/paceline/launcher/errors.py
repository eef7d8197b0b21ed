"""What can go wrong in a way that its user can do something about; the CLI prints the message and exits with
`exit_code`."""


class LauncherError(Exception):
    """The platform cannot start or go on. The message says what to do."""

    exit_code = 1


class UsageError(LauncherError):
    """Asked for something that does not exist."""

    exit_code = 2
