"""The `paceline` command.

Here belongs what a person types and reads: options, help, tables, exit codes. What a command does is somebody else's
(`launcher` runs the platform, `client` asks it) and is imported when the command is called, so that `--help` is quick
and a worker does not load the gateway.

`root` puts the commands together, one module for each noun. Some serve them all: `groups` (options that several
commands share), `asking` and `paging` (where to ask, lists), `inputs` and `showing` (what people give and read),
`ending` and `exits` (errors, exit codes). What a script wants goes to stdout, what is said to people to stderr.
"""

from paceline.cli.root import app, main

__all__ = ["app", "main"]
