"""What a command's exit code tells a script. docs/cli.md and every `--help` say the same."""

from enum import IntEnum


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
    TIMED_OUT = 5
    INTERRUPTED = 130


MEANINGS = {
    Exit.DONE: "done",
    Exit.FAILED: "it did not end well: a job with errors, a message that failed, a fault that `doctor` found, or"
    " something at that address that is not Paceline",
    Exit.USAGE: "wrong usage; nobody was asked",
    Exit.UNREACHABLE: "nobody answers there, or not for the moment",
    Exit.REFUSED: "Paceline answered, and the answer is no",
    Exit.TIMED_OUT: "what was waited for has not happened yet",
    Exit.INTERRUPTED: "interrupted with Ctrl-C; what was begun goes on",
}

EPILOG = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not reachable, 4 refused, 5 not in time."
