"""The Python client against the real gateway, and its core by itself."""
