"""The worker, from the journal's bytes to the process."""
