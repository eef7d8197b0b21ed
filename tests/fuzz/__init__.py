"""Requests nobody would think of, made from the OpenAPI documents by schemathesis, against the real services on a real
Redis. `make fuzz` runs many of them; the tests here run few, from a fixed seed.
"""
