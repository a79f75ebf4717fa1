"""Settings come from a file, the environment and flags, and each knows its origin."""

from pathlib import Path
from traceback import format_exception

import pytest

from sash.app.assembly import make_defaults, make_embedder, make_limits
from sash.app.settings import MAX_PROMPT_CHARACTERS, Settings
from sash.app.settings_loader import load_settings, show_value
from sash.errors import InvalidConfig
from sash.values.sessions import DENYLIST, WindowLimits


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
        ({"SASH_PORT": "many"}, "SASH_PORT must be a whole number, not 'many'"),
        ({"SASH_PORT": "70000"}, "should be less than or equal to 65535, not '70000'"),
        ({"SASH_DRY_RUN": "perhaps"}, "SASH_DRY_RUN must be true or false, not 'perhaps'"),
        ({"SASH_API_MODE": "fast"}, "should be 'auto', 'chat' or 'responses', not 'fast'"),
        ({"SASH_HOME_URL": "http://ha:8123"}, "SASH_HOME_TOKEN"),
        ({"SASH_CONFIG": "nowhere.toml"}, "there is no nowhere.toml"),
        ({"SASH_SLIDING_WINDOW_MAX_TOKENS": "0"}, "SASH_SLIDING_WINDOW_MAX_TOKENS should be greater"),
        ({"SASH_MAX_HISTORY_TURNS": "-1"}, "SASH_MAX_HISTORY_TURNS should be greater"),
        ({"SASH_SUMMARY_TOKENS": "10"}, "SASH_SUMMARY_TOKENS should be greater"),
        ({"SASH_EARLY_WAIT_SECONDS": "0"}, "SASH_EARLY_WAIT_SECONDS should be greater"),
        ({"SASH_APPROVERS": "all"}, "SASH_APPROVERS should be 'act' or 'owner'"),
        (
            {"SASH_DENYLISTED_SERVICES": "!light"},
            "SASH_DENYLISTED_SERVICES can remove only .*mqtt.*, not .*!light",
        ),
        ({"SASH_CONVERSATION_MAX_TURNS": "0"}, "should be greater than or equal to 1"),
        ({"SASH_SESSION_IDLE_DAYS": "a week"}, "SASH_SESSION_IDLE_DAYS must be a number, not 'a week'"),
        ({"SASH_STORE": "redis"}, "SASH_STORE must be sqlite, files or memory, not 'redis'"),
        ({"SASH_STORE": "mysql://anna:hunter2@db"}, "SASH_STORE must be .*not 'mysql://[^:]*@db'"),
        ({"SASH_API_BASE": "localhost:1234"}, "SASH_API_BASE must begin with http:// or https://, not"),
        ({"SASH_VOCABULARY": "/nope.toml"}, "SASH_VOCABULARY must be the path of a file, not .*/nope.toml"),
        ({"SASH_SYSTEM_PROMPT": "@/nope.md"}, r"SASH_SYSTEM_PROMPT must .*\(No such .*\), not '@/nope.md'"),
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
        ('port = "x"', "port in .*sash.toml must be a whole number, not 'x'"),
        ("port = true", "port in .*sash.toml must be a number, not True"),
        ("port = 8765.9", "a whole number, not 8765.9"),
        ("max_cost_per_day_usd = nan", "a finite number"),
        ("max_cost_per_day_usd = -1", "greater than or equal to 0"),
        ("max_sessions = 0", "greater than or equal to 1"),
        ("allowed_hosts = 5", "must be a list of names, not 5"),
        ("allowed_hosts = [5]", "allowed_hosts in .*sash.toml must be text, not 5"),
        ("host = 5", "must be text, not 5"),
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


def test_a_wrong_flag_is_named_as_it_was_written():
    with pytest.raises(InvalidConfig, match="--port must be a whole number"):
        load_settings({"port": "many"}, environ={})


def test_unknown_variables_are_warned_about_by_name():
    environ = {"SASH_MAX_STEP": "4", "SASH_TOKEN": "x", "SASH_CONFIG": "", "SASHIMI": "1", "SASH_ZZZZ": ""}
    assert load_settings(environ=environ).warnings == (
        "SASH_MAX_STEP is not a setting: did you mean SASH_MAX_STEPS?",
        "SASH_ZZZZ is not a setting: `sash doctor` lists the settings",
    )


def make(**options):
    return make_defaults(load_settings(options, environ={}).settings)


def test_settings_of_the_window_reach_new_sessions():
    assert make().window is None
    assert make(max_history_turns=0).window is None
    assert make(max_history_turns=5).window == WindowLimits(max_tokens=None, max_turns=5)
    assert make(sliding_window_max_tokens=100).window == WindowLimits(max_tokens=100)
    assert make(sliding_window_enable=False, max_history_turns=5).window == WindowLimits(max_tokens=None)
    kept = make(sliding_window_max_tokens=100, sliding_window_preserve_system=False).window
    assert kept is not None and not kept.preserve_system


def test_settings_of_turns_and_actions_are_the_limits_of_sessions():
    names = ("max_steps", "max_tool_calls", "max_duration_ms", "max_tokens_per_turn")
    defaults = make(**{name: n for n, name in enumerate(names)}, max_actions_per_minute=7, last_k=9)
    assert [getattr(defaults.budgets, name) for name in names] == [0, 1, 2, 3]
    assert defaults.policy.max_actions_per_minute == 7 and defaults.last_k == 9
    assert make(enforce_fixed_model=True).policy.enforce_fixed_model
    assert make(approvers="owner").policy.approvers == "owner"


REAL = {"home_url": "http://ha:8123", "home_token": "x"}


@pytest.mark.parametrize(
    ("options", "acts", "allowed"),
    [
        ({}, True, ("*",)),
        ({"allow_actuation": False}, False, ("*",)),
        ({"allowlisted_services": "light"}, True, ("light",)),
        (REAL, False, ()),
        (REAL | {"allow_actuation": True, "allowlisted_services": "light"}, True, ("light",)),
        ({"home": "none"}, False, ()),
    ],
)
def test_agents_may_act_in_the_demo_home_and_elsewhere_if_the_operator_says_so(options, acts, allowed):
    policy = make(**options).policy
    assert (policy.allow_actuation, policy.allowlisted_services) == (acts, allowed)
    assert "lock" in policy.require_confirmation and "shell_command" in policy.denylisted_services


def test_a_system_prompt_is_a_text_or_a_file(tmp_path):
    def persona(text):
        return load_settings({"system_prompt": text}, environ={}).settings.persona

    (tmp_path / "me.md").write_text("You are Alfred.\n")
    (tmp_path / "empty.md").write_text("")
    (tmp_path / "latin.md").write_bytes("Größe".encode("latin-1"))
    (tmp_path / "long.md").write_text("a" * (MAX_PROMPT_CHARACTERS + 1))
    assert persona("You are Eve.") == "You are Eve."
    assert persona(f"@{tmp_path}/me.md") == "You are Alfred."
    for name in ("empty.md", "latin.md", "long.md", "missing.md"):
        with pytest.raises(InvalidConfig, match=f"--system-prompt must .*{name}"):
            persona(f"@{tmp_path}/{name}")


def test_the_key_of_the_model_does_not_go_to_another_server():
    options = {"embedder_model": "e", "api_key": "secret", "home": "none"}
    for base, key in ((None, "secret"), ("http://other/v1", "")):
        settings = load_settings(options | {"embedder_api_base": base}, environ={}).settings
        assert make_embedder(settings)._endpoint.api_key == key
