"""The offline model: answers without a key and a network. It imports no other provider."""

from sash.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
