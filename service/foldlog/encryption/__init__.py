"""Encryption at rest: a store that encrypts what it writes and decrypts what it reads.

Each session has a data key, and each attachment one of its own, wrapped by a master key that is not
in the database. It stands between the application and any store, so that neither knows of it.
"""
