"""The only importer of redis: every key, every atomic move, one small module per noun."""

from switchboard.store.store import Store, open_store

__all__ = ["Store", "open_store"]
