"""The blocking client, made from `_async` by `tools/unasync.py`."""
