"""The offline model: answers without a key and without a network."""

from sash.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
