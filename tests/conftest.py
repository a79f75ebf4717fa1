"""What all tests share: the same examples every time."""

from hypothesis import settings

settings.register_profile("sash", derandomize=True, deadline=None)
settings.load_profile("sash")
