"""The client for asyncio. `_sync` is made from this folder by `tools/unasync.py`."""
