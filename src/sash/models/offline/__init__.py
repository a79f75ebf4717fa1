"""The model that is there without a key and without a network."""

from sash.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
