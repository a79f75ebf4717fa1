"""Token counts: exact for text, published formulas for roles, tools and images."""

import asyncio
import base64
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken

from sash import ConversationMemoryManager, SashError
from sash.memory.images import find_image_cost, read_image_size
from sash.memory.tokens import TokenCounter, count_text, find_encoding

REFERENCE = json.loads(Path(__file__).with_name("token_reference.json").read_text())

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "The city and state, e.g. San Francisco, CA",
                },
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    },
}


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_counts_equal_tiktoken_s_own_on_varied_strings(encoding):
    column = REFERENCE["columns"].index(encoding)
    assert len(REFERENCE["rows"]) >= 200
    wrong = [row[0] for row in REFERENCE["rows"] if count_text(row[0], encoding) != row[column]]
    assert wrong == []


@pytest.mark.parametrize("model", ["gpt-4", "gpt-4o"])
@pytest.mark.parametrize("text", [" " * 990_000, " \t" * 60_000 + "x", "a\n" + " " * 150_000 + "\n\nb!"])
def test_long_runs_of_white_space_count_as_tiktoken_counts_them(model, text):
    counter = TokenCounter(model)
    assert counter.count_text(text) == len(counter.load().encoding.encode_ordinary(text))


def test_a_million_spaces_are_counted():
    assert count_text(" " * 1_000_000) == 7813
    assert count_text("x" + "\t " * 500_000 + "x", "cl100k_base") > 100_000


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|im_start|>", "<|endofprompt|>"])
def test_special_tokens_in_the_text_are_plain_text(text):
    assert count_text(text) > 1


@pytest.mark.parametrize("text", [None, 7, b"x", ["x"], "\ud800"])
def test_a_value_that_is_not_text_is_refused(text):
    with pytest.raises(SashError):
        count_text(text)


@pytest.mark.parametrize(
    ("model", "encoding", "exact"),
    [
        (None, "o200k_base", True),
        ("gpt-4o", "o200k_base", True),
        ("gpt-4o-mini-2024-07-18", "o200k_base", True),
        ("gpt-4.1-mini", "o200k_base", True),
        ("gpt-5-nano", "o200k_base", True),
        ("o3-mini", "o200k_base", True),
        ("gpt-oss-20b", "o200k_base", True),
        ("openai/gpt-4o", "o200k_base", True),
        ("GPT-4o", "o200k_base", True),
        ("openai/gpt-4o:free", "o200k_base", True),
        ("gpt-4", "cl100k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("gpt-35-turbo", "cl100k_base", True),
        ("gemini-2.5-pro", "o200k_base", False),
        ("llama3.2:3b", "o200k_base", False),
        ("text-davinci-003", "o200k_base", False),
    ],
)
def test_the_model_decides_the_encoding_and_whether_counts_are_exact(model, encoding, exact):
    counter = TokenCounter(model)
    assert (counter.encoding, counter.exact) == (encoding, exact)


async def test_the_statistics_say_that_a_count_is_approximate():
    memory = ConversationMemoryManager(model="llama3.2:3b")
    assert memory.get_stats("c")["exact"] is False
    assert ConversationMemoryManager(model="gpt-4o").get_stats("c")["exact"] is True


def test_an_unknown_encoding_is_refused():
    assert find_encoding("claude-5") is None
    with pytest.raises(SashError) as error:
        count_text("x", "p50k_base")
    assert error.value.code == "unknown_encoding"


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_every_role_is_one_token_as_the_overhead_assumes(role, encoding):
    assert count_text(role, encoding) == 1


@pytest.mark.parametrize(("model", "expected"), [("gpt-4o", 101), ("gpt-4", 105)])
def test_a_request_with_a_tool_costs_what_openai_s_cookbook_measured(model, expected):
    messages = [
        {
            "role": "system",
            "content": "You are a helpful assistant that can answer to questions about the weather.",
        },
        {"role": "user", "content": "What's the weather like in San Francisco?"},
    ]
    assert TokenCounter(model).count_messages(messages, [WEATHER]) == expected


def test_tool_calls_names_and_nested_schemas_are_counted():
    counter = TokenCounter()
    call = {"id": "1", "type": "function", "function": {"name": "light", "arguments": '{"on": true}'}}
    bare = counter.count_message("")
    assert counter.count_message("", [call]) == bare + 3 + count_text("light") + count_text('{"on": true}')
    assert counter.count_message("", name="Ann") == bare + 1 + count_text("Ann")
    nested = {
        "name": "f",
        "parameters": {
            "properties": {
                "rooms": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                }
            }
        },
    }
    flat = {"name": "f", "parameters": {"properties": {"rooms": {"type": "array"}}}}
    assert counter.count_tools([nested]) > counter.count_tools([flat])
    combined = {"name": "f", "parameters": {"anyOf": [nested["parameters"], flat["parameters"]]}}
    assert counter.count_tools([combined]) > counter.count_tools([nested])
    assert counter.count_tools([]) == 0


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "f", "description": None, "parameters": None},
        {"name": "f", "parameters": {"properties": {"a": True, "b": {"description": None, "enum": None}}}},
        {"name": "f", "parameters": {"properties": {"a": {"items": True, "anyOf": None}}}},
    ],
)
def test_a_schema_with_holes_is_counted(tool):
    assert TokenCounter().count_tools([tool]) > 0


def data_url(header: bytes) -> str:
    return "data:image/x;base64," + base64.b64encode(header + bytes(40)).decode()


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1024, 512)
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xc0\0\x11\x08" + struct.pack(">HH", 300, 400)
WEBP_X = (
    b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (1919).to_bytes(3, "little") + (1079).to_bytes(3, "little")
)
WEBP_L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (99 | 49 << 14).to_bytes(4, "little")
WEBP = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 550, 368)


@pytest.mark.parametrize(
    ("url", "size"),
    [
        (data_url(PNG), (1024, 512)),
        (data_url(GIF), (640, 480)),
        (data_url(JPEG), (400, 300)),
        (data_url(WEBP_X), (1920, 1080)),
        (data_url(WEBP_L), (100, 50)),
        (data_url(WEBP), (550, 368)),
        ("https://example.com/a.png", (1024, 1024)),
        ("data:image/png;base64,!!!!", (1024, 1024)),
        (data_url(b"\x89PNG\r\n\x1a\n"), (1024, 1024)),
        ("data:", (1024, 1024)),
        ("data:image/png;base64,äöüß", (1024, 1024)),
        (data_url(b'<svg xmlns="http://www.w3.org/2000/svg" width="' + b"9" * 400 + b'"/>'), (1024, 1024)),
        (data_url(b"P6\n" + b"9" * 400 + b" 5\n255\n"), (1024, 1024)),
        (data_url(b"\xff\xd8" + b"\xff\xe0\x00\x00" * 9999), (1024, 1024)),
    ],
)
def test_the_size_of_an_image_is_read_from_its_header(url, size):
    assert read_image_size(url) == size


@pytest.mark.parametrize(
    ("model", "width", "height", "detail", "tokens"),
    [
        ("gpt-4o", 1024, 1024, "high", 765),
        ("gpt-4o", 2048, 4096, "high", 1105),
        ("gpt-4o", 4096, 8192, "low", 85),
        ("gpt-4o", 512, 512, "auto", 255),
        ("gpt-4o-mini", 1024, 1024, "high", 2833 + 4 * 5667),
        ("gpt-5", 1024, 1024, "high", 630),
        ("o1", 1024, 1024, "high", 675),
        ("gpt-4.1-mini", 1024, 1024, "high", 1659),
        ("gpt-4.1-mini", 1800, 2400, "high", 2353),
    ],
)
def test_image_tokens_follow_the_published_formula(model, width, height, detail, tokens):
    assert find_image_cost(model).count_tokens(width, height, detail) == tokens


def test_each_kind_of_part_has_its_own_count():
    counter = TokenCounter("gpt-4o")
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": data_url(PNG), "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
    ]
    other = count_text('{"type": "file", "file": {"file_id": "f"}}')
    assert counter.count_message(parts) == 4 + count_text("What is this?") + 85 + 765 + 300 + other + 85


def test_a_text_is_tokenised_once(monkeypatch):
    counter = TokenCounter()
    counter.load()
    counted = []
    monkeypatch.setattr(tiktoken.Encoding, "encode_ordinary", lambda self, text: counted.append(text) or [1])
    for _ in range(5):
        counter.count_text("the same")
    assert counted == ["the same"]


def test_the_cache_is_bounded_and_holds_no_long_text(monkeypatch):
    counter = TokenCounter()
    counter.load()
    counted = []
    monkeypatch.setattr(tiktoken.Encoding, "encode_ordinary", lambda self, text: counted.append(text) or [1])
    for n in range(5000):
        counter.count_text(str(n))
    for text in ("4999", "0", "x" * 10_000, "x" * 10_000):
        counter.count_text(text)
    assert counted[5000:] == ["0", "x" * 10_000, "x" * 10_000]


async def test_the_ranks_are_loaded_off_the_event_loop(monkeypatch):
    """The first message of a process has to load the ranks; the loop goes on turning meanwhile."""
    loops = []
    original = TokenCounter.load

    def load(self):
        try:
            loops.append(asyncio.get_running_loop())
        except RuntimeError:
            loops.append(None)
        return original(self)

    monkeypatch.setattr(TokenCounter, "load", load)
    memory = ConversationMemoryManager()
    await asyncio.gather(*(memory.add_message("c", "user", str(n)) for n in range(5)))
    assert loops
    assert set(loops) == {None}
    assert [m["content"] for m in await memory.get_messages("c")] == list("01234")


def test_counting_needs_no_network_and_no_set_up():
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from sash.memory.tokens import count_text\n"
        "print(count_text('hello world'), count_text('hello world', 'cl100k_base'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={})
    assert (done.stdout, done.returncode) == ("2 2\n", 0), done.stderr


def test_importing_sash_loads_no_ranks():
    code = (
        "import tiktoken\n"
        "tiktoken.Encoding.__init__ = None\n"
        "import sash\n"
        "print(sash.TokenCounter().is_loaded)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


def test_the_encoding_of_every_model_that_tiktoken_knows_is_found():
    names = {**tiktoken.model.MODEL_TO_ENCODING, **tiktoken.model.MODEL_PREFIX_TO_ENCODING}
    known = {name: encoding.replace("harmony", "base") for name, encoding in names.items()}
    known = {name: encoding for name, encoding in known.items() if encoding in ("cl100k_base", "o200k_base")}
    assert {name: find_encoding(name) for name in known} == known
    assert not any(map(find_encoding, names.keys() - known.keys()))
    assert find_encoding("openai/GPT-5.2-mini:nitro") == "o200k_base"
    assert find_encoding("ft:gpt-4o-mini:home::1") == "o200k_base"
    assert find_encoding("gpt-4-turbo") == "cl100k_base"
    assert [find_encoding(name) for name in ("gpt-45", "gpt-4.7", "o11", "llama-gpt-4")] == [None] * 4
