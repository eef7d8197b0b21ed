"""The HTTP contract of the three services: the real ASGI applications on a real Redis, in process."""
