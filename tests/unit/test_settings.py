"""Settings come from a file, the environment and flags, and each knows its origin."""

from pathlib import Path
from traceback import format_exception

import pytest

from sash.app.assembly import make_limits
from sash.app.settings import Settings, load_settings, show_value
from sash.errors import InvalidConfig
from sash.values.sessions import DENYLIST


@pytest.fixture(autouse=True)
def own_home(monkeypatch, tmp_path):
    """Hide the settings of the user who runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_flags_override_the_environment_which_overrides_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('port = 1\nhost = "0.0.0.0"\nmodel = "from-file"\n')
    loaded = load_settings(
        {"port": 3, "data": None}, file=file, environ={"SASH_PORT": "2", "SASH_MODEL": "from-environment"}
    )
    assert (loaded.settings.port, loaded.settings.model, loaded.settings.host) == (
        3,
        "from-environment",
        "0.0.0.0",
    )
    assert loaded.origins["port"] == "flag"
    assert loaded.origins["model"] == "environment"
    assert loaded.origins["host"] == str(file)
    assert loaded.origins["store"] == "default"


def test_the_file_is_the_users_or_the_given_one_but_never_in_the_current_folder(tmp_path):
    home = tmp_path / "home" / ".config" / "sash"
    home.mkdir(parents=True)
    (home / "sash.toml").write_text("port = 1")
    assert load_settings(environ={}).settings.port == 1
    Path("sash.toml").write_text("port = 2")
    assert load_settings(environ={}).settings.port == 1
    (tmp_path / "other.toml").write_text("port = 3")
    assert load_settings(environ={"SASH_CONFIG": "other.toml"}).settings.port == 3


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("SASH_DRY_RUN", "yes", True),
        ("SASH_DRY_RUN", "0", False),
        ("SASH_ALLOWLISTED_SERVICES", "light, , switch.turn_off,", ("light", "switch.turn_off")),
        ("SASH_DATA", "~/sash", Path("~/sash").expanduser()),
        ("SASH_MAX_COST_PER_DAY_USD", "0.5", 0.5),
        ("SASH_SLIDING_WINDOW_MAX_TOKENS", "8000", 8000),
        ("SASH_PORT", "", 8765),
    ],
)
def test_text_of_the_environment_becomes_typed_values(name, text, value):
    settings = load_settings(environ={name: text}).settings
    got = getattr(settings, name.removeprefix("SASH_").lower())
    assert got == value or (name == "SASH_DATA" and got.name == "sash")


@pytest.mark.parametrize(
    ("text", "added", "removed"),
    [("lock.unlock", {"lock.unlock"}, set()), ("!mqtt, lock", {"lock"}, {"mqtt"}), ("", set(), set())],
)
def test_an_own_denylist_adds_to_the_built_in_one(text, added, removed):
    settings = load_settings(environ={"SASH_DENYLISTED_SERVICES": text}).settings
    policy = make_limits(settings).policy
    assert set(policy.denylisted_services) == (set(DENYLIST) - removed) | added


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"SASH_PORT": "many"}, "port .environment. should be a valid integer.*, not 'many'"),
        ({"SASH_PORT": "70000"}, "should be less than or equal to 65535, not '70000'"),
        ({"SASH_DRY_RUN": "perhaps"}, "dry_run .environment. should be a valid boolean"),
        ({"SASH_API_MODE": "fast"}, "should be 'auto', 'chat' or 'responses', not 'fast'"),
        ({"SASH_HOME_URL": "http://ha:8123"}, "SASH_HOME_TOKEN"),
        ({"SASH_CONFIG": "nowhere.toml"}, "there is no nowhere.toml"),
        ({"SASH_DENYLISTED_SERVICES": "!light"}, "!light removes nothing: the built-in list has"),
        ({"SASH_CONVERSATION_MAX_TURNS": "0"}, "should be greater than or equal to 1"),
    ],
)
def test_a_wrong_setting_is_explained(environ, told):
    with pytest.raises(InvalidConfig, match=told):
        load_settings(environ=environ)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("port = ", "cannot be read"),
        ("prot = 1", "did you mean port"),
        ('port = "x"', "a valid integer"),
        ("port = true", "port .*sash.toml. must be a number, not True"),
        ("port = 8765.9", "a valid integer"),
        ("max_cost_per_day_usd = nan", "a finite number"),
        ("max_cost_per_day_usd = -1", "greater than or equal to 0"),
        ("max_sessions = 0", "greater than or equal to 1"),
        ("allowed_hosts = 5", "a valid tuple"),
        ("allowed_hosts = [5]", "allowed_hosts .*sash.toml. should be a valid string"),
        ("host = 5", "a valid string"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path, text, told):
    (tmp_path / "sash.toml").write_text(text)
    with pytest.raises(InvalidConfig, match=told):
        load_settings(file=tmp_path / "sash.toml", environ={})


def test_a_secret_is_not_shown():
    settings = Settings(api_key="sk-very-secret", home_url="http://ha", home_token="eyJ-very-secret")
    assert "very-secret" not in repr(settings)
    assert show_value("api_key", settings.api_key) == "set"
    assert "hunter2" not in show_value("store", "postgres://anna:hunter2@db/sash")
    assert show_value("model", None) == "–"


def test_an_error_does_not_show_a_secret(tmp_path):
    (tmp_path / "sash.toml").write_text("api_key = 4711")
    with pytest.raises(InvalidConfig) as caught:
        load_settings(file=tmp_path / "sash.toml", environ={})
    assert "4711" not in "".join(format_exception(caught.value))
