"""`sash demo` plays without a model and without a terminal."""

from tests.surfaces.command_line import run


def test_the_demo_shows_evicted_and_kept_identifiers():
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "5/5 turns" in done.stdout
    assert "← evicted: I'm debugging a function" in done.stdout
    for name in ("/api/users/123", "error code 500", "db.example.com:5432", "config.py line 45"):
        assert name in done.stdout
    assert done.stdout.count("✓ verbatim") == done.stdout.count("✗ lost") == 4
    assert "$0.00, no model was called" in done.stdout
    assert "\x1b[" not in done.stdout


def test_the_demo_talks_to_the_demo_home():
    shown = run("demo").stdout
    assert "Turned on the kitchen ceiling light.  ✓ read back" in shown
    assert "Undone: the kitchen ceiling light is off again." in shown
    assert "flickers when the mains voltage dips" in shown
    assert "7 of 7 turns needed no model at all." in shown and "The bill: $0.00." in shown


def test_the_demo_has_colour_in_a_terminal():
    assert "\x1b[" in run("demo", "--pause", "0", FORCE_COLOR="1", TERM="xterm-256color").stdout


def test_the_demo_plays_without_unicode():
    done = run("demo", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "config.py line 45" in done.stdout
