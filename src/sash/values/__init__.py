"""Frozen values and their validation. They do no I/O; they import only `sash.errors`."""
