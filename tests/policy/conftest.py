from hypothesis import settings

# No deadline: a shared machine's pauses are not our bugs. No database: a test run leaves nothing behind.
settings.register_profile("pure", deadline=None, database=None, print_blob=True)
settings.load_profile("pure")
