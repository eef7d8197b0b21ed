"""The `paceline` command: what it asks for, what it prints, and how it ends."""
