"""The audit trail: the file, the one who copies into it, crashes between each two steps, a disk that is full."""
