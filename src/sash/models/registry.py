"""The registry of model providers: it turns the `model` setting into a model.

A new provider needs one module with a `create_model(name, settings)` function, and one line in `PROVIDERS`.
"""

from importlib import import_module
from typing import NamedTuple, Protocol

from sash.errors import InvalidConfig
from sash.models.offline import OfflineModel
from sash.ports.model import Model


class ModelSettings(Protocol):
    """The setting that every provider shares. Each provider reads further settings of its own."""

    @property
    def model(self) -> str | None: ...


class Provider(NamedTuple):
    """The module of a provider, and the extra (`pip install 'sash[extra]'`) with the packages it imports."""

    module: str
    extra: str


PROVIDERS = {
    "openai": Provider("sash.models.openai.model", "openai"),
}
DEFAULT_PROVIDER = "openai"


def find_provider(model: str) -> tuple[Provider, str]:
    """Return the provider that a `model` setting names, and the name of the model there.

    The setting is `provider:name`, or a name of the default provider.
    """
    prefix, separator, name = model.partition(":")
    if not separator or prefix not in PROVIDERS:
        return PROVIDERS[DEFAULT_PROVIDER], model
    return PROVIDERS[prefix], name


def create_model(settings: ModelSettings) -> Model:
    """Create the model that the settings name. Without a name it is the offline model.

    Raises:
        InvalidConfig: packages of the provider are not installed.
    """
    if settings.model is None:
        return OfflineModel()
    provider, name = find_provider(settings.model)
    try:
        module = import_module(provider.module)
    except ImportError as error:
        raise InvalidConfig(
            f"the model {name} needs more packages: pip install 'sash[{provider.extra}]' ({error})",
            option="model",
        ) from error
    model: Model = module.create_model(name, settings)
    return model
